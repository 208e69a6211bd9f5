/* Untrusted text as part of one line of a prompt. */
#ifndef DAYBOOK_CORE_BASE_LINE_TEXT_H
#define DAYBOOK_CORE_BASE_LINE_TEXT_H

#include "core/base/buf.h"

/* Appends valid UTF-8 so that it can end neither its line nor the quotes around it: each run of white space
 * and control characters becomes one space, none at the ends, double quotes become single ones, and
 * characters that show nothing or turn the direction are left out. Text longer than `max` characters is cut,
 * and the last character is then "…". */
void line_text(struct buf *out, const char *text, size_t max);

#endif
