/* Compression with Zstandard, for Parquet pages. */
#include "server/zstd.h"

#include <zstd.h>

#include "core/base/memory.h"

enum { LEVEL = 3 }; /* of 1 to 22; its makers' default */

/* With enough room, only a lack of memory makes it fail. */
static size_t compress(void *to, size_t room, const void *from, size_t len)
{
    const size_t packed = ZSTD_compress(to, room, from, len, LEVEL);
    if (ZSTD_isError(packed))
        memory_exhausted(len);
    return packed;
}

const struct parquet_codec zstd_codec = { PARQUET_ZSTD, ZSTD_compressBound, compress };
