/* The items of a PostgreSQL array, written as its text: {"a","b c",NULL}. */
#ifndef DAYBOOK_CORE_BASE_ARRAY_TEXT_H
#define DAYBOOK_CORE_BASE_ARRAY_TEXT_H

#include "core/base/buf.h"

/* `item` NULL: the null of SQL. */
void array_text_add(struct buf *out, const char *item);
/* The finished text; of an empty array when nothing was added. */
const char *array_text_end(struct buf *out);

#endif
