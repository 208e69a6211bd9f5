/* The search of POST /v1/memories/search, for other resources that show related memories. */
#ifndef DAYBOOK_HANDLERS_JOURNAL_RELATED_H
#define DAYBOOK_HANDLERS_JOURNAL_RELATED_H

#include "server/dispatch/call.h"

struct memory_search;

struct related_in {
    const char *text, *as_of, *deployment_id; /* the last two may be NULL */
    int64_t k, max_tokens;
};

/* Runs the search. Waits, so never inside a transaction. */
enum err related_find(struct call *c, const struct related_in *in, struct memory_search **search) must_check;
/* Records it and adds its response, as an object. */
enum err related_put(struct call *c, struct buf *out, const struct memory_search *search) must_check;
/* Call it after the transaction. */
void related_end(struct call *c, const struct memory_search *search);

#endif
