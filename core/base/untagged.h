/* Untrusted text inside a tagged block of a prompt. */
#ifndef DAYBOOK_CORE_BASE_UNTAGGED_H
#define DAYBOOK_CORE_BASE_UNTAGGED_H

#include "core/base/buf.h"

/* Appends valid UTF-8 with every character that could be read as the start of a tag replaced by "&lt;", so
 * that it cannot end its block. */
void untagged_text(struct buf *out, const char *text);
/* The same in double quotes, on one line (core/base/line_text.h), cut to `max` characters. */
void untagged_quoted(struct buf *out, const char *text, size_t max);
/* The label and that line; nothing if `text` is NULL. */
void untagged_labelled(struct buf *out, const char *label, const char *text, size_t max);
/* Appends a name, such as a symbol: as it is if it is one plain word (`BTC-PERP`), else quoted. */
void untagged_name(struct buf *out, const char *name, size_t max);

#endif
