/* Compression with Zstandard, for Parquet pages. */
#ifndef DAYBOOK_SERVER_ZSTD_H
#define DAYBOOK_SERVER_ZSTD_H

#include "core/parquet/parquet.h"

extern const struct parquet_codec zstd_codec;

#endif
