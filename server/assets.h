/* Files that are embedded in the binary. */
#ifndef DAYBOOK_SERVER_ASSETS_H
#define DAYBOOK_SERVER_ASSETS_H

#define ASSET(name) extern const char asset_##name[], asset_##name##_end[];
ASSET(openapi_json)
ASSET(docs_html)
ASSET(docs_viewer)
#undef ASSET

#endif
