/* Structs in Thrift's compact protocol, which Parquet uses for its metadata. */
#include "core/parquet/thrift.h"

#include <assert.h>

void thrift_varint(struct buf *out, uint64_t value)
{
    for (; value > 127; value >>= 7)
        buf_char(out, (char)((value & 127) | 128));
    buf_char(out, (char)value);
}

/* Small numbers of either sign become small varints: 0, -1, 1, -2 become 0, 1, 2, 3. */
static void put_signed(struct buf *out, int64_t value)
{
    thrift_varint(out, ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0));
}

static void put_field(struct thrift *t, int id, int type)
{
    int *last = &t->last[t->depth - 1];
    const int step = id - *last;
    assert(t->depth > 0 && step > 0);
    if (step < 16) {
        buf_char(t->out, (char)((step << 4) | type));
    } else {
        buf_char(t->out, (char)type);
        put_signed(t->out, id);
    }
    *last = id;
}

void thrift_begin(struct thrift *t)
{
    assert(t->depth < THRIFT_DEPTH);
    t->last[t->depth++] = 0;
}

void thrift_end(struct thrift *t)
{
    buf_char(t->out, 0);
    t->depth--;
}

void thrift_struct(struct thrift *t, int id)
{
    put_field(t, id, THRIFT_STRUCT);
    thrift_begin(t);
}

void thrift_bool(struct thrift *t, int id, bool value)
{
    put_field(t, id, value ? THRIFT_TRUE : THRIFT_FALSE);
}

void thrift_i32(struct thrift *t, int id, int32_t value)
{
    put_field(t, id, THRIFT_I32);
    put_signed(t->out, value);
}

void thrift_i64(struct thrift *t, int id, int64_t value)
{
    put_field(t, id, THRIFT_I64);
    put_signed(t->out, value);
}

void thrift_text(struct thrift *t, int id, const char *text)
{
    put_field(t, id, THRIFT_TEXT);
    thrift_item_text(t, text);
}

void thrift_list(struct thrift *t, int id, enum thrift_type item, size_t count)
{
    put_field(t, id, THRIFT_LIST);
    buf_char(t->out, (char)(((count < 15 ? (int)count : 15) << 4) | (int)item));
    if (count >= 15)
        thrift_varint(t->out, count);
}

void thrift_item_i32(struct thrift *t, int32_t value)
{
    put_signed(t->out, value);
}

void thrift_item_text(struct thrift *t, const char *text)
{
    thrift_varint(t->out, strlen(text));
    buf_text(t->out, text);
}
