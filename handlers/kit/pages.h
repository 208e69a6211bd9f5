/* Whole lists, page after page: exports, and sums over all rows. */
#ifndef DAYBOOK_HANDLERS_KIT_PAGES_H
#define DAYBOOK_HANDLERS_KIT_PAGES_H

#include "server/dispatch/query.h"

/* The query's table has the rows FIELD_PAGES, and `in` is the struct that it describes. */
struct pages {
    const struct query *query;
    void *in;
    int64_t limit; /* rows of a page */
    /* Takes the first `count` rows. What it allocates for this page alone comes from `step`. */
    enum err (*take)(struct call *c, struct pages *p, const struct rows *r, int count, struct arena *step);
    void *arg;
    bool begun; /* this is not the first page */
    char cursor[2][64];
};

/* Each page is a statement of its own: a slow client holds no connection and no snapshot, and no more than
 * one page is in memory. An empty list is one empty page. */
enum err pages_walk(struct call *c, struct pages *p) must_check;

#endif
