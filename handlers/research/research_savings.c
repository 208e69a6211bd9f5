/* The savings from reusing earlier research. */
#include "core/base/json_put.h"
#include "handlers/kit/fields.h"
#include "handlers/routes.h"
#include "server/dispatch/query.h"

enum { KINDS_MAX = 500 };

struct savings_in {
    const char *task_type, *since, *until, *as_of;
    int64_t limit;
};

/* clang-format off */
#define S(from, kind, member, ...) FIELD(from, kind, struct savings_in, member, __VA_ARGS__)
static const struct field savings_fields[] = {
    S(FROM_QUERY, KIND_LINE, task_type, .min = 1, .max = 64),
    S(FROM_QUERY, KIND_TIME, since),
    S(FROM_QUERY, KIND_TIME, until),
    FIELD_AS_OF(struct savings_in),
    { .name = "only_task", .from = COMPUTED, .kind = KIND_LINE, .offset = offsetof(struct savings_in, task_type) },
    S(COMPUTED, KIND_INT, limit),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(total, _calls_saved, _calls_made, _reuse_rate, _calls_priced, _saved_usd);
QUERY(research_savings, RESEARCH_SAVINGS, savings_fields, READS(total));

static void put_total(struct buf *out, const struct rows *r)
{
    static const struct {
        const char *name;
        const struct column *column;
        const char *none;
    } columns[] = {
        { "calls_saved", &total._calls_saved, "0" }, { "calls_made", &total._calls_made, "0" },
        { "reuse_rate", &total._reuse_rate, NULL },  { "calls_priced", &total._calls_priced, "0" },
        { "saved_usd", &total._saved_usd, NULL },
    };
    buf_text(out, "\"total\":{");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        json_put_raw(out, columns[i].name,
                     rows_count(r) ? rows_text(r, 0, columns[i].column) : columns[i].none);
    buf_char(out, '}');
}

static enum err savings(struct call *c, const struct rows *r)
{
    struct buf *out = call_reply_json(c, 200);
    buf_text(out, "{\"items\":[");
    for (int row = 0; row < rows_count(r) && row < KINDS_MAX; row++) {
        if (row)
            buf_char(out, ',');
        rows_json(out, r, row);
    }
    buf_text(out, "],");
    put_total(out, r);
    json_put_bool(out, "truncated", rows_count(r) > KINDS_MAX);
    buf_char(out, '}');
    return OK;
}

static enum err limit_kinds(struct call *c)
{
    struct savings_in *in = c->in;
    in->limit = KINDS_MAX;
    return OK;
}

const struct route savings_routes[] = {
    { GET, "/v1/research/savings", .prepare = limit_kinds, .query = &research_savings, .render = savings,
      INPUT(savings_fields, struct savings_in), .role = ROLE_READER, .waits = true },
    END_ROUTES,
};
