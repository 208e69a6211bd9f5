/* Files that are embedded in the binary, as they are and compressed. */
#ifndef DAYBOOK_SERVER_ASSETS_H
#define DAYBOOK_SERVER_ASSETS_H

#define ASSET(name) extern const char asset_##name[], asset_##name##_end[];
ASSET(openapi_json)
ASSET(openapi_json_gzip)
ASSET(docs_html)
ASSET(docs_html_gzip)
ASSET(docs_viewer)
ASSET(docs_viewer_gzip)
#undef ASSET

#endif
