/* Structs in Thrift's compact protocol, which Parquet uses for its metadata. */
#ifndef DAYBOOK_CORE_PARQUET_THRIFT_H
#define DAYBOOK_CORE_PARQUET_THRIFT_H

#include "core/base/buf.h"

enum { THRIFT_DEPTH = 6 }; /* nested structs */

enum thrift_type {
    THRIFT_TRUE = 1,
    THRIFT_FALSE = 2,
    THRIFT_I32 = 5,
    THRIFT_I64 = 6,
    THRIFT_TEXT = 8,
    THRIFT_LIST = 9,
    THRIFT_STRUCT = 12,
};

/* Starts as { .out = buffer }. Fields of a struct are written in the order of their ids. */
struct thrift {
    struct buf *out;
    int last[THRIFT_DEPTH]; /* id of the last field of each open struct */
    int depth;
};

/* A struct that is no field: the outermost one, or an item of a list. thrift_end ends any struct. */
void thrift_begin(struct thrift *t);
void thrift_end(struct thrift *t);

void thrift_struct(struct thrift *t, int id);
void thrift_bool(struct thrift *t, int id, bool value);
void thrift_i32(struct thrift *t, int id, int32_t value);
void thrift_i64(struct thrift *t, int id, int64_t value);
void thrift_text(struct thrift *t, int id, const char *text);

/* Announces `count` items, which must follow: structs (thrift_begin), or the two below. */
void thrift_list(struct thrift *t, int id, enum thrift_type item, size_t count);
void thrift_item_i32(struct thrift *t, int32_t value);
void thrift_item_text(struct thrift *t, const char *text);

/* Seven bits per byte, lowest first. */
void thrift_varint(struct buf *out, uint64_t value);

#endif
