/* Exports: all rows of a list, streamed in one of several formats.
 *
 * A resource adds an export with a field table that ends in FIELD_EXPORT, a query, and a row in its route
 * table:
 *
 *     QUERY(order_export, ORDER_EXPORT, export_fields);
 *     { GET, "/v1/orders/export", export_route, .exports = &order_export, IN(export_fields), .waits = true },
 */
#ifndef DAYBOOK_HANDLERS_KIT_EXPORT_H
#define DAYBOOK_HANDLERS_KIT_EXPORT_H

#include "core/base/cursor.h"
#include "handlers/kit/fields.h"
#include "server/dispatch/query.h"

/* "ndjson", "csv", "parquet" */
extern const char *const export_names[];

/* For a struct with the members limit, cursor and format. */
/* clang-format off */
#define FIELD_EXPORT(type) FIELD_EXPORT_OF(type, export_names)
#define FIELD_EXPORT_OF(type, names) FIELD_PAGES(type), \
    FIELD(FROM_QUERY, KIND_CHOICE, type, format, .required = true, .choices = (names))
/* clang-format on */

/* A format of text, for a resource that has one of its own. */
struct export_text {
    const char *suffix, *content_type;
    void (*head)(struct buf *out, const struct rows *r); /* before the first row; NULL: nothing */
    void (*row)(struct buf *out, const struct rows *r, int row);
};

/* The handler of a route with `exports`. */
enum err export_route(struct call *c) must_check;
/* Streams the rows of a query, of the route's field table, in the format that the request names. */
enum err export_rows(struct call *c, const struct query *q) must_check;
enum err export_as_text(struct call *c, const struct query *q, const struct export_text *text) must_check;

#endif
