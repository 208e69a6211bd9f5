/* Writes Parquet files piece by piece, so that a file of any length needs the memory of one row group.
 *
 *     p = parquet_open(columns, count, &codec, "made by", 1 << 20);
 *     for each row:
 *         add a value for each column
 *         while (parquet_is_due(p)): parquet_make(p), send the piece
 *     parquet_end(p)
 *     while (parquet_is_due(p)): parquet_make(p), send the piece
 *
 * Every column may be null. A column chunk has one data page (version 1), PLAIN values, and definition levels
 * as RLE. The same rows give the same bytes. A file without its last piece is invalid: readers look for the
 * footer at its end. */
#ifndef DAYBOOK_CORE_PARQUET_PARQUET_H
#define DAYBOOK_CORE_PARQUET_PARQUET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum parquet_type {
    PARQUET_BOOL,
    PARQUET_INT32,
    PARQUET_INT64,
    PARQUET_DOUBLE,
    PARQUET_TIME, /* microseconds since 1970 in UTC */
    PARQUET_TEXT, /* UTF-8 */
    PARQUET_JSON, /* JSON as text */
};

struct parquet_column {
    const char *name;
    enum parquet_type type;
};

/* Compresses pages. core links no compressor, so the caller has it. */
struct parquet_codec {
    enum { PARQUET_UNCOMPRESSED = 0, PARQUET_ZSTD = 6 } id; /* as Parquet numbers them */
    size_t (*bound)(size_t len);                            /* most bytes that `len` bytes become */
    size_t (*compress)(void *to, size_t room, const void *from, size_t len); /* returns the length */
};

struct parquet;

/* Copies the columns. A row group ends with the row that brings its values to `group_bytes`. `codec` NULL:
 * pages are not compressed. */
struct parquet *parquet_open(const struct parquet_column *columns, size_t count,
                             const struct parquet_codec *codec, const char *made_by, size_t group_bytes);
void parquet_free(struct parquet *p); /* NULL is fine */

/* The value of the next column of the row, by its type: parquet_int for INT32, INT64 and TIME; parquet_text
 * for TEXT and JSON. No piece may be due. */
void parquet_null(struct parquet *p);
void parquet_bool(struct parquet *p, bool value);
void parquet_int(struct parquet *p, int64_t value);
void parquet_double(struct parquet *p, double value);
void parquet_text(struct parquet *p, const char *text, size_t len);
/* No more rows. */
void parquet_end(struct parquet *p);

size_t parquet_bytes(const struct parquet *p); /* of the values of this row group */
bool parquet_is_due(const struct parquet *p);
size_t parquet_due_bytes(const struct parquet *p); /* what the next piece is made from: how long it takes */
/* Makes the next piece, which stays until the next call. */
void parquet_make(struct parquet *p);
const void *parquet_piece(const struct parquet *p, size_t *len);

#endif
