#include "core/base/array_text.h"

void array_text_add(struct buf *out, const char *item)
{
    buf_char(out, out->len ? ',' : '{');
    if (!item) {
        buf_text(out, "NULL");
        return;
    }
    char *to = buf_room(out, strlen(item) * 2 + 2);
    char *p = to;
    *p++ = '"';
    for (; *item; item++) {
        if (*item == '"' || *item == '\\')
            *p++ = '\\';
        *p++ = *item;
    }
    *p++ = '"';
    out->len += (size_t)(p - to);
}

const char *array_text_end(struct buf *out)
{
    if (!out->len)
        buf_char(out, '{');
    buf_char(out, '}');
    return buf_string(out);
}
