/* The weights of the built-in embedder, as part of the binary: the loader maps them, and unused pages are never read.
 * They have pages of their own, so that these can be released. */
#include "server/section_notes.S"

    .section .rodata.embed_weights, "a", %progbits
    .balign 4096
    .global embed_weights
    .global embed_weights_end
embed_weights:
    .incbin "core/embed/weights.bin"
embed_weights_end:
    .balign 4096
