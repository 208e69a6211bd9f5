/* For assembly files: what a compiler adds to each object, without which the linker turns a protection off for
 * the whole program. The stack is not executable; and with -fcf-protection, the object keeps to its rules. */
#ifdef __CET__
#include <cet.h>
#endif
    .section .note.GNU-stack,"",%progbits
