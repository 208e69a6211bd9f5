/* Walks all pages of a list: for exports, and for sums over all rows. */
#include "handlers/kit/pages.h"

enum { FIRST_STREAMED = 8 }; /* rows of the first page, whose sizes are not known yet */

void pages_cursor_after(const struct rows *r, int row, struct arena *kept, struct cursor_values *cursor)
{
    arena_release(kept);
    rows_cursor(r, row, kept, cursor);
}

/* How many rows like those of the last page make a page of PAGES_STREAM_BYTES. */
static int64_t rows_that_fit(const struct pages *p, int count, int64_t most)
{
    const int64_t rows = p->bytes ? count * (int64_t)PAGES_STREAM_BYTES / p->bytes : most;
    return rows < 1 ? 1 : rows > most ? most : rows;
}

static enum err walk_page(struct call *c, struct pages *p, int64_t most, struct arena *step,
                          struct arena *kept, bool *more)
{
    struct rows *r;
    if (p->started && p->streams)
        TRY(call_stream_wait(c)); /* before the rows of this page are read */
    TRY(query_rows(c, p->query, p->in, step, &r));
    const int count = rows_count(r) > *p->limit ? (int)*p->limit : rows_count(r);
    *more = rows_count(r) > count;
    if (*more)
        pages_cursor_after(r, count - 1, kept, p->cursor);
    TRY(p->take(c, p, r, count, step));
    if (p->streams)
        *p->limit = rows_that_fit(p, count, most);
    return OK;
}

enum err pages_walk(struct call *c, struct pages *p, int64_t most)
{
    struct arena kept = { 0 };
    enum err err = OK;
    *p->limit = p->streams ? FIRST_STREAMED : most;
    *p->cursor = (struct cursor_values){ 0 };
    for (bool more = true; more && err == OK; p->started = true) {
        struct arena step = { 0 };
        call_yield(c);
        err = walk_page(c, p, most, &step, &kept, &more);
        arena_release(&step);
    }
    *p->cursor = (struct cursor_values){ 0 };
    arena_release(&kept);
    return err;
}
