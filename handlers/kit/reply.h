/* Answers that several resources give. */
#ifndef DAYBOOK_HANDLERS_KIT_REPLY_H
#define DAYBOOK_HANDLERS_KIT_REPLY_H

#include "server/dispatch/query.h"

/* 201 with the first row as the document, and its place: `path` with the row's id behind it. */
enum err reply_created(struct call *c, const struct rows *r, const char *path, const struct column *id);
/* The first row as the document. */
enum err reply_row(struct call *c, int status, const struct rows *r);

#endif
