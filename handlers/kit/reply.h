/* Responses that several resources share. */
#ifndef DAYBOOK_HANDLERS_KIT_REPLY_H
#define DAYBOOK_HANDLERS_KIT_REPLY_H

#include "server/dispatch/query.h"

/* 201 with the first row as the body and the Location `path`/<id>. */
enum err reply_created(struct call *c, const struct rows *r, const char *path, const struct column *id);
/* The first row as the body. */
enum err reply_row(struct call *c, int status, const struct rows *r);

/* Marks a reply that lacks `pending` vectors: nobody stores it, and the background job looks for them,
 * because another instance may have left them. 0: nothing is lacking. */
void reply_lacks(struct call *c, int64_t pending);

#endif
