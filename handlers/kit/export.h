/* Exports: all rows of a list, streamed in one of several formats. */
#ifndef DAYBOOK_HANDLERS_KIT_EXPORT_H
#define DAYBOOK_HANDLERS_KIT_EXPORT_H

#include "handlers/kit/pages.h"

struct export_format {
    const char *name, *content_type;
    void (*head)(struct buf *out, const struct rows *r); /* before the first row; NULL: nothing */
    void (*row)(struct buf *out, const struct rows *r, int row);
};

/* The format "jsonl": a line of JSON per row. */
extern const struct export_format export_jsonl;

/* Streams all pages, of at most `most` rows each. `p` names the query and its input (PAGES_OF). */
enum err export_run(struct call *c, struct pages *p, const struct export_format *format,
                    int64_t most) must_check;

#endif
