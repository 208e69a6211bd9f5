/* UUIDs as text. */
#ifndef DAYBOOK_CORE_BASE_UUID_H
#define DAYBOOK_CORE_BASE_UUID_H

#include <stdbool.h>
#include <stdint.h>

enum { UUID_SIZE = 37, UUID_RANDOM_BYTES = 10 }; /* the size counts the NUL */

/* Accepts exactly 8-4-4-4-12 hex digits of any version; `out` gets them in lower case. */
bool uuid_parse(const char *text, char out[UUID_SIZE]);

/* A UUIDv7 (RFC 9562) of that millisecond; version and variant replace six of the 80 random bits. */
void uuid_v7(int64_t unix_ms, const unsigned char random[UUID_RANDOM_BYTES], char out[UUID_SIZE]);

#endif
