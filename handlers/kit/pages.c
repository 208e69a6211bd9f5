/* Walks all pages of a list: for exports, and for sums over all rows. */
#include "handlers/kit/pages.h"

#include <stdio.h>

enum { FIRST_STREAMED = 8 }; /* rows of the first page, whose sizes are not known yet */

static void *member(const struct pages *p, const char *name)
{
    return (char *)p->in + field_find(p->query->fields, name)->offset;
}

static void set_cursor_after(struct pages *p, const struct rows *r, int row, struct arena *step)
{
    struct cursor_values last;
    struct cursor_values *next = member(p, "cursor");
    rows_cursor(r, row, step, &last);
    for (int i = 0; i < 2; i++) {
        snprintf(p->cursor[i], sizeof p->cursor[i], "%s", last.value[i]);
        next->value[i] = p->cursor[i];
    }
    next->count = 2;
}

/* How many rows like those of the last page make a page of PAGES_STREAM_BYTES. */
static int64_t rows_that_fit(const struct pages *p, int count)
{
    const int64_t rows = p->bytes ? count * (int64_t)PAGES_STREAM_BYTES / p->bytes : p->limit;
    return rows < 1 ? 1 : rows > p->limit ? p->limit : rows;
}

static enum err walk_page(struct call *c, struct pages *p, struct arena *step, bool *more)
{
    struct rows *r;
    int64_t *limit = member(p, "limit");
    TRY(query_rows(c, p->query, p->in, step, &r));
    const int count = rows_count(r) > *limit ? (int)*limit : rows_count(r);
    *more = rows_count(r) > count;
    if (*more)
        set_cursor_after(p, r, count - 1, step);
    TRY(p->take(c, p, r, count, step));
    *limit = rows_that_fit(p, count);
    return OK;
}

enum err pages_walk(struct call *c, struct pages *p)
{
    *(int64_t *)member(p, "limit") = p->streams ? FIRST_STREAMED : p->limit;
    for (bool more = true; more; p->started = true) {
        struct arena step = { 0 };
        call_yield(c);
        if (p->started && p->streams)
            TRY(call_stream_wait(c)); /* before the rows of the next page are read */
        enum err err = walk_page(c, p, &step, &more);
        arena_release(&step);
        TRY(err);
    }
    return OK;
}
