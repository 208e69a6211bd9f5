/* Rows, and their conversion to JSON and CSV by column type. */
#include "db/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/csv.h"
#include "core/base/cursor.h"
#include "db/db.h"

struct rows {
    const struct column_map *map; /* NULL: not bound yet */
    PGresult *result;
    int *result_refs;
    int first, count; /* our range of the result */
};

static void release(void *what)
{
    const struct rows *r = what;
    conn_release_result(r->result, r->result_refs);
}

struct rows *rows_from_result(struct arena *arena, const struct op *op, PGresult *result)
{
    struct rows *r = arena_alloc(arena, sizeof *r);
    *r = (struct rows){ NULL, result, op->result_refs, op->first, op->count };
    if (!op->result_refs)
        r->count = PQntuples(result);
    arena_on_release(arena, release, r);
    return r;
}

int rows_count(const struct rows *r)
{
    return r->count;
}

/* ---- values by handle ---- */

void rows_bind(struct rows *r, const struct column_map *map)
{
    r->map = map;
}

/* In a shared result, the number of the request is the first column. */
static int position(const struct rows *r, int at)
{
    return at + (r->result_refs != NULL);
}

static int column_at(const struct rows *r, const struct column *column)
{
    const struct columns *set = r->map ? r->map->columns : NULL;
    size_t index = set ? (size_t)(column - set->first) : 0;
    if (!set || index >= set->count) {
        fprintf(stderr, "daybookd: code reads a column that is not in the column set of its rows (%s)\n",
                set ? set->names : "none");
        abort();
    }
    return position(r, r->map->at[index]);
}

static const char *text_at(const struct rows *r, int row, int col)
{
    row += r->first;
    return PQgetisnull(r->result, row, col) ? NULL : PQgetvalue(r->result, row, col);
}

const char *rows_text(const struct rows *r, int row, const struct column *column)
{
    return text_at(r, row, column_at(r, column));
}

size_t rows_bytes(const struct rows *r, int row, const struct column *column)
{
    return (size_t)PQgetlength(r->result, r->first + row, column_at(r, column));
}

void rows_cursor(const struct rows *r, int row, struct arena *arena, struct cursor_values *values)
{
    values->count = r->map->cursor[1] < 0 ? 1 : 2;
    for (int i = 0; i < values->count; i++)
        values->value[i] = arena_text(arena, text_at(r, row, position(r, r->map->cursor[i])));
}

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

/* "2026-06-04 10:00:00.5+00" becomes "2026-06-04T10:00:00.5Z"; infinity becomes null. */
static void put_time(struct buf *out, const char *text, size_t len)
{
    if (len < 22 || text[10] != ' ') {
        buf_text(out, "null");
        return;
    }
    char *to = buf_room(out, len + 2);
    to[0] = '"';
    memcpy(to + 1, text, len - 3);
    to[11] = 'T';
    to[len - 2] = 'Z';
    to[len - 1] = '"';
    out->len += len;
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

/* Types that are not listed become JSON strings. */
static const struct {
    Oid type;
    void (*put)(struct buf *out, const char *text, size_t len);
} kinds[] = {
    { TYPE_BOOL, put_bool },        { TYPE_INT8, put_raw },      { TYPE_INT2, put_raw },
    { TYPE_INT4, put_raw },         { TYPE_NUMERIC, put_float }, { TYPE_FLOAT4, put_float },
    { TYPE_FLOAT8, put_float },     { TYPE_JSON, put_raw },      { TYPE_JSONB, put_raw },
    { TYPE_TIMESTAMPTZ, put_time }, { TYPE_TEXTS, put_array },   { TYPE_UUIDS, put_array },
};

static void put_value(struct buf *out, const PGresult *res, int row, int col)
{
    if (PQgetisnull(res, row, col)) {
        buf_text(out, "null");
        return;
    }
    const char *text = PQgetvalue(res, row, col);
    size_t len = (size_t)PQgetlength(res, row, col);
    Oid type = PQftype(res, col);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].type == type) {
            kinds[i].put(out, text, len);
            return;
        }
    buf_json_text(out, text, len);
}

void rows_members(struct buf *out, const struct rows *r, int row)
{
    const PGresult *res = r->result;
    for (int col = 0; col < PQnfields(res); col++) {
        const char *name = PQfname(res, col);
        if (name[0] == '_')
            continue;
        buf_json_key(out, name);
        put_value(out, res, r->first + row, col);
    }
}

void rows_json(struct buf *out, const struct rows *r, int row)
{
    buf_char(out, '{');
    rows_members(out, r, row);
    buf_char(out, '}');
}

/* ---- CSV ---- */

static void cell_time(struct buf *out, const char *text, size_t len)
{
    if (len < 22 || text[10] != ' ')
        return; /* infinity */
    buf_add(out, text, 10);
    buf_char(out, 'T');
    buf_add(out, text + 11, len - 14);
    buf_char(out, 'Z');
}

/* Types that are not listed are text. */
static const struct {
    Oid type;
    void (*put)(struct buf *out, const char *text, size_t len);
} cells[] = {
    { TYPE_BOOL, put_bool },   { TYPE_INT8, put_raw },   { TYPE_INT2, put_raw },
    { TYPE_INT4, put_raw },    { TYPE_FLOAT4, put_raw }, { TYPE_FLOAT8, put_raw },
    { TYPE_NUMERIC, put_raw }, { TYPE_UUID, put_raw },   { TYPE_TIMESTAMPTZ, cell_time },
};

static void put_cell(struct buf *out, const PGresult *res, int row, int col)
{
    const char *text = PQgetvalue(res, row, col); /* empty for null */
    size_t len = (size_t)PQgetlength(res, row, col);
    Oid type = PQftype(res, col);
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        if (cells[i].type == type) {
            if (len)
                cells[i].put(out, text, len);
            return;
        }
    csv_text(out, text, len);
}

void rows_csv_names(struct buf *out, const struct rows *r)
{
    for (int col = 0; col < PQnfields(r->result); col++)
        if (PQfname(r->result, col)[0] != '_')
            buf_fmt(out, "%s%s", col ? "," : "", PQfname(r->result, col));
    buf_text(out, "\r\n");
}

void rows_csv(struct buf *out, const struct rows *r, int row)
{
    for (int col = 0; col < PQnfields(r->result); col++) {
        if (PQfname(r->result, col)[0] == '_')
            continue;
        if (col)
            buf_char(out, ',');
        put_cell(out, r->result, r->first + row, col);
    }
    buf_text(out, "\r\n");
}

const char *rows_time(const struct rows *r, int row, const struct column *column, struct arena *arena)
{
    struct buf out = { .arena = arena };
    const char *text = rows_text(r, row, column);
    put_time(&out, text, strlen(text));
    return arena_copy(arena, out.data + 1, out.len - 2);
}
