/* Functions of the ledger without storage: what a tick would change, and the regime of a series of bars. */
#include <stdlib.h>
#include <string.h>

#include "core/base/time_text.h"
#include "core/ledger/regime.h"
#include "core/ledger/trade_members.h"
#include "core/reflect/lessons_hash.h"
#include "handlers/kit/fields.h"
#include "handlers/ledger/tick_body.h"
#include "handlers/ledger/trade_rows.h"
#include "handlers/routes.h"

/* ---- materialize ---- */

/* clang-format off */
/* The members of an open trade in a request: those of FORM_OPEN_ROW, with their limits. Their values go to a
 * struct trade by the table in core/ledger/trade_members.c. */
#define OPEN_MEMBERS(ROW) \
    ROW(KIND_UUID, trade_id) \
    ROW(KIND_LINE, symbol, .required = true, .min = 1, .max = 64) \
    ROW(KIND_CHOICE, side, .required = true, .choices = trade_side_names) \
    ROW(KIND_TIME, entry_tick_at, .required = true) \
    ROW(KIND_NUMBER, entry_price, .required = true, .above_zero = true) \
    ROW(KIND_NUMBER, entry_size_usd, .required = true, .min = 0, .max = -1) \
    ROW(KIND_NUMBER, entry_leverage, .min = 0, .max = -1) \
    ROW(KIND_TEXT, entry_reason, .min = 1, .max = 2000) \
    ROW(KIND_UUID, entry_snapshot_id) \
    ROW(KIND_CHOICE, entry_regime_tag, .choices = regime_names) \
    ROW(KIND_LINE, entry_lessons_hash, .min = 16, .max = 16) \
    ROW(KIND_NUMBER, size_base, .required = true, .above_zero = true) \
    ROW(KIND_NUMBER, average_entry_price, .required = true, .above_zero = true) \
    ROW(KIND_NUMBER, realized_so_far_usd, .required = true) \
    ROW(KIND_NUMBER, mark_price, .required = true, .above_zero = true) \
    ROW(KIND_NUMBER, mfe_usd, .required = true, .min = 0, .max = -1) \
    ROW(KIND_NUMBER, mae_usd, .required = true) \
    ROW(KIND_NUMBER, fees_usd, .required = true)
#define OPEN_MEMBER(kind, member, ...) const char *member;
#define OPEN_FIELD(kind, member, ...) FIELD(FROM_BODY, kind, struct open_in, member, __VA_ARGS__),
/* clang-format on */

struct open_in {
    OPEN_MEMBERS(OPEN_MEMBER)
};
struct prev_in {
    const char *tick_at;
    struct objects open; /* of struct open_in */
    struct portfolio_in *portfolio;
};
struct materialize_in {
    struct prev_in *prev;
    struct tick_in *next;
    const char *lessons_hash;
};

/* clang-format off */
static const struct field open_fields[] = { OPEN_MEMBERS(OPEN_FIELD) END_FIELDS };
static const struct field prev_fields[] = {
    FIELD(FROM_BODY, KIND_TIME, struct prev_in, tick_at),
    FIELD(FROM_BODY, KIND_OBJECTS, struct prev_in, open, .min = 0, .max = MATERIALIZE_POSITIONS_MAX, SUB(open_fields, struct open_in)),
    FIELD(FROM_BODY, KIND_OBJECT, struct prev_in, portfolio, SUB(portfolio_fields, struct portfolio_in)),
    END_FIELDS,
};
static const struct field materialize_fields[] = {
    FIELD(FROM_BODY, KIND_OBJECT, struct materialize_in, prev, SUB(prev_fields, struct prev_in)),
    FIELD(FROM_BODY, KIND_OBJECT, struct materialize_in, next, .required = true, SUB(tick_body_fields, struct tick_in)),
    FIELD(FROM_BODY, KIND_LINE, struct materialize_in, lessons_hash, .min = 16, .max = 16),
    END_FIELDS,
};
/* clang-format on */

static int64_t time_of(const char *text)
{
    int64_t us = MATERIALIZE_NO_TICK;
    if (text)
        (void)time_text_parse(text, &us);
    return us;
}

/* False: a number is too large. The field table has checked everything else. */
static bool read_trade(struct arena *arena, const struct open_in *in, struct trade *out)
{
    bool fits = true;
    *out = (struct trade){ 0 };
    for (const struct field *f = open_fields; f->name; f++) {
        const struct trade_member *m = trade_members_find(f->name);
        const char *text = *(const char *const *)(const void *)((const char *)in + f->offset);
        fits &= !text || trade_members_take(m, text, arena, out);
    }
    return fits;
}

static bool is_hash(const char *text)
{
    return !text || lessons_hash_is_valid(text);
}

static enum err bad_hash(struct call *c, const char *name)
{
    return problem_field(&c->problem, name, FAULT_INVALID_CHARACTER,
                         "must be 16 lower-case hexadecimal digits");
}

static enum err read_open_rows(struct call *c, const struct prev_in *prev, struct trade **rows, size_t *count)
{
    enum err found = OK;
    *count = prev->open.count;
    *rows = arena_alloc(&c->arena, (*count + 1) * sizeof **rows);
    for (size_t i = 0; i < *count; i++) {
        const bool fits = read_trade(&c->arena, (const struct open_in *)prev->open.items + i, &(*rows)[i]);
        const char *name = arena_fmt(&c->arena, "prev.open[%zu]", i);
        if (!fits)
            found = problem_field(&c->problem, name, FAULT_OUT_OF_RANGE,
                                  "has a number with more than 20 digits before the decimal point");
        if (decimal_sign((*rows)[i].mae_usd) > 0)
            found = problem_field(&c->problem, arena_fmt(&c->arena, "%s.mae_usd", name), FAULT_OUT_OF_RANGE,
                                  "must be at most 0");
        if (!is_hash((*rows)[i].entry_lessons_hash))
            found = bad_hash(c, arena_fmt(&c->arena, "%s.entry_lessons_hash", name));
        for (size_t before = 0; before < i; before++)
            if (strcmp((*rows)[before].symbol, (*rows)[i].symbol) == 0)
                found = problem_field(&c->problem, "prev.open", FAULT_DUPLICATE_ITEM, "has two trades of %s",
                                      (*rows)[i].symbol);
    }
    return found;
}

static enum err apply_tick(struct call *c, const struct trade *rows, size_t count, const struct tick_in *in,
                           const char *prefix, int64_t last_us, struct materialized *m)
{
    struct tick tick;
    TRY(tick_body_build(c, &c->arena, in, prefix, &tick));
    if (tick.tick_us <= last_us)
        return tick_body_out_of_order(c, "prev.tick_at", last_us, tick.tick_us);
    enum materialize_status status = materialize(&c->arena, rows, count, &tick, last_us, m);
    return status == MATERIALIZED ? OK : tick_body_problem(c, status, m->symbol, prefix);
}

/* A portfolio without a ledger: every position counts as opened at prev.tick_at. */
static enum err read_portfolio(struct call *c, const struct prev_in *prev, struct trade **rows, size_t *count)
{
    struct materialized m;
    if (prev->open.items)
        return problem_field(&c->problem, "prev.portfolio", FAULT_REPEATED,
                             "cannot be combined with prev.open");
    if (!prev->tick_at)
        return problem_field(&c->problem, "prev.tick_at", FAULT_REQUIRED, "is required with prev.portfolio");
    const struct tick_in tick = { .tick_at = prev->tick_at, .portfolio = prev->portfolio };
    TRY(apply_tick(c, NULL, 0, &tick, "prev.", MATERIALIZE_NO_TICK, &m));
    *rows = materialize_open_rows(&c->arena, &m, count);
    return OK;
}

static enum err materialize_post(struct call *c)
{
    static const struct prev_in nothing;
    const struct materialize_in *in = c->in;
    const struct prev_in *prev = in->prev ? in->prev : &nothing;
    struct trade *rows;
    size_t count;
    struct materialized m;
    if (!is_hash(in->lessons_hash))
        return bad_hash(c, "lessons_hash");
    TRY((prev->portfolio ? read_portfolio : read_open_rows)(c, prev, &rows, &count));
    TRY(apply_tick(c, rows, count, in->next, "next.", time_of(prev->tick_at), &m));
    tick_body_complete(&c->arena, in->next, in->lessons_hash, &m);
    rows = materialize_open_rows(&c->arena, &m, &count);
    struct buf *out = call_reply_json(c, 200);
    buf_text(out, "{\"ops\":");
    trade_rows_ops_json(out, &m);
    buf_text(out, ",\"open\":");
    trade_rows_json(out, rows, count);
    buf_text(out, ",\"unmatched_fees\":");
    trade_rows_fees_json(out, &m);
    buf_char(out, '}');
    return OK;
}

/* ---- regime ---- */

enum { REGIME_BARS_MAX = 50000 };

struct thresholds_in {
    const char *trend, *vol;
    int64_t min_bars;
};
struct classify_in {
    struct texts bars;
    struct thresholds_in *thresholds;
};

#define DEFAULT_TREND TEXT_OF(REGIME_DEFAULT_TREND)
#define DEFAULT_VOL   TEXT_OF(REGIME_DEFAULT_VOL)
static const struct thresholds_in default_thresholds = { DEFAULT_TREND, DEFAULT_VOL,
                                                         REGIME_DEFAULT_MIN_BARS };

/* clang-format off */
static const struct field thresholds_fields[] = {
    FIELD(FROM_BODY, KIND_NUMBER, struct thresholds_in, trend, .min = 0, .max = 100, .fallback = DEFAULT_TREND),
    FIELD(FROM_BODY, KIND_NUMBER, struct thresholds_in, vol, .min = 0, .max = 100, .fallback = DEFAULT_VOL),
    FIELD(FROM_BODY, KIND_INT, struct thresholds_in, min_bars, .min = 2, .max = REGIME_BARS_MAX, .fallback = TEXT_OF(REGIME_DEFAULT_MIN_BARS)),
    END_FIELDS,
};
static const struct field regime_fields[] = {
    FIELD(FROM_BODY, KIND_NUMBERS, struct classify_in, bars, .required = true, .above_zero = true, .min = 0, .max = REGIME_BARS_MAX),
    FIELD(FROM_BODY, KIND_OBJECT, struct classify_in, thresholds, SUB(thresholds_fields, struct thresholds_in)),
    END_FIELDS,
};
/* clang-format on */

static enum err regime_post(struct call *c)
{
    const struct classify_in *in = c->in;
    const struct thresholds_in *given = in->thresholds ? in->thresholds : &default_thresholds;
    const struct regime_thresholds thresholds = { strtod(given->trend, NULL), strtod(given->vol, NULL),
                                                  (size_t)given->min_bars };
    double *closes = arena_alloc(&c->arena, (in->bars.count + 1) * sizeof *closes);
    for (size_t i = 0; i < in->bars.count; i++)
        closes[i] = strtod(in->bars.items[i], NULL);
    struct buf *out = call_reply_json(c, 200);
    buf_fmt(out, "{\"regime\":\"%s\",\"bars\":%zu,\"thresholds\":{\"trend\":%s,\"vol\":%s,\"min_bars\":%zu}}",
            regime_names[regime_classify(closes, in->bars.count, &thresholds)], in->bars.count, given->trend,
            given->vol, thresholds.min_bars);
    return OK;
}

const struct route materialize_routes[] = {
    { POST, "/v1/materialize", materialize_post, .fields = materialize_fields,
      .in_size = sizeof(struct materialize_in), .role = ROLE_READER, .waits = true, .safe = true },
    { POST, "/v1/regime", regime_post, .fields = regime_fields, .in_size = sizeof(struct classify_in),
      .role = ROLE_READER, .waits = true, .safe = true },
    END_ROUTES,
};
