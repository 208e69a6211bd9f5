/* Walks all pages of a list: for exports, and for sums over all rows. */
#ifndef DAYBOOK_HANDLERS_KIT_PAGES_H
#define DAYBOOK_HANDLERS_KIT_PAGES_H

#include "server/dispatch/query.h"

enum { PAGES_STREAM_BYTES = 32 * 1024 };

struct pages {
    const struct query *query;
    void *in;       /* the struct that the query's field table describes, with FIELD_PAGES */
    int64_t *limit; /* these two are members of it */
    struct cursor_values *cursor;
    /* `take` streams the page and sets `bytes` to its length. Pages have then as many rows as fit into
     * PAGES_STREAM_BYTES, so that an export holds little memory while its client is slow. */
    bool streams;
    int64_t bytes;
    /* Processes the first `count` rows. `step` is released after the page. */
    enum err (*take)(struct call *c, struct pages *p, const struct rows *r, int count, struct arena *step);
    void *arg;
    bool started; /* false for the first page */
};

/* The first members, for a struct `in_` with the members of FIELD_PAGES. */
#define PAGES_OF(query_, in_) .query = (query_), .in = (in_), .limit = &(in_)->limit, .cursor = &(in_)->cursor

/* Runs one statement per page of at most `most` rows, so that a slow client holds no connection and no
 * snapshot, and memory holds one page at a time. An empty list has one empty page. */
enum err pages_walk(struct call *c, struct pages *p, int64_t most) must_check;

/* Moves the cursor behind that row. Its values are in `kept`, which held those of the page before. */
void pages_cursor_after(const struct rows *r, int row, struct arena *kept, struct cursor_values *cursor);

#endif
