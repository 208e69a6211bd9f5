/* Exports: all rows of a list, streamed in one of several formats. */
#include "handlers/kit/export.h"

static void put_line(struct buf *out, const struct rows *r, int row)
{
    rows_json(out, r, row);
    buf_char(out, '\n');
}

const struct export_format export_jsonl = { "jsonl", "application/x-ndjson", .row = put_line };

static enum err export_page(struct call *c, struct pages *p, const struct rows *r, int count,
                            struct arena *step)
{
    const struct export_format *format = *(const struct export_format *const *)p->arg;
    struct buf out = { .arena = step };
    if (!p->started) {
        TRY(call_stream_begin(c, format->content_type));
        if (format->head)
            format->head(&out, r);
    }
    for (int row = 0; row < count; row++)
        format->row(&out, r, row);
    p->bytes = (int64_t)out.len;
    return call_stream_write(c, out.data, out.len);
}

enum err export_run(struct call *c, struct pages *p, const struct export_format *format, int64_t most)
{
    p->streams = true;
    p->take = export_page;
    p->arg = &format;
    return pages_walk(c, p, most);
}
