/* A quick hash of bytes. */
#ifndef DAYBOOK_CORE_BASE_HASH_H
#define DAYBOOK_CORE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* No secret: for scopes and entity tags; chain by passing the last result as seed. */
#define HASH_SEED UINT64_C(0xcbf29ce484222325)
uint64_t hash_bytes(const void *bytes, size_t len, uint64_t seed);

#endif
