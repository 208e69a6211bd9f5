/* Walks all pages of a list: for exports, and for sums over all rows. */
#ifndef DAYBOOK_HANDLERS_KIT_PAGES_H
#define DAYBOOK_HANDLERS_KIT_PAGES_H

#include "server/dispatch/query.h"

enum { PAGES_STREAM_BYTES = 32 * 1024 };

/* The field table of the query must contain FIELD_PAGES; `in` is the struct that it describes. */
struct pages {
    const struct query *query;
    void *in;
    int64_t limit; /* most rows per page */
    /* `take` streams the page and sets `bytes` to its length. Pages have then as many rows as fit into
     * PAGES_STREAM_BYTES, so that an export holds little memory while its client is slow. */
    bool streams;
    int64_t bytes;
    /* Processes the first `count` rows. `step` is released after the page. */
    enum err (*take)(struct call *c, struct pages *p, const struct rows *r, int count, struct arena *step);
    void *arg;
    bool started; /* false for the first page */
    char cursor[2][64];
};

/* Runs one statement per page, so that a slow client holds no connection and no snapshot, and memory holds
 * one page at a time. An empty list has one empty page. */
enum err pages_walk(struct call *c, struct pages *p) must_check;

#endif
