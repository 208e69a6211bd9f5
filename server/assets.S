/* Files that are part of the binary: the contract and the page that shows it. */
#include "server/section_notes.S"

    .section .rodata

#define ASSET(name, file) \
    .global asset_##name ; .global asset_##name##_end ; \
    asset_##name: .incbin file ; \
    asset_##name##_end: .byte 0

ASSET(openapi_json, "openapi/openapi.json")
ASSET(docs_html, "openapi/docs/index.html")
ASSET(docs_viewer, "openapi/docs/viewer.js")
