/* Cells of CSV (RFC 4180) that a spreadsheet shows and does not run. */
#ifndef DAYBOOK_CORE_BASE_CSV_H
#define DAYBOOK_CORE_BASE_CSV_H

#include "core/base/buf.h"

/* Appends text as a cell: in quotes where it needs them. A text that a spreadsheet would take for a formula
 * (it starts with = + - @, a tab or a line end) gets a ' in front. */
void csv_text(struct buf *out, const char *text, size_t len);

#endif
