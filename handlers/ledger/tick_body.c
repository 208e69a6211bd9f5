/* The body of a tick: its fields, and their conversion to the input of the materializer. */
#include "handlers/ledger/tick_body.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/time_text.h"
#include "core/ledger/regime.h"
#include "core/ledger/tick_hash.h"
#include "core/reflect/lessons_hash.h"
#include "handlers/kit/instant.h"

enum { SYMBOL_CHARS = 64, BARS_SYMBOLS = 200, BARS_MAX = 5000 };

/* clang-format off */
#define SYMBOL .min = 1, .max = SYMBOL_CHARS
#define POSITION(kind, member, ...) FIELD(FROM_BODY, kind, struct position_in, member, __VA_ARGS__)
static const struct field position_fields[] = {
    POSITION(KIND_LINE, symbol, .required = true, SYMBOL),
    POSITION(KIND_CHOICE, side, .required = true, .choices = trade_side_names),
    POSITION(KIND_NUMBER, size_base, .required = true, .min = 0, .max = -1),
    POSITION(KIND_NUMBER, mark_price, .min = 0, .max = -1),
    POSITION(KIND_NUMBER, leverage, .min = 0, .max = -1),
    POSITION(KIND_NUMBER, entry_price, .min = 0, .max = -1),
    POSITION(KIND_NUMBER, realized_pnl_usd),
    END_FIELDS,
};
#define PORTFOLIO(kind, member, ...) FIELD(FROM_BODY, kind, struct portfolio_in, member, __VA_ARGS__)
const struct field portfolio_fields[] = {
    PORTFOLIO(KIND_NUMBER, equity_usd, .required = true),
    PORTFOLIO(KIND_OBJECTS, positions, .required = true, .min = 0, .max = MATERIALIZE_POSITIONS_MAX, SUB(position_fields, struct position_in)),
    END_FIELDS,
};
#define ACTION(kind, member, ...) FIELD(FROM_BODY, kind, struct action_in, member, __VA_ARGS__)
static const struct field action_fields[] = {
    ACTION(KIND_LINE, kind, .required = true, .min = 1, .max = 64),
    ACTION(KIND_LINE, symbol, SYMBOL),
    ACTION(KIND_TEXT, reason, .min = 1, .max = 2000),
    END_FIELDS,
};
#define ENGINE(kind, member, ...) FIELD(FROM_BODY, kind, struct engine_in, member, __VA_ARGS__)
static const struct field engine_fields[] = {
    ENGINE(KIND_LINE, kind, .required = true, .min = 1, .max = 64),
    ENGINE(KIND_LINE, rule, .min = 1, .max = 64),
    END_FIELDS,
};
static const struct field mark_fields[] = {
    FIELD(FROM_BODY, KIND_LINE, struct amount_in, symbol, SYMBOL),
    FIELD(FROM_BODY, KIND_NUMBER, struct amount_in, amount, .above_zero = true),
    END_FIELDS,
};
static const struct field fee_fields[] = {
    FIELD(FROM_BODY, KIND_LINE, struct amount_in, symbol, .required = true, SYMBOL),
    { .name = "fees_usd", .from = FROM_BODY, .kind = KIND_NUMBER, .offset = offsetof(struct amount_in, amount), .required = true },
    END_FIELDS,
};
static const struct field bars_fields[] = {
    FIELD(FROM_BODY, KIND_LINE, struct bars_in, symbol, SYMBOL),
    FIELD(FROM_BODY, KIND_NUMBERS, struct bars_in, closes, .above_zero = true, .min = 0, .max = BARS_MAX),
    END_FIELDS,
};
#define TICK(from, kind, member, ...) FIELD(from, kind, struct tick_in, member, __VA_ARGS__)
#define TICK_AT TICK(FROM_BODY, KIND_TIME, tick_at, .required = true)
/* What a snapshot stores of the body, in this order. */
#define TICK_INPUT \
    TICK(FROM_BODY, KIND_OBJECT, portfolio, .required = true, SUB(portfolio_fields, struct portfolio_in)), \
    TICK(FROM_BODY, KIND_OBJECT, proposed_action, SUB(action_fields, struct action_in)), \
    TICK(FROM_BODY, KIND_OBJECT, engine, SUB(engine_fields, struct engine_in)), \
    TICK(FROM_BODY, KIND_MAP, marks, .min = 0, .max = MATERIALIZE_AMOUNTS_MAX, SUB(mark_fields, struct amount_in)), \
    TICK(FROM_BODY, KIND_OBJECTS, fees, .min = 0, .max = MATERIALIZE_AMOUNTS_MAX, SUB(fee_fields, struct amount_in))
#define TICK_BODY TICK_AT, TICK_INPUT, \
    TICK(FROM_BODY, KIND_MAP, bars, .min = 0, .max = BARS_SYMBOLS, SUB(bars_fields, struct bars_in)), \
    TICK(FROM_BODY, KIND_LINE, lessons_hash, .min = 1, .max = LESSONS_HASH_SIZE - 1)
const struct field tick_fields[] = {
    TICK(FROM_PATH, KIND_UUID, id, .required = true),
    TICK(FROM_QUERY, KIND_CHOICE, reflect, .choices = (const char *const[]){ "auto", NULL }),
    TICK_BODY,
    END_FIELDS,
};
const struct field tick_body_fields[] = { TICK_BODY, END_FIELDS };
static const struct field input_fields[] = { TICK_INPUT, END_FIELDS };
/* clang-format on */

/* ---- the numbers ---- */

struct reader {
    struct call *c;
    struct arena *arena;
    const char *prefix;
    bool bad;
};

static void report_fault(struct reader *r, enum fault fault, const char *field, const char *detail)
{
    (void)problem_field(&r->c->problem, arena_fmt(r->arena, "%s%s", r->prefix, field), fault, "%s", detail);
    r->bad = true;
}

static const char too_large[] = "has more than 20 digits before the decimal point";

static void report_member(struct reader *r, const char *list, size_t index, const char *member,
                          const char *detail)
{
    report_fault(r, FAULT_OUT_OF_RANGE, arena_fmt(r->arena, "%s[%zu].%s", list, index, member), detail);
}

static struct quantity read_number(struct reader *r, const char *lexeme, const char *list, size_t index,
                                   const char *member)
{
    struct quantity q = { 0 };
    if (lexeme && quantity_take(r->arena, lexeme, &q) == DECIMAL_TOO_LARGE)
        report_member(r, list, index, member, too_large);
    return q;
}

static const char positions_name[] = "portfolio.positions";

/* The price must be above zero only if the size is: brokers list closed positions with prices of 0. */
static struct quantity price_of(struct reader *r, const char *lexeme, struct quantity size, size_t i,
                                const char *member)
{
    struct quantity price = read_number(r, lexeme, positions_name, i, member);
    if (price.given && decimal_sign(size.value) > 0 && decimal_sign(price.value) == 0)
        report_member(r, positions_name, i, member, "must be above 0 for a position that is held");
    return price;
}

static struct position position_of(struct reader *r, const struct position_in *in, size_t i)
{
    const struct quantity size = read_number(r, in->size_base, positions_name, i, "size_base");
    return (struct position){
        .symbol = in->symbol,
        .side = strcmp(in->side, trade_side_names[TRADE_LONG]) == 0 ? TRADE_LONG : TRADE_SHORT,
        .size_base = size,
        .mark_price = price_of(r, in->mark_price, size, i, "mark_price"),
        .leverage = read_number(r, in->leverage, positions_name, i, "leverage"),
        .entry_price = price_of(r, in->entry_price, size, i, "entry_price"),
        .realized_pnl_usd = read_number(r, in->realized_pnl_usd, positions_name, i, "realized_pnl_usd"),
    };
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void check_duplicates(struct reader *r, const struct position *positions, size_t count)
{
    const char **symbols = arena_alloc(r->arena, (count + 1) * sizeof *symbols);
    for (size_t i = 0; i < count; i++)
        symbols[i] = positions[i].symbol;
    qsort(symbols, count, sizeof *symbols, by_text);
    for (size_t i = 1; i < count; i++)
        if (strcmp(symbols[i], symbols[i - 1]) == 0)
            report_fault(r, FAULT_DUPLICATE_ITEM, positions_name,
                         arena_fmt(r->arena, "has two positions of %s", symbols[i]));
}

static void read_positions(struct reader *r, const struct objects *list, struct tick *tick)
{
    struct position *positions = arena_alloc(r->arena, (list->count + 1) * sizeof *positions);
    for (size_t i = 0; i < list->count; i++)
        positions[i] = position_of(r, (const struct position_in *)list->items + i, i);
    if (list->count > 1)
        check_duplicates(r, positions, list->count);
    tick->positions = positions;
    tick->position_count = list->count;
}

static const struct symbol_amount *read_fees(struct reader *r, const struct objects *list)
{
    struct symbol_amount *fees = arena_alloc(r->arena, (list->count + 1) * sizeof *fees);
    for (size_t i = 0; i < list->count; i++) {
        const struct amount_in *in = (const struct amount_in *)list->items + i;
        fees[i] = (struct symbol_amount){ in->symbol, read_number(r, in->amount, "fees", i, "fees_usd") };
    }
    return fees;
}

static const struct symbol_amount *read_marks(struct reader *r, const struct objects *list)
{
    struct symbol_amount *marks = arena_alloc(r->arena, (list->count + 1) * sizeof *marks);
    for (size_t i = 0; i < list->count; i++) {
        const struct amount_in *in = (const struct amount_in *)list->items + i;
        marks[i].symbol = in->symbol;
        enum decimal_read read = quantity_take(r->arena, in->amount, &marks[i].amount);
        if (read == DECIMAL_TOO_LARGE || decimal_sign(marks[i].amount.value) == 0)
            report_fault(r, FAULT_OUT_OF_RANGE, arena_fmt(r->arena, "marks.%s", in->symbol),
                         read == DECIMAL_TOO_LARGE ? too_large : "is zero when rounded to 18 decimal places");
    }
    return marks;
}

/* The lessons_hash of an agent that used no lessons, even if a note was in force. */
static const char no_lessons[] = "none";

static bool is_lessons_hash(const char *text)
{
    return strcmp(text, no_lessons) == 0 || lessons_hash_is_valid(text);
}

static const char *lessons_of(const struct tick_in *in, const char *in_force)
{
    if (!in->lessons_hash)
        return in_force;
    return strcmp(in->lessons_hash, no_lessons) == 0 ? NULL : in->lessons_hash;
}

enum err tick_body_build(struct call *c, struct arena *arena, const struct tick_in *in, const char *prefix,
                         struct tick *tick)
{
    static const struct action_in no_action;
    static const struct engine_in no_engine;
    struct reader r = { .c = c, .arena = arena, .prefix = prefix };
    const struct action_in *action = in->proposed_action ? in->proposed_action : &no_action;
    const struct engine_in *engine = in->engine ? in->engine : &no_engine;
    *tick = (struct tick){ .intent = { action->kind, action->symbol, action->reason, engine->kind,
                                       engine->rule } };
    (void)time_text_parse(in->tick_at, &tick->tick_us);
    r.bad = instant_check(c, arena_fmt(arena, "%stick_at", prefix), in->tick_at) != OK;
    struct quantity equity = { 0 };
    if (quantity_read(in->portfolio->equity_usd, &equity) == DECIMAL_TOO_LARGE)
        report_fault(&r, FAULT_OUT_OF_RANGE, "portfolio.equity_usd", too_large);
    if (in->lessons_hash && !is_lessons_hash(in->lessons_hash))
        report_fault(&r, FAULT_INVALID_CHARACTER, "lessons_hash",
                     "must be 16 lower-case hexadecimal digits, or none");
    read_positions(&r, &in->portfolio->positions, tick);
    tick->marks = read_marks(&r, &in->marks);
    tick->mark_count = in->marks.count;
    tick->fees = read_fees(&r, &in->fees);
    tick->fee_count = in->fees.count;
    return r.bad ? ERR_INVALID_FIELDS : OK;
}

enum err tick_body_out_of_order(struct call *c, const char *last, int64_t last_us, int64_t tick_us)
{
    char last_at[TIME_TEXT_SIZE], tick_at[TIME_TEXT_SIZE];
    time_text_short(last_us, last_at);
    time_text_short(tick_us, tick_at);
    return problem_set(&c->problem, ERR_TICK_OUT_OF_ORDER, "%s is %s; this one is %s", last, last_at,
                       tick_at);
}

enum err tick_body_problem(struct call *c, enum materialize_status status, const char *symbol,
                           const char *prefix)
{
    static const struct {
        const char *field, *detail;
        enum fault fault;
    } refusals[] = {
        [MATERIALIZE_TOO_MANY] = { "portfolio.positions", "has too many positions", FAULT_TOO_MANY },
        [MATERIALIZE_DUPLICATE_SYMBOL] = { "portfolio.positions", "has two positions of",
                                           FAULT_DUPLICATE_ITEM },
        [MATERIALIZE_BAD_SIZE] = { "portfolio.positions", "needs a size that is not negative for",
                                   FAULT_OUT_OF_RANGE },
        [MATERIALIZE_BAD_PRICE] = { "portfolio.positions", "needs a mark_price or entry_price above zero for",
                                    FAULT_OUT_OF_RANGE },
        [MATERIALIZE_TOO_LARGE] = { "portfolio.positions", "leads to numbers with more than 20 digits for",
                                    FAULT_OUT_OF_RANGE },
    };
    if (status == MATERIALIZE_OLDER_TICK || status == MATERIALIZE_SAME_TICK)
        return problem_set(&c->problem, ERR_TICK_OUT_OF_ORDER,
                           "the tick is before the entry of the open trade of %s", symbol);
    return problem_field(&c->problem, arena_fmt(&c->arena, "%s%s", prefix, refusals[status].field),
                         refusals[status].fault, "%s %s", refusals[status].detail, symbol ? symbol : "");
}

void tick_body_json(struct buf *out, const struct tick_in *in)
{
    buf_char(out, '{');
    for (const struct field *f = input_fields; f->name; f++) {
        const char *json = field_ref_value(&(struct field_ref){ .field = f }, in, out->arena);
        buf_json_key(out, f->name);
        buf_text(out, json ? json : "null");
    }
    if (in->lessons_hash) {
        buf_json_key(out, "lessons_hash");
        buf_json_string(out, in->lessons_hash);
    }
    buf_char(out, '}');
}

const char *tick_body_hash(struct arena *arena, const struct tick_in *in, const struct tick *tick)
{
    struct quantity equity = { 0 };
    (void)quantity_read(in->portfolio->equity_usd, &equity);
    return tick_hash(arena, tick, equity, in->lessons_hash);
}

/* NULL: no bars. */
static const char *regime_of(struct arena *arena, const struct tick_in *in, const char *symbol)
{
    const struct bars_in *bars = in->bars.items;
    for (size_t i = 0; i < in->bars.count; i++) {
        if (strcmp(bars[i].symbol, symbol) != 0)
            continue;
        double *closes = arena_alloc(arena, (bars[i].closes.count + 1) * sizeof *closes);
        for (size_t n = 0; n < bars[i].closes.count; n++)
            closes[n] = strtod(bars[i].closes.items[n], NULL);
        return regime_names[regime_classify(closes, bars[i].closes.count, &regime_defaults)];
    }
    return NULL;
}

void tick_body_complete(struct arena *arena, const struct tick_in *in, const char *in_force,
                        struct materialized *m)
{
    for (size_t i = 0; i < m->op_count; i++) {
        if (m->ops[i].kind != TRADE_OPEN)
            continue;
        m->ops[i].trade.entry_regime_tag = regime_of(arena, in, m->ops[i].trade.symbol);
        m->ops[i].trade.entry_lessons_hash = lessons_of(in, in_force);
    }
}
