/* Writes Parquet files piece by piece: https://parquet.apache.org/docs/file-format/ */
#include "core/parquet/parquet.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>

#include "core/base/memory.h"
#include "core/parquet/thrift.h"

/* ---- the format's numbers ---- */

enum { BOOLEAN = 0, INT32 = 1, INT64 = 2, DOUBLE = 5, BYTE_ARRAY = 6 }; /* Type */
enum { NO_CONVERTED = -1, UTF8 = 0, TIMESTAMP_MICROS = 10, JSON = 19 }; /* ConvertedType */
/* LogicalType, as the ids of its fields */
enum { NO_LOGICAL = 0, LOGICAL_STRING = 1, LOGICAL_TIMESTAMP = 8, LOGICAL_JSON = 12 };
enum { OPTIONAL = 1 };       /* FieldRepetitionType */
enum { PLAIN = 0, RLE = 3 }; /* Encoding */
enum { DATA_PAGE = 0 };      /* PageType */
enum { MICROS = 2 };         /* field of TimeUnit */

static const struct {
    int physical, converted, logical;
} types[] = {
    [PARQUET_BOOL] = { BOOLEAN, NO_CONVERTED, NO_LOGICAL },
    [PARQUET_INT32] = { INT32, NO_CONVERTED, NO_LOGICAL },
    [PARQUET_INT64] = { INT64, NO_CONVERTED, NO_LOGICAL },
    [PARQUET_DOUBLE] = { DOUBLE, NO_CONVERTED, NO_LOGICAL },
    [PARQUET_TIME] = { INT64, TIMESTAMP_MICROS, LOGICAL_TIMESTAMP },
    [PARQUET_TEXT] = { BYTE_ARRAY, UTF8, LOGICAL_STRING },
    [PARQUET_JSON] = { BYTE_ARRAY, JSON, LOGICAL_JSON },
};

static const char MAGIC[] = "PAR1";

enum {
    MAGIC_BYTES = 4,
    HEAD_BYTES = 64,          /* room for the magic and a page header before a page */
    FOOTER_BYTES = 16 * 1024, /* of a piece of the footer */
};

/* Bytes that grow in place and are used again by the next row group. */
struct bytes {
    unsigned char *data;
    size_t len, cap;
};

struct column {
    char *name;
    enum parquet_type type;
    struct bytes values;  /* PLAIN, without the nulls */
    struct bytes present; /* a bit per row: 0 is null */
    int64_t nulls;
};

/* What the footer says about a column chunk. */
struct chunk {
    int64_t offset;
    int32_t raw, packed; /* bytes with the page header, before and after compression */
};

struct parquet {
    struct column *columns;
    size_t count;
    struct parquet_codec codec;
    char *made_by;
    size_t group_bytes;

    size_t at;    /* column of the next value, or of the next piece */
    int64_t rows; /* of this row group, and of all before it */
    int64_t rows_before;
    bool closing; /* the pieces of the row group are due */

    struct chunk *chunks; /* of all row groups, `count` for each */
    int64_t *group_rows;
    size_t groups, groups_cap;

    int64_t offset; /* bytes made so far */
    bool ended;     /* the footer is due after the row group */
    bool begun;     /* ... its first piece is made */
    bool complete;
    size_t footer_group;
    int64_t footer_bytes;

    struct arena scratch; /* holds the piece */
    const char *piece;
    size_t piece_len;
};

struct parquet *parquet_open(const struct parquet_column *columns, size_t count,
                             const struct parquet_codec *codec, const char *made_by, size_t group_bytes)
{
    struct parquet *p = memory_zero(1, sizeof *p);
    p->columns = memory_zero(count, sizeof *p->columns);
    p->count = count;
    for (size_t i = 0; i < count; i++) {
        p->columns[i].name = memory_text(columns[i].name);
        p->columns[i].type = columns[i].type;
    }
    if (codec)
        p->codec = *codec;
    p->made_by = memory_text(made_by);
    p->group_bytes = group_bytes;
    return p;
}

void parquet_free(struct parquet *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->count; i++) {
        free(p->columns[i].name);
        free(p->columns[i].values.data);
        free(p->columns[i].present.data);
    }
    free(p->columns);
    free(p->made_by);
    free(p->chunks);
    free(p->group_rows);
    arena_release(&p->scratch);
    free(p);
}

/* ---- values ---- */

static void *room(struct bytes *b, size_t more)
{
    if (b->cap - b->len < more) {
        const size_t least = b->len + more, grown = b->cap + b->cap / 2;
        b->cap = grown > least ? grown : least + 256;
        b->data = memory_resize(b->data, b->cap);
    }
    b->len += more;
    return b->data + b->len - more;
}

static void add_bit(struct bytes *b, int64_t index, bool bit)
{
    if (index % 8 == 0)
        *(unsigned char *)room(b, 1) = 0;
    b->data[index / 8] = (unsigned char)(b->data[index / 8] | bit << index % 8);
}

size_t parquet_bytes(const struct parquet *p)
{
    size_t sum = 0;
    for (size_t i = 0; i < p->count; i++)
        sum += p->columns[i].values.len + p->columns[i].present.len;
    return sum;
}

static struct column *next_column(struct parquet *p, bool present)
{
    assert(!p->closing && !p->ended);
    struct column *c = &p->columns[p->at];
    add_bit(&c->present, p->rows, present);
    c->nulls += !present;
    return c;
}

/* The row is complete after its last value, and the row group perhaps too. */
static void value_added(struct parquet *p)
{
    if (++p->at < p->count)
        return;
    p->at = 0;
    p->rows++;
    p->closing = parquet_bytes(p) >= p->group_bytes;
}

void parquet_null(struct parquet *p)
{
    next_column(p, false);
    value_added(p);
}

void parquet_bool(struct parquet *p, bool value)
{
    struct column *c = next_column(p, true);
    add_bit(&c->values, p->rows - c->nulls, value);
    value_added(p);
}

void parquet_int(struct parquet *p, int64_t value)
{
    struct column *c = next_column(p, true);
    const uint64_t wide = htole64((uint64_t)value);
    const uint32_t narrow = htole32((uint32_t)value);
    if (c->type == PARQUET_INT32)
        memcpy(room(&c->values, sizeof narrow), &narrow, sizeof narrow);
    else
        memcpy(room(&c->values, sizeof wide), &wide, sizeof wide);
    value_added(p);
}

void parquet_double(struct parquet *p, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = htole64(bits);
    memcpy(room(&next_column(p, true)->values, sizeof bits), &bits, sizeof bits);
    value_added(p);
}

void parquet_text(struct parquet *p, const char *text, size_t len)
{
    const uint32_t prefix = htole32((uint32_t)len);
    unsigned char *to = room(&next_column(p, true)->values, sizeof prefix + len);
    memcpy(to, &prefix, sizeof prefix);
    if (len)
        memcpy(to + sizeof prefix, text, len);
    value_added(p);
}

void parquet_end(struct parquet *p)
{
    assert(!p->closing && p->at == 0);
    p->closing = p->rows > 0;
    p->ended = true;
}

/* ---- a column chunk ---- */

static bool is_present(const struct column *c, int64_t row)
{
    return c->present.data[row / 8] >> row % 8 & 1;
}

/* A run for each stretch of equal levels. */
static void put_runs(struct buf *out, const struct column *c, int64_t rows)
{
    for (int64_t row = 0, end; row < rows; row = end) {
        const bool level = is_present(c, row);
        for (end = row + 1; end < rows && is_present(c, end) == level; end++)
            ;
        thrift_varint(out, (uint64_t)(end - row) << 1);
        buf_char(out, level);
    }
}

/* The definition levels, 1 for a value and 0 for null: as runs or as bits, whichever is shorter. */
static void put_levels(struct buf *out, const struct column *c, int64_t rows)
{
    const size_t start = out->len;
    buf_add(out, "\0\0\0\0", 4);
    put_runs(out, c, rows);
    if (out->len - start - 4 > c->present.len + 5) {
        out->len = start + 4;
        thrift_varint(out, (uint64_t)c->present.len << 1 | 1);
        buf_add(out, c->present.data, c->present.len);
    }
    const uint32_t len = htole32((uint32_t)(out->len - start - 4));
    memcpy(out->data + start, &len, sizeof len);
}

static void put_page_header(struct buf *out, size_t raw, size_t packed, int64_t rows)
{
    struct thrift t = { .out = out };
    thrift_begin(&t);
    thrift_i32(&t, 1, DATA_PAGE);
    thrift_i32(&t, 2, (int32_t)raw);
    thrift_i32(&t, 3, (int32_t)packed);
    thrift_struct(&t, 5);
    thrift_i32(&t, 1, (int32_t)rows);
    thrift_i32(&t, 2, PLAIN);
    thrift_i32(&t, 3, RLE); /* definition levels */
    thrift_i32(&t, 4, RLE); /* repetition levels: there are none */
    thrift_end(&t);
    thrift_end(&t);
}

/* Levels and values, compressed. Returns the length. */
static size_t pack_page(const struct parquet *p, const struct column *c, const struct buf *levels, char *to,
                        size_t most)
{
    const size_t len = levels->len + c->values.len;
    char *page = p->codec.id ? memory_alloc(len) : to;
    memcpy(page, levels->data, levels->len);
    if (c->values.len)
        memcpy(page + levels->len, c->values.data, c->values.len);
    if (!p->codec.id)
        return len;
    const size_t packed = p->codec.compress(to, most, page, len);
    free(page);
    return packed;
}

static struct chunk *new_chunk(struct parquet *p)
{
    if (p->groups == p->groups_cap) {
        p->groups_cap = p->groups_cap * 2 + 8;
        p->chunks = memory_resize(p->chunks, p->groups_cap * p->count * sizeof *p->chunks);
        p->group_rows = memory_resize(p->group_rows, p->groups_cap * sizeof *p->group_rows);
    }
    return &p->chunks[p->groups * p->count + p->at];
}

static void make_chunk(struct parquet *p)
{
    const struct column *c = &p->columns[p->at];
    struct buf levels = { .arena = &p->scratch }, head = levels;
    put_levels(&levels, c, p->rows);
    const size_t raw = levels.len + c->values.len;
    const size_t most = p->codec.id ? p->codec.bound(raw) : raw;
    char *page = (char *)arena_alloc(&p->scratch, HEAD_BYTES + most) + HEAD_BYTES;
    const size_t packed = pack_page(p, c, &levels, page, most);
    if (p->offset == 0)
        buf_add(&head, MAGIC, MAGIC_BYTES);
    const size_t before = head.len;
    put_page_header(&head, raw, packed, p->rows);
    assert(head.len <= HEAD_BYTES);
    *new_chunk(p) = (struct chunk){ p->offset + (int64_t)before, (int32_t)(head.len - before + raw),
                                    (int32_t)(head.len - before + packed) };
    p->piece = memcpy(page - head.len, head.data, head.len);
    p->piece_len = head.len + packed;
}

static void close_group(struct parquet *p)
{
    p->group_rows[p->groups++] = p->rows;
    p->rows_before += p->rows;
    p->rows = 0;
    p->at = 0;
    p->closing = false;
    for (size_t i = 0; i < p->count; i++) {
        struct column *c = &p->columns[i];
        c->values.len = c->present.len = 0;
        c->nulls = 0;
    }
}

/* ---- the footer ---- */

static void put_logical(struct thrift *t, int logical)
{
    thrift_struct(t, 10);
    thrift_struct(t, logical);
    if (logical == LOGICAL_TIMESTAMP) {
        thrift_bool(t, 1, true); /* UTC */
        thrift_struct(t, 2);
        thrift_struct(t, MICROS);
        thrift_end(t);
        thrift_end(t);
    }
    thrift_end(t);
    thrift_end(t);
}

/* FileMetaData up to the row groups, which are the items of its field 4. */
static void put_schema(struct thrift *t, const struct parquet *p)
{
    thrift_begin(t);
    thrift_i32(t, 1, 1);
    thrift_list(t, 2, THRIFT_STRUCT, p->count + 1);
    thrift_begin(t);
    thrift_text(t, 4, "schema");
    thrift_i32(t, 5, (int32_t)p->count);
    thrift_end(t);
    for (size_t i = 0; i < p->count; i++) {
        const struct column *c = &p->columns[i];
        thrift_begin(t);
        thrift_i32(t, 1, types[c->type].physical);
        thrift_i32(t, 3, OPTIONAL);
        thrift_text(t, 4, c->name);
        if (types[c->type].converted != NO_CONVERTED)
            thrift_i32(t, 6, types[c->type].converted);
        if (types[c->type].logical != NO_LOGICAL)
            put_logical(t, types[c->type].logical);
        thrift_end(t);
    }
    thrift_i64(t, 3, p->rows_before);
    thrift_list(t, 4, THRIFT_STRUCT, p->groups);
}

static void put_chunk(struct thrift *t, const struct parquet *p, const struct chunk *chunk,
                      const struct column *c, int64_t rows)
{
    thrift_begin(t);
    thrift_i64(t, 2, chunk->offset);
    thrift_struct(t, 3);
    thrift_i32(t, 1, types[c->type].physical);
    thrift_list(t, 2, THRIFT_I32, 2);
    thrift_item_i32(t, PLAIN);
    thrift_item_i32(t, RLE);
    thrift_list(t, 3, THRIFT_TEXT, 1);
    thrift_item_text(t, c->name);
    thrift_i32(t, 4, (int32_t)p->codec.id);
    thrift_i64(t, 5, rows);
    thrift_i64(t, 6, chunk->raw);
    thrift_i64(t, 7, chunk->packed);
    thrift_i64(t, 9, chunk->offset);
    thrift_end(t);
    thrift_end(t);
}

static void put_group(struct buf *out, const struct parquet *p, size_t group)
{
    struct thrift t = { .out = out };
    const struct chunk *chunks = &p->chunks[group * p->count];
    int64_t raw = 0, packed = 0;
    thrift_begin(&t);
    thrift_list(&t, 1, THRIFT_STRUCT, p->count);
    for (size_t i = 0; i < p->count; i++) {
        put_chunk(&t, p, &chunks[i], &p->columns[i], p->group_rows[group]);
        raw += chunks[i].raw;
        packed += chunks[i].packed;
    }
    thrift_i64(&t, 2, raw);
    thrift_i64(&t, 3, p->group_rows[group]);
    thrift_i64(&t, 5, chunks[0].offset);
    thrift_i64(&t, 6, packed);
    thrift_end(&t);
}

/* The footer is made in pieces too: it grows with the number of row groups. */
static void make_footer(struct parquet *p)
{
    struct buf out = { .arena = &p->scratch };
    struct thrift t = { .out = &out, .depth = 1, .last = { 4 } };
    if (p->offset == 0)
        buf_add(&out, MAGIC, MAGIC_BYTES);
    const size_t before = out.len;
    if (!p->begun)
        put_schema(&(struct thrift){ .out = &out }, p);
    p->begun = true;
    while (p->footer_group < p->groups && out.len < FOOTER_BYTES)
        put_group(&out, p, p->footer_group++);
    p->complete = p->footer_group == p->groups;
    if (p->complete) {
        thrift_text(&t, 6, p->made_by);
        thrift_end(&t);
    }
    p->footer_bytes += (int64_t)(out.len - before);
    if (p->complete) {
        const uint32_t len = htole32((uint32_t)p->footer_bytes);
        buf_add(&out, &len, sizeof len);
        buf_add(&out, MAGIC, MAGIC_BYTES);
    }
    p->piece = out.data;
    p->piece_len = out.len;
}

/* ---- pieces ---- */

bool parquet_is_due(const struct parquet *p)
{
    return p->closing || (p->ended && !p->complete);
}

size_t parquet_due_bytes(const struct parquet *p)
{
    return p->closing ? p->columns[p->at].values.len + p->columns[p->at].present.len : FOOTER_BYTES;
}

void parquet_make(struct parquet *p)
{
    arena_release(&p->scratch);
    if (p->closing) {
        make_chunk(p);
        if (++p->at == p->count)
            close_group(p);
    } else {
        make_footer(p);
    }
    p->offset += (int64_t)p->piece_len;
}

const void *parquet_piece(const struct parquet *p, size_t *len)
{
    *len = p->piece_len;
    return p->piece;
}
