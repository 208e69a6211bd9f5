/* Foreign text as a part of one line of a prompt. */
#ifndef DAYBOOK_CORE_BASE_LINE_TEXT_H
#define DAYBOOK_CORE_BASE_LINE_TEXT_H

#include "core/base/buf.h"

/* Valid UTF-8 with every run of white space and control characters as one space, none at the ends, double
 * quotes as single ones, and cut to `max` characters, the last of them then being "…": it can neither end its
 * line nor the quotes around it. */
void line_text(struct buf *out, const char *text, size_t max);

#endif
