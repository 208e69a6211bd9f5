/* Rows, and their values by handle. */
#include "db/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/cursor.h"
#include "db/db.h"

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
