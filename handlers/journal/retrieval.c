/* Retrievals: the searches on record, and the text that each of them gave. */
#include "handlers/journal/journal.h"
#include "handlers/kit/export.h"
#include "handlers/kit/reply.h"
#include "handlers/routes.h"
#include "server/dispatch/query.h"

struct retrieval_in {
    const char *id, *deployment_id, *kind, *symbol, *memory_id, *agent_name, *model_call_id, *since, *until,
        *as_of, *format;
    int64_t limit;
    struct cursor_values cursor;
};

/* clang-format off */
#define R(from, kind_, member, ...) FIELD(from, kind_, struct retrieval_in, member, __VA_ARGS__)

static const struct field get_fields[] = { FIELD_ID(struct retrieval_in), FIELD_AS_OF(struct retrieval_in), END_FIELDS };
#define FILTER \
    JOURNAL_FILTER(struct retrieval_in), \
    JOURNAL_FILTER_AUTHOR(struct retrieval_in), \
    R(FROM_QUERY, KIND_CHOICE, kind, .choices = CHOICES("episodic", "memories")), \
    R(FROM_QUERY, KIND_UUID, memory_id)
static const struct field list_fields[] = { FILTER, FIELD_PAGE(struct retrieval_in), END_FIELDS };
static const struct field export_fields[] = { FILTER, FIELD_EXPORT(struct retrieval_in), END_FIELDS };
/* clang-format on */

COLUMNS(retrieval, rendered);
QUERY(retrieval_get, MEMORY_RETRIEVAL_GET, get_fields, READS(retrieval), .missing = "memory retrieval {id}");
QUERY(retrieval_list, MEMORY_RETRIEVAL_LIST, list_fields);
QUERY(retrieval_export, MEMORY_RETRIEVAL_LIST, export_fields);

/* A search of the episodic memory rendered no text. */
static enum err render_retrieval(struct call *c, const struct rows *r)
{
    const char *rendered = rows_text(r, 0, &retrieval.rendered);
    if (rendered && call_prefers(c, "text/markdown"))
        return call_reply_text(c, 200, "text/markdown; charset=utf-8", rendered);
    return reply_row(c, 200, r);
}

#define IN(table) INPUT(table, struct retrieval_in)

const struct route retrieval_routes[] = {
    { GET, "/v1/memory_retrievals", .query = &retrieval_list, IN(list_fields), .role = ROLE_READER,
      .waits = true },
    { GET, "/v1/memory_retrievals/export", export_route, .exports = &retrieval_export, IN(export_fields),
      .role = ROLE_READER, .waits = true },
    { GET, "/v1/memory_retrievals/{id}", .query = &retrieval_get, .render = render_retrieval, IN(get_fields),
      .role = ROLE_READER },
    END_ROUTES,
};
