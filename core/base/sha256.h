/* SHA-256. */
#ifndef DAYBOOK_CORE_BASE_SHA256_H
#define DAYBOOK_CORE_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_HEX_SIZE = 65 };

struct sha256 {
    uint32_t state[8];
    uint64_t len;
    unsigned char block[64];
};

void sha256_start(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *bytes, size_t len);
/* Afterwards `s` must be restarted before it is reused. */
void sha256_end(struct sha256 *s, unsigned char out[SHA256_BYTES]);

/* Hashes in one call: 64 lower-case hex digits and a NUL. */
void sha256_hex(const void *bytes, size_t len, char out[SHA256_HEX_SIZE]);

#endif
