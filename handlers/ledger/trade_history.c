/* The trade ledger as it is read: lists, single trades, statistics and exports. */
#include <stdio.h>
#include <string.h>

#include "core/ledger/trade.h"
#include "core/ledger/trade_stats.h"
#include "db/db.h"
#include "handlers/kit/fields.h"
#include "handlers/routes.h"

/* Whatever a request about trades may carry. */
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
#define CHOICES(...) (const char *const[]){ __VA_ARGS__, NULL }
#define AS_OF  T(FROM_QUERY, KIND_TIME, as_of, .fallback = LATEST)
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
#define PAGES  T(COMPUTED, KIND_INT, limit), T(COMPUTED, KIND_CURSOR, cursor)

static const struct field get_fields[] = { T(FROM_PATH, KIND_UUID, id, .required = true), AS_OF, END_FIELDS };
static const struct field list_fields[] = {
    FILTER,
    T(FROM_QUERY, KIND_CHOICE, sort, .fallback = "entry_desc",
      .choices = CHOICES("entry_desc", "entry_asc", "exit_desc", "exit_asc", "pnl_desc", "pnl_asc")),
    T(FROM_QUERY, KIND_INT, limit, .min = 1, .max = 200, .fallback = "50"), T(FROM_QUERY, KIND_CURSOR, cursor),
    END_FIELDS,
};
static const struct field stats_fields[] = {
    FILTER, PAGES,
    T(FROM_QUERY, KIND_CHOICE, group_by, .fallback = "none",
      .choices = CHOICES("symbol", "side", "regime", "lessons", "exit_reason", "day", "week", "month", "none")),
    END_FIELDS,
};
static const struct field export_fields[] = {
    FILTER, PAGES,
    T(FROM_QUERY, KIND_CHOICE, format, .required = true, .choices = CHOICES("csv", "ndjson")),
    T(FROM_QUERY, KIND_CHOICE, sort, .fallback = "entry_asc", .choices = CHOICES("entry_asc", "entry_desc")),
    END_FIELDS,
};
/* clang-format on */

/* ---- which statement ---- */

/* What a request filters by, as far as it matters for an index. */
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

/* The first row of the sort that fits: filtered by exactly `by`, and perhaps by what is in `also`. Where an
 * index has the rows in order, the statement is a fast one. */
enum { BY_ANYTHING = 63 };

static const struct {
    const char *sort;
    unsigned by, also;
    const struct statement *statement;
} plans[] = {
    { "entry_desc", 0, BY_ENTRY, &TRADE_ENTRY_DESC },
    { "entry_desc", BY_DEPLOYMENT, BY_ENTRY, &TRADE_ENTRY_DESC_DEPLOYMENT },
    { "entry_desc", BY_SKILL | BY_VERSION, BY_ENTRY, &TRADE_ENTRY_DESC_VERSION },
    { "entry_desc", 0, BY_ANYTHING, &TRADE_ENTRY_DESC_FILTERED },
    { "entry_asc", 0, BY_ENTRY, &TRADE_ENTRY_ASC },
    { "entry_asc", BY_DEPLOYMENT, BY_ENTRY, &TRADE_ENTRY_ASC_DEPLOYMENT },
    { "entry_asc", BY_SKILL | BY_VERSION, BY_ENTRY, &TRADE_ENTRY_ASC_VERSION },
    { "entry_asc", 0, BY_ANYTHING, &TRADE_ENTRY_ASC_FILTERED },
    { "exit_desc", 0, BY_EXIT, &TRADE_EXIT_DESC },
    { "exit_desc", BY_DEPLOYMENT, BY_EXIT, &TRADE_EXIT_DESC_DEPLOYMENT },
    { "exit_desc", BY_SKILL | BY_VERSION, BY_EXIT, &TRADE_EXIT_DESC_VERSION },
    { "exit_desc", 0, BY_ANYTHING, &TRADE_EXIT_DESC_FILTERED },
    { "exit_asc", 0, BY_EXIT, &TRADE_EXIT_ASC },
    { "exit_asc", BY_DEPLOYMENT, BY_EXIT, &TRADE_EXIT_ASC_DEPLOYMENT },
    { "exit_asc", BY_SKILL | BY_VERSION, BY_EXIT, &TRADE_EXIT_ASC_VERSION },
    { "exit_asc", 0, BY_ANYTHING, &TRADE_EXIT_ASC_FILTERED },
    { "pnl_desc", 0, BY_ANYTHING, &TRADE_PNL_DESC },
    { "pnl_asc", 0, BY_ANYTHING, &TRADE_PNL_ASC },
};

static const struct statement *plan(const char *sort, unsigned by)
{
    size_t i = 0;
    while (strcmp(plans[i].sort, sort) != 0 || (by & ~plans[i].also) != plans[i].by)
        i++;
    return plans[i].statement;
}

/* ---- one and a page ---- */

static enum err trade_get(struct call *c)
{
    return db_reply(c, 200, &TRADE_GET);
}

static enum err trade_list(struct call *c)
{
    const struct trade_in *in = c->in;
    return db_reply(c, 200, plan(in->sort, filtered_by(in)));
}

/* ---- all of them ---- */

/* What every page is given to, and where the next one goes on. */
struct walk {
    const struct statement *statement;
    enum err (*take)(struct call *c, struct walk *w, const struct rows *r, int count);
    bool begun, more;
    char at[64], id[64];
};

static enum err walk_page(struct call *c, struct walk *w)
{
    struct trade_in *in = c->in;
    struct rows *r;
    TRY(db_rows(c, w->statement, &r));
    int count = rows_count(r) > in->limit ? (int)in->limit : rows_count(r);
    w->more = rows_count(r) > count;
    if (w->more) {
        snprintf(w->at, sizeof w->at, "%s", rows_text(r, count - 1, "_cursor_1"));
        snprintf(w->id, sizeof w->id, "%s", rows_text(r, count - 1, "_cursor_2"));
        in->cursor = (struct cursor_values){ 2, { w->at, w->id } };
    }
    return w->take(c, w, r, count);
}

/* Page by page, each with a statement of its own: a slow client holds no connection and no snapshot, and the
 * memory of a page is that of all. */
static enum err walk(struct call *c, struct walk *w)
{
    enum err err = OK;
    do {
        struct db_step step;
        call_breathe(c);
        db_step_begin(c, &step);
        err = walk_page(c, w);
        db_step_end(c, &step);
        w->begun = true;
    } while (err == OK && w->more);
    return err;
}

static void json_line(struct buf *out, const struct rows *r, int row)
{
    rows_json(out, r, row);
    buf_char(out, '\n');
}

static enum err export_page(struct call *c, struct walk *w, const struct rows *r, int count)
{
    const struct trade_in *in = c->in;
    bool csv = strcmp(in->format, "csv") == 0;
    struct buf out = { .arena = &c->arena };
    if (!w->begun)
        TRY(stream_begin(c, csv ? "text/csv; charset=utf-8; header=present" : "application/x-ndjson"));
    if (!w->begun && csv)
        rows_csv_names(&out, r);
    for (int row = 0; row < count; row++)
        (csv ? rows_csv : json_line)(&out, r, row);
    return stream_write(c, out.data, out.len);
}

static enum err trade_export(struct call *c)
{
    struct trade_in *in = c->in;
    in->limit = 1000;
    struct walk w = { .statement = plan(in->sort, BY_MORE), .take = export_page };
    return walk(c, &w);
}

struct tally {
    struct walk walk;
    bool grouped;
    struct trade_stats total;
    struct trade_groups groups;
};

static struct decimal number(const struct rows *r, int row, const char *column)
{
    struct decimal value = { 0 };
    const char *text = rows_text(r, row, column);
    if (text)
        (void)decimal_parse(text, &value); /* what does not fit is not valid, and is null in the end */
    return value;
}

static enum err stats_page(struct call *c, struct walk *w, const struct rows *r, int count)
{
    (void)c;
    struct tally *t = container_of(w, struct tally, walk);
    for (int row = 0; row < count; row++) {
        const struct trade_result result = {
            .gross_usd = number(r, row, "realized_pnl_usd"),
            .fees_usd = number(r, row, "fees_usd"),
            .holding_minutes = number(r, row, "holding_minutes"),
            .mfe_usd = number(r, row, "mfe_usd"),
        };
        trade_stats_add(&t->total, &result);
        struct trade_stats *group =
            t->grouped ? trade_stats_group(&t->groups, rows_text(r, row, "key")) : NULL;
        if (group)
            trade_stats_add(group, &result);
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
    struct arena kept = { 0 };
    struct tally *t = arena_zero(&kept, sizeof *t);
    t->walk = (struct walk){ .statement = &TRADE_STATS, .take = stats_page };
    t->grouped = strcmp(in->group_by, "none") != 0;
    t->groups.arena = &kept;
    in->limit = 10000;
    enum err err = walk(c, &t->walk);
    if (err == OK)
        put_tally(reply_json(c, 200), in->group_by, t);
    arena_release(&kept);
    return err;
}

#define IN(table) .fields = table, .in_size = sizeof(struct trade_in), .role = ROLE_READER

const struct route trade_history_routes[] = {
    { GET, "/v1/trade_history", trade_list, IN(list_fields), .waits = true },
    { GET, "/v1/trade_history/stats", trade_stats, IN(stats_fields), .waits = true },
    { GET, "/v1/trade_history/export", trade_export, IN(export_fields), .waits = true },
    { GET, "/v1/trade_history/{id}", trade_get, IN(get_fields) },
    END_ROUTES,
};
