/* CSV cells (RFC 4180) that no spreadsheet executes. */
#include "core/base/csv.h"

static bool has_any(const char *text, size_t len, const char *set)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] && strchr(set, text[i]))
            return true;
    return false;
}

void csv_text(struct buf *out, const char *text, size_t len)
{
    bool formula = has_any(text, len ? 1 : 0, "=+-@\t\r\n");
    bool quoted = has_any(text, len, ",\"\r\n");
    if (quoted)
        buf_char(out, '"');
    if (formula)
        buf_char(out, '\'');
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"')
            buf_char(out, '"');
        buf_char(out, text[i]);
    }
    if (quoted)
        buf_char(out, '"');
}
