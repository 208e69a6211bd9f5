/* The items of a PostgreSQL array, written as its text: {"a","b c",NULL}. */
#ifndef DAYBOOK_CORE_BASE_ARRAY_TEXT_H
#define DAYBOOK_CORE_BASE_ARRAY_TEXT_H

#include "core/base/buf.h"

/* Appends an item; NULL is the SQL null. */
void array_text_add(struct buf *out, const char *item);
/* Ends the array and returns its text. */
const char *array_text_end(struct buf *out);

#endif
