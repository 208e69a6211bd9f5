/* Foreign text as a part of one line of a prompt. */
#include "core/line_text.h"

#include "core/utf8.h"

void line_text(struct buf *out, const char *text, size_t max)
{
    size_t count = 0, fits = out->len; /* where the text would end if it had to be cut */
    bool gap = false;
    while (*text) {
        const char *at = text;
        uint32_t c = utf8_next(&text);
        if (utf8_is_space(c) || utf8_is_control(c)) {
            gap = count > 0;
            continue;
        }
        if (count + gap + 1 > max) {
            out->len = fits;
            buf_text(out, "…");
            return;
        }
        if (gap)
            buf_char(out, ' ');
        count += gap + 1u;
        gap = false;
        if (c == '"')
            buf_char(out, '\'');
        else
            buf_add(out, at, (size_t)(text - at));
        if (count < max)
            fits = out->len;
    }
}
