/* CSV cells (RFC 4180) that no spreadsheet executes. */
#include "core/base/csv.h"

static bool has_any(const char *text, size_t len, const char *set)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] && strchr(set, text[i]))
            return true;
    return false;
}

/* Some spreadsheets read the full-width forms of = + - @ as formulas too. */
static bool is_formula(const char *text, size_t len)
{
    static const char *const wide[] = { "\xef\xbc\x9d", "\xef\xbc\x8b", "\xef\xbc\x8d", "\xef\xbc\xa0" };
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (len >= 3 && memcmp(text, wide[i], 3) == 0)
            return true;
    return has_any(text, len ? 1 : 0, "=+-@\t\r\n");
}

void csv_text(struct buf *out, const char *text, size_t len)
{
    bool formula = is_formula(text, len);
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
