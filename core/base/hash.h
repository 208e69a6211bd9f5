/* A fast, non-cryptographic hash. */
#ifndef DAYBOOK_CORE_BASE_HASH_H
#define DAYBOOK_CORE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* For cursor scopes and entity tags, not for secrets. To chain, pass the last result as seed. */
#define HASH_SEED UINT64_C(0xcbf29ce484222325)
uint64_t hash_bytes(const void *bytes, size_t len, uint64_t seed);

#endif
