/* Files that are part of the binary: the contract and the page that shows it, each as it is and compressed. */
#include "server/section_notes.S"

    .section .rodata

#define FILE(name, file) \
    .global asset_##name ; .global asset_##name##_end ; \
    asset_##name: .incbin file ; \
    asset_##name##_end: .byte 0

FILE(openapi_json, "openapi/openapi.json")
FILE(openapi_json_gzip, "openapi.json.gz")
FILE(docs_html, "openapi/docs/index.html")
FILE(docs_html_gzip, "index.html.gz")
FILE(docs_viewer, "openapi/docs/viewer.js")
FILE(docs_viewer_gzip, "viewer.js.gz")
