/* Walks all pages of a list: for exports, and for sums over all rows. */
#include "handlers/kit/pages.h"

#include <stdio.h>

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

static enum err walk_page(struct call *c, struct pages *p, struct arena *step, bool *more)
{
    struct rows *r;
    TRY(query_rows(c, p->query, p->in, step, &r));
    const int count = rows_count(r) > p->limit ? (int)p->limit : rows_count(r);
    *more = rows_count(r) > count;
    if (*more)
        set_cursor_after(p, r, count - 1, step);
    return p->take(c, p, r, count, step);
}

enum err pages_walk(struct call *c, struct pages *p)
{
    *(int64_t *)member(p, "limit") = p->limit;
    for (bool more = true; more; p->started = true) {
        struct arena step = { 0 };
        call_yield(c);
        enum err err = walk_page(c, p, &step, &more);
        arena_release(&step);
        TRY(err);
    }
    return OK;
}
