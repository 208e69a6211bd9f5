/* Foreign text inside a block of a prompt that has tags around it. */
#ifndef DAYBOOK_CORE_BASE_UNTAGGED_H
#define DAYBOOK_CORE_BASE_UNTAGGED_H

#include "core/base/buf.h"

/* Valid UTF-8 with every sign that a reader could take for the start of a tag as "&lt;": it cannot end the
 * block that it stands in. */
void untagged_text(struct buf *out, const char *text);
/* The same in double quotes and in one line (core/base/line_text.h), cut to `max` characters. */
void untagged_quoted(struct buf *out, const char *text, size_t max);

#endif
