/* Rows as JSON, CSV and Parquet: the type of a column decides. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/csv.h"
#include "core/base/time_text.h"
#include "db/db.h"
#include "db/rows.h"

/* ---- JSON ---- */

static void put_raw(struct buf *out, const char *text, size_t len)
{
    buf_add(out, text, len);
}

static void put_bool(struct buf *out, const char *text, size_t len)
{
    (void)len;
    buf_json_bool(out, text[0] == 't');
}

/* JSON has no NaN and no infinity. */
static void put_float(struct buf *out, const char *text, size_t len)
{
    bool number = (text[0] >= '0' && text[0] <= '9') || (text[0] == '-' && text[1] != 'I');
    if (number)
        buf_add(out, text, len);
    else
        buf_text(out, "null");
}

/* "2026-06-04 10:00:00.5+00" becomes 2026-06-04T10:00:00.500000Z, as time_text_short writes it. */
static void add_instant(struct buf *out, const char *text, size_t len)
{
    enum { SECONDS_LEN = 22, DIGITS = 6 }; /* "2026-06-04 10:00:00+00"; of a fraction */
    buf_add(out, text, 10);
    buf_char(out, 'T');
    buf_add(out, text + 11, len - 14);
    for (size_t all = len == SECONDS_LEN ? len : SECONDS_LEN + 1 + DIGITS; len < all; len++)
        buf_char(out, '0');
    buf_char(out, 'Z');
}

/* Infinity becomes null. */
static void put_time(struct buf *out, const char *text, size_t len)
{
    if (len < 22 || text[10] != ' ') {
        buf_text(out, "null");
        return;
    }
    buf_char(out, '"');
    add_instant(out, text, len);
    buf_char(out, '"');
}

/* {a,"b c"} becomes ["a","b c"]. All our arrays have one dimension. */
static void put_array(struct buf *out, const char *text, size_t len)
{
    char *item = arena_alloc(out->arena, len + 1);
    const char *p = text + 1;
    buf_char(out, '[');
    while (*p && *p != '}') {
        size_t n = 0;
        if (*p == '"') {
            for (p++; *p && *p != '"'; p++) {
                if (*p == '\\')
                    p++;
                item[n++] = *p;
            }
            p++;
        } else {
            while (*p && *p != ',' && *p != '}')
                item[n++] = *p++;
        }
        buf_json_text(out, item, n);
        if (*p == ',') {
            buf_char(out, ',');
            p++;
        }
    }
    buf_char(out, ']');
}

static void put_text(struct buf *out, const char *text, size_t len)
{
    buf_json_text(out, text, len);
}

/* ---- CSV ---- */

static void cell_time(struct buf *out, const char *text, size_t len)
{
    if (len < 22 || text[10] != ' ')
        return; /* infinity */
    add_instant(out, text, len);
}

static void cell_array(struct buf *out, const char *text, size_t len)
{
    struct buf json = { .arena = out->arena };
    put_array(&json, text, len);
    csv_text(out, json.data, json.len);
}

/* ---- Parquet ---- */

static void add_bool(struct parquet *p, const char *text, size_t len, struct arena *arena)
{
    (void)len;
    (void)arena;
    parquet_bool(p, text[0] == 't');
}

static void add_int(struct parquet *p, const char *text, size_t len, struct arena *arena)
{
    (void)len;
    (void)arena;
    parquet_int(p, strtoll(text, NULL, 10));
}

/* NaN and infinity are null, as in JSON. */
static void add_double(struct parquet *p, const char *text, size_t len, struct arena *arena)
{
    (void)len;
    (void)arena;
    const double value = strtod(text, NULL);
    if (isfinite(value))
        parquet_double(p, value);
    else
        parquet_null(p);
}

static void add_time(struct parquet *p, const char *text, size_t len, struct arena *arena)
{
    char iso[64];
    int64_t us;
    (void)arena;
    if (len < 22 || len > sizeof iso || text[10] != ' ') {
        parquet_null(p); /* infinity */
        return;
    }
    memcpy(iso, text, len - 3);
    iso[10] = 'T';
    memcpy(iso + len - 3, "Z", 2);
    if (time_text_parse(iso, &us))
        parquet_int(p, us);
    else
        parquet_null(p);
}

static void add_text(struct parquet *p, const char *text, size_t len, struct arena *arena)
{
    (void)arena;
    parquet_text(p, text, len);
}

static void add_array(struct parquet *p, const char *text, size_t len, struct arena *arena)
{
    struct buf json = { .arena = arena };
    put_array(&json, text, len);
    parquet_text(p, json.data, json.len);
}

/* Two columns: all digits as text, and the nearest double. */
static void add_decimal(struct parquet *p, const char *text, size_t len, struct arena *arena)
{
    if (isfinite(strtod(text, NULL)))
        parquet_text(p, text, len);
    else
        parquet_null(p);
    add_double(p, text, len, arena);
}

/* ---- the types ---- */

/* Object ids of PostgreSQL's types (pg_type). */
enum {
    TYPE_BOOL = 16,
    TYPE_INT8 = 20,
    TYPE_INT2 = 21,
    TYPE_INT4 = 23,
    TYPE_JSON = 114,
    TYPE_FLOAT4 = 700,
    TYPE_FLOAT8 = 701,
    TYPE_TEXTS = 1009,
    TYPE_TIMESTAMPTZ = 1184,
    TYPE_NUMERIC = 1700,
    TYPE_UUID = 2950,
    TYPE_UUIDS = 2951,
    TYPE_JSONB = 3802,
};

struct kind {
    Oid type;
    void (*json)(struct buf *out, const char *text, size_t len);
    void (*cell)(struct buf *out, const char *text, size_t len);
    enum parquet_type parquet;
    void (*add)(struct parquet *p, const char *text, size_t len, struct arena *arena);
};

static const struct kind kinds[] = {
    { TYPE_BOOL, put_bool, put_bool, PARQUET_BOOL, add_bool },
    { TYPE_INT2, put_raw, put_raw, PARQUET_INT32, add_int },
    { TYPE_INT4, put_raw, put_raw, PARQUET_INT32, add_int },
    { TYPE_INT8, put_raw, put_raw, PARQUET_INT64, add_int },
    { TYPE_FLOAT4, put_float, put_raw, PARQUET_DOUBLE, add_double },
    { TYPE_FLOAT8, put_float, put_raw, PARQUET_DOUBLE, add_double },
    { TYPE_NUMERIC, put_float, put_raw, PARQUET_TEXT, add_decimal },
    { TYPE_TIMESTAMPTZ, put_time, cell_time, PARQUET_TIME, add_time },
    { TYPE_UUID, put_text, put_raw, PARQUET_TEXT, add_text },
    { TYPE_TEXTS, put_array, cell_array, PARQUET_JSON, add_array },
    { TYPE_UUIDS, put_array, cell_array, PARQUET_JSON, add_array },
    { TYPE_JSON, put_raw, csv_text, PARQUET_JSON, add_text },
    { TYPE_JSONB, put_raw, csv_text, PARQUET_JSON, add_text },
    { 0, put_text, csv_text, PARQUET_TEXT, add_text }, /* all others */
};

static const struct kind *kind_of(const PGresult *res, int col)
{
    const struct kind *kind = kinds;
    while (kind->type && kind->type != PQftype(res, col))
        kind++;
    return kind;
}

/* A column whose name starts with '_' is for our code. */
static bool is_hidden(const PGresult *res, int col)
{
    return PQfname(res, col)[0] == '_';
}

/* ---- rows ---- */

void rows_members(struct buf *out, const struct rows *r, int row)
{
    const PGresult *res = r->result;
    row += r->first;
    for (int col = 0; col < PQnfields(res); col++) {
        if (is_hidden(res, col))
            continue;
        buf_json_key(out, PQfname(res, col));
        if (PQgetisnull(res, row, col))
            buf_text(out, "null");
        else
            kind_of(res, col)->json(out, PQgetvalue(res, row, col), (size_t)PQgetlength(res, row, col));
    }
}

void rows_json(struct buf *out, const struct rows *r, int row)
{
    buf_char(out, '{');
    rows_members(out, r, row);
    buf_char(out, '}');
}

void rows_csv_names(struct buf *out, const struct rows *r)
{
    const char *between = "";
    for (int col = 0; col < PQnfields(r->result); col++)
        if (!is_hidden(r->result, col)) {
            buf_fmt(out, "%s%s", between, PQfname(r->result, col));
            between = ",";
        }
    buf_text(out, "\r\n");
}

void rows_csv(struct buf *out, const struct rows *r, int row)
{
    const PGresult *res = r->result;
    const char *between = "";
    row += r->first;
    for (int col = 0; col < PQnfields(res); col++) {
        if (is_hidden(res, col))
            continue;
        buf_text(out, between);
        between = ",";
        if (!PQgetisnull(res, row, col))
            kind_of(res, col)->cell(out, PQgetvalue(res, row, col), (size_t)PQgetlength(res, row, col));
    }
    buf_text(out, "\r\n");
}

struct parquet *rows_parquet_open(const struct rows *r, const struct parquet_codec *codec, size_t group_bytes)
{
    const PGresult *res = r->result;
    struct arena arena = { 0 };
    struct parquet_column *columns = arena_alloc(&arena, 2 * (size_t)PQnfields(res) * sizeof *columns);
    size_t count = 0;
    for (int col = 0; col < PQnfields(res); col++) {
        if (is_hidden(res, col))
            continue;
        const struct kind *kind = kind_of(res, col);
        columns[count++] = (struct parquet_column){ PQfname(res, col), kind->parquet };
        if (kind->add == add_decimal)
            columns[count++] =
                (struct parquet_column){ arena_fmt(&arena, "%s_double", PQfname(res, col)), PARQUET_DOUBLE };
    }
    struct parquet *p = parquet_open(columns, count, codec, "daybookd version " DAYBOOK_VERSION, group_bytes);
    arena_release(&arena);
    return p;
}

void rows_parquet(struct parquet *p, const struct rows *r, int row, struct arena *arena)
{
    const PGresult *res = r->result;
    row += r->first;
    for (int col = 0; col < PQnfields(res); col++) {
        if (is_hidden(res, col))
            continue;
        const struct kind *kind = kind_of(res, col);
        if (!PQgetisnull(res, row, col)) {
            kind->add(p, PQgetvalue(res, row, col), (size_t)PQgetlength(res, row, col), arena);
            continue;
        }
        parquet_null(p);
        if (kind->add == add_decimal)
            parquet_null(p);
    }
}

const char *rows_time(const struct rows *r, int row, const struct column *column, struct arena *arena)
{
    struct buf out = { .arena = arena };
    const char *text = rows_text(r, row, column);
    put_time(&out, text, strlen(text));
    return arena_copy(arena, out.data + 1, out.len - 2);
}
