/* Exports: all rows of a list, streamed in one of several formats. */
#include "handlers/kit/export.h"

#include <string.h>

#include "handlers/kit/export_internal.h"
#include "handlers/kit/pages.h"

enum { PAGE_ROWS = 1000 };

const char *const export_names[] = { "ndjson", "csv", "parquet", NULL };

static void put_line(struct buf *out, const struct rows *r, int row)
{
    rows_json(out, r, row);
    buf_char(out, '\n');
}

static const struct export_text ndjson = { "ndjson", "application/x-ndjson", .row = put_line };
static const struct export_text csv = { "csv", "text/csv; charset=utf-8; header=present", rows_csv_names,
                                        rows_csv };

/* `text` NULL: Parquet. */
static const struct {
    const char *name;
    const struct export_text *text;
} formats[] = { { "ndjson", &ndjson }, { "jsonl", &ndjson }, { "csv", &csv }, { "parquet", NULL } };

struct export {
    const struct export_text *text;
    struct export_parquet *file;
    struct arena arena; /* of the whole export */
};

/* "/v1/orders/export" as CSV becomes "orders.csv". */
static const char *file_name(struct call *c, const char *suffix)
{
    const char *resource = c->route->path + strlen("/v1/");
    return arena_fmt(&c->arena, "attachment; filename=\"%.*s.%s\"", (int)strcspn(resource, "/"), resource,
                     suffix);
}

static enum err begin(struct call *c, const char *suffix, const char *content_type)
{
    c->reply.disposition = file_name(c, suffix);
    return call_stream_begin(c, content_type);
}

static enum err text_page(struct call *c, struct pages *p, const struct rows *r, int count,
                          struct arena *step)
{
    const struct export_text *text = ((const struct export *)p->arg)->text;
    struct buf out = { .arena = step };
    if (!p->started) {
        TRY(begin(c, text->suffix, text->content_type));
        if (text->head)
            text->head(&out, r);
    }
    for (int row = 0; row < count; row++)
        text->row(&out, r, row);
    p->bytes = (int64_t)out.len;
    return call_stream_write(c, out.data, out.len);
}

static enum err parquet_page(struct call *c, struct pages *p, const struct rows *r, int count,
                             struct arena *step)
{
    struct export *e = p->arg;
    if (!p->started) {
        TRY(begin(c, "parquet", "application/vnd.apache.parquet"));
        e->file = export_parquet_open(r, &e->arena);
    }
    p->bytes = 0;
    for (int row = 0; row < count; row++)
        TRY(export_parquet_row(c, e->file, r, row, step, &p->bytes));
    return OK;
}

static enum err walk(struct call *c, const struct query *q, struct export *e)
{
    const struct query_plan *plan = q->plan;
    char *in = c->in;
    struct pages p = {
        .query = q,
        .in = in,
        .limit = (int64_t *)(void *)(in + plan->limit->offset),
        .cursor = (struct cursor_values *)(void *)(in + plan->cursor->offset),
        .streams = true,
        .take = e->text ? text_page : parquet_page,
        .arg = e,
    };
    TRY(pages_walk(c, &p, PAGE_ROWS));
    return e->text ? OK : export_parquet_end(c, e->file);
}

enum err export_as_text(struct call *c, const struct query *q, const struct export_text *text)
{
    struct export e = { .text = text };
    const enum err err = walk(c, q, &e);
    arena_release(&e.arena);
    return err;
}

/* The value of the request's field `format`, which is one of the table's names. */
static const char *format_of(const struct call *c)
{
    const struct field *format = field_find(c->route->fields, "format");
    return *(const char *const *)(const void *)((const char *)c->in + format->offset);
}

enum err export_rows(struct call *c, const struct query *q)
{
    const char *name = format_of(c);
    size_t i = 0;
    while (strcmp(formats[i].name, name) != 0)
        i++;
    return export_as_text(c, q, formats[i].text);
}

enum err export_route(struct call *c)
{
    return export_rows(c, c->route->exports);
}
