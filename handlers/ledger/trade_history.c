/* Reads of the trade ledger: lists, single trades, statistics and exports. */
#include <string.h>

#include "core/ledger/trade.h"
#include "core/ledger/trade_stats.h"
#include "handlers/kit/export.h"
#include "handlers/kit/fields.h"
#include "handlers/kit/pages.h"
#include "handlers/routes.h"

/* The input of all trade routes. */
struct trade_in {
    const char *id, *as_of;
    const char *deployment_id, *skill_id, *version, *symbol, *side, *status, *regime, *lessons_hash,
        *exit_reason;
    const char *entry_since, *entry_until, *exit_since, *exit_until;
    const char *sort, *group_by, *format;
    struct cursor_values cursor;
    int64_t limit;
};

/* clang-format off */
#define T(from, kind, member, ...) FIELD(from, kind, struct trade_in, member, __VA_ARGS__)
#define AS_OF  FIELD_AS_OF(struct trade_in)
#define FILTER AS_OF, \
    T(FROM_QUERY, KIND_UUID, deployment_id), \
    T(FROM_QUERY, KIND_NAME, skill_id), \
    T(FROM_QUERY, KIND_NAME, version), \
    T(FROM_QUERY, KIND_LINE, symbol, .min = 1, .max = 64), \
    T(FROM_QUERY, KIND_CHOICE, side, .choices = trade_side_names), \
    T(FROM_QUERY, KIND_CHOICE, status, .choices = CHOICES("open", "closed")), \
    T(FROM_QUERY, KIND_LINE, regime, .min = 1, .max = 64), \
    T(FROM_QUERY, KIND_LINE, lessons_hash, .min = 1, .max = 64), \
    T(FROM_QUERY, KIND_TEXT, exit_reason, .min = 1, .max = 2000), \
    T(FROM_QUERY, KIND_TIME, entry_since), T(FROM_QUERY, KIND_TIME, entry_until), \
    T(FROM_QUERY, KIND_TIME, exit_since), T(FROM_QUERY, KIND_TIME, exit_until)
#define PAGES  FIELD_PAGES(struct trade_in)

static const struct field get_fields[] = { FIELD_ID(struct trade_in), AS_OF, END_FIELDS };
static const struct field list_fields[] = {
    FILTER,
    T(FROM_QUERY, KIND_CHOICE, sort, .fallback = "entry_desc",
      .choices = CHOICES("entry_desc", "entry_asc", "exit_desc", "exit_asc", "pnl_desc", "pnl_asc")),
    FIELD_PAGE(struct trade_in),
    END_FIELDS,
};
static const struct field stats_fields[] = {
    FILTER, PAGES,
    T(FROM_QUERY, KIND_CHOICE, group_by, .fallback = "none",
      .choices = CHOICES("symbol", "side", "regime", "lessons", "exit_reason", "day", "week", "month", "none")),
    END_FIELDS,
};
static const struct field export_fields[] = {
    FILTER, FIELD_EXPORT(struct trade_in),
    T(FROM_QUERY, KIND_CHOICE, sort, .fallback = "entry_asc", .choices = CHOICES("entry_asc", "entry_desc")),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(result, key, realized_pnl_usd, fees_usd, holding_minutes, mfe_usd);
QUERY(trade_get, TRADE_GET, get_fields, .missing = "trade {id}");
QUERY(trade_results, TRADE_STATS, stats_fields, READS(result));
QUERY(export_asc, TRADE_ENTRY_ASC_FILTERED, export_fields);
QUERY(export_desc, TRADE_ENTRY_DESC_FILTERED, export_fields);
QUERY(entry_desc, TRADE_ENTRY_DESC, list_fields);
QUERY(entry_desc_deployment, TRADE_ENTRY_DESC_DEPLOYMENT, list_fields);
QUERY(entry_desc_version, TRADE_ENTRY_DESC_VERSION, list_fields);
QUERY(entry_desc_filtered, TRADE_ENTRY_DESC_FILTERED, list_fields);
QUERY(entry_asc, TRADE_ENTRY_ASC, list_fields);
QUERY(entry_asc_deployment, TRADE_ENTRY_ASC_DEPLOYMENT, list_fields);
QUERY(entry_asc_version, TRADE_ENTRY_ASC_VERSION, list_fields);
QUERY(entry_asc_filtered, TRADE_ENTRY_ASC_FILTERED, list_fields);
QUERY(exit_desc, TRADE_EXIT_DESC, list_fields);
QUERY(exit_desc_deployment, TRADE_EXIT_DESC_DEPLOYMENT, list_fields);
QUERY(exit_desc_version, TRADE_EXIT_DESC_VERSION, list_fields);
QUERY(exit_desc_filtered, TRADE_EXIT_DESC_FILTERED, list_fields);
QUERY(exit_asc, TRADE_EXIT_ASC, list_fields);
QUERY(exit_asc_deployment, TRADE_EXIT_ASC_DEPLOYMENT, list_fields);
QUERY(exit_asc_version, TRADE_EXIT_ASC_VERSION, list_fields);
QUERY(exit_asc_filtered, TRADE_EXIT_ASC_FILTERED, list_fields);
QUERY(pnl_desc, TRADE_PNL_DESC, list_fields);
QUERY(pnl_asc, TRADE_PNL_ASC, list_fields);

/* ---- which query ---- */

/* The filters of a request, as far as they matter for the choice of an index. */
enum { BY_DEPLOYMENT = 1, BY_SKILL = 2, BY_VERSION = 4, BY_ENTRY = 8, BY_EXIT = 16, BY_MORE = 32 };

static const struct {
    size_t offset;
    unsigned by;
} filters[] = {
    { offsetof(struct trade_in, deployment_id), BY_DEPLOYMENT },
    { offsetof(struct trade_in, skill_id), BY_SKILL },
    { offsetof(struct trade_in, version), BY_VERSION },
    { offsetof(struct trade_in, entry_since), BY_ENTRY },
    { offsetof(struct trade_in, entry_until), BY_ENTRY },
    { offsetof(struct trade_in, exit_since), BY_EXIT },
    { offsetof(struct trade_in, exit_until), BY_EXIT },
    { offsetof(struct trade_in, symbol), BY_MORE },
    { offsetof(struct trade_in, side), BY_MORE },
    { offsetof(struct trade_in, status), BY_MORE },
    { offsetof(struct trade_in, regime), BY_MORE },
    { offsetof(struct trade_in, lessons_hash), BY_MORE },
    { offsetof(struct trade_in, exit_reason), BY_MORE },
};

static unsigned filtered_by(const struct trade_in *in)
{
    unsigned by = 0;
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (*(const char *const *)(const void *)((const char *)in + filters[i].offset))
            by |= filters[i].by;
    return by;
}

/* The first row whose sort and filters match is used: all filters of `by`, and any of `also`. Rows for which
 * an index has the order use a fast statement. */
enum { BY_ANYTHING = 63 };

static const struct {
    const char *sort;
    unsigned by, also;
    const struct query *query;
} plans[] = {
    { "entry_desc", 0, BY_ENTRY, &entry_desc },
    { "entry_desc", BY_DEPLOYMENT, BY_ENTRY, &entry_desc_deployment },
    { "entry_desc", BY_SKILL | BY_VERSION, BY_ENTRY, &entry_desc_version },
    { "entry_desc", 0, BY_ANYTHING, &entry_desc_filtered },
    { "entry_asc", 0, BY_ENTRY, &entry_asc },
    { "entry_asc", BY_DEPLOYMENT, BY_ENTRY, &entry_asc_deployment },
    { "entry_asc", BY_SKILL | BY_VERSION, BY_ENTRY, &entry_asc_version },
    { "entry_asc", 0, BY_ANYTHING, &entry_asc_filtered },
    { "exit_desc", 0, BY_EXIT, &exit_desc },
    { "exit_desc", BY_DEPLOYMENT, BY_EXIT, &exit_desc_deployment },
    { "exit_desc", BY_SKILL | BY_VERSION, BY_EXIT, &exit_desc_version },
    { "exit_desc", 0, BY_ANYTHING, &exit_desc_filtered },
    { "exit_asc", 0, BY_EXIT, &exit_asc },
    { "exit_asc", BY_DEPLOYMENT, BY_EXIT, &exit_asc_deployment },
    { "exit_asc", BY_SKILL | BY_VERSION, BY_EXIT, &exit_asc_version },
    { "exit_asc", 0, BY_ANYTHING, &exit_asc_filtered },
    { "pnl_desc", 0, BY_ANYTHING, &pnl_desc },
    { "pnl_asc", 0, BY_ANYTHING, &pnl_asc },
};

static const struct query *plan(const char *sort, unsigned by)
{
    size_t i = 0;
    while (strcmp(plans[i].sort, sort) != 0 || (by & ~plans[i].also) != plans[i].by)
        i++;
    return plans[i].query;
}

/* ---- a page ---- */

static enum err trade_list(struct call *c)
{
    const struct trade_in *in = c->in;
    return query_reply(c, 200, plan(in->sort, filtered_by(in)), in);
}

/* ---- export and statistics ---- */

static enum err trade_export(struct call *c)
{
    const struct trade_in *in = c->in;
    return export_rows(c, strcmp(in->sort, "entry_asc") == 0 ? &export_asc : &export_desc);
}

struct tally {
    bool grouped;
    struct trade_stats total;
    struct trade_groups groups;
};

static enum err stats_page(struct call *c, struct pages *p, const struct rows *r, int count,
                           struct arena *step)
{
    (void)c;
    (void)step;
    struct tally *t = p->arg;
    for (int row = 0; row < count; row++) {
        const struct trade_result one = {
            .gross_usd = row_decimal(r, row, &result.realized_pnl_usd),
            .fees_usd = row_decimal(r, row, &result.fees_usd),
            .holding_minutes = row_decimal(r, row, &result.holding_minutes),
            .mfe_usd = row_decimal(r, row, &result.mfe_usd),
        };
        trade_stats_add(&t->total, &one);
        struct trade_stats *group =
            t->grouped ? trade_stats_group(&t->groups, rows_text(r, row, &result.key)) : NULL;
        if (group)
            trade_stats_add(group, &one);
    }
    return OK;
}

static void put_tally(struct buf *out, const char *group_by, const struct tally *t)
{
    buf_fmt(out, "{\"group_by\":\"%s\",\"total\":{", group_by);
    trade_stats_json(out, &t->total);
    buf_text(out, "},\"groups\":[");
    for (size_t i = 0; i < t->groups.count; i++) {
        buf_text(out, i ? ",{\"key\":" : "{\"key\":");
        buf_json_string(out, t->groups.items[i]->key);
        trade_stats_json(out, &t->groups.items[i]->stats);
        buf_char(out, '}');
    }
    buf_text(out, "],\"truncated\":");
    buf_json_bool(out, t->groups.truncated);
    buf_char(out, '}');
}

static enum err trade_stats(struct call *c)
{
    struct trade_in *in = c->in;
    struct arena totals = { 0 };
    struct tally *t = arena_zero(&totals, sizeof *t);
    t->grouped = strcmp(in->group_by, "none") != 0;
    t->groups.arena = &totals;
    struct pages p = { PAGES_OF(&trade_results, in), .take = stats_page, .arg = t };
    enum err err = pages_walk(c, &p, 10000);
    if (err == OK)
        put_tally(call_reply_json(c, 200), in->group_by, t);
    arena_release(&totals);
    return err;
}

#define IN(table) INPUT(table, struct trade_in), .role = ROLE_READER

const struct route trade_history_routes[] = {
    { GET, "/v1/trade_history", trade_list, IN(list_fields), .waits = true },
    { GET, "/v1/trade_history/stats", trade_stats, IN(stats_fields), .waits = true },
    { GET, "/v1/trade_history/export", trade_export, IN(export_fields), .waits = true },
    { GET, "/v1/trade_history/{id}", .query = &trade_get, IN(get_fields) },
    END_ROUTES,
};
