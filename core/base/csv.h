/* CSV cells (RFC 4180) that no spreadsheet executes. */
#ifndef DAYBOOK_CORE_BASE_CSV_H
#define DAYBOOK_CORE_BASE_CSV_H

#include "core/base/buf.h"

/* Appends text as a cell, quoted where necessary. Text that a spreadsheet would take for a formula (it
 * starts with = + - @, a tab or a line end) gets a leading '. */
void csv_text(struct buf *out, const char *text, size_t len);

#endif
