/* Opaque cursors: the sort key of the last row of a page, bound to the query that it came from. */
#ifndef DAYBOOK_CORE_BASE_CURSOR_H
#define DAYBOOK_CORE_BASE_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/buf.h"

enum { CURSOR_VALUES = 2 };

/* The sort key as text. A count of 0 means the first page. */
struct cursor_values {
    int count;
    const char *value[CURSOR_VALUES];
};

/* `scope` is a hash of the route and its filters: a cursor from other filters is rejected, not misread. */
void cursor_encode(struct buf *out, const struct cursor_values *values, uint64_t scope);
/* False for anything that cursor_encode did not produce for this scope. The values are valid UTF-8, but
 * anyone who knows the format can forge a cursor: the caller must check what they mean. */
bool cursor_decode(const char *text, uint64_t scope, struct arena *arena, struct cursor_values *values);

#endif
