/* Random walks of a portfolio through the materializer and through a model without averages: it tracks the
 * cash flow of each trade, and the change in value of each position per tick. */
#include <math.h>

#include "core/ledger/materialize.h"
#include "tests/core/unit.h"

enum { SYMBOLS = 3, TICKS = 14, WALKS = 25000 };

static struct arena arena;
static uint64_t state;

static int draw(int below)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (int)((state >> 33) % (uint64_t)below);
}

/* How a walk's broker reports. */
struct manner {
    bool states_entry;  /* entry_price, the average of the position */
    bool states_pnl;    /* realized_pnl_usd, of the trade so far */
    bool forgets_marks; /* of closed symbols */
    bool misses_ticks;  /* some never arrive */
};

/* A symbol in the model. Sizes are thousandths with a sign, prices ten-thousandths, so that cash is whole. */
struct line {
    int64_t size, price;
    int64_t cash; /* of the open trade: proceeds less payments */
    int64_t entry_us, entry_price, entry_size;
    long double basis; /* the position at cost */
    long double mfe, mae, fees;
};

struct walk {
    struct manner manner;
    struct line line[SYMBOLS];
    int64_t equity; /* gains of all positions, from mark to mark */
    long double closed_pnl, fees_paid, fees_booked;
    struct trade *open;
    size_t open_count;
    int64_t last_us;
    struct tick *ticks[TICKS];
    int seen;
};

static const char *const symbols[SYMBOLS] = { "BTC", "BTC-PERP", "ETH" };

static int symbol_index(const char *symbol)
{
    int i = 0;
    while (strcmp(symbols[i], symbol) != 0)
        i++;
    return i;
}

static long double number(struct decimal d)
{
    char text[DECIMAL_TEXT_SIZE];
    decimal_text(d, text);
    return strtold(text, NULL);
}

static bool near(long double a, long double b)
{
    return fabsl(a - b) < 1e-6L;
}

static struct quantity fixed(int64_t units, int digits)
{
    struct quantity q;
    int64_t scale = digits == 3 ? 1000 : 10000;
    quantity_read(
        arena_fmt(&arena, "%lld.%0*lld", (long long)(units / scale), digits, (long long)(units % scale)), &q);
    return q;
}

static struct quantity stated(long double value)
{
    struct quantity q;
    quantity_read(arena_fmt(&arena, "%.12Lf", value), &q);
    return q;
}

/* ---- the model ---- */

#define UNIT 1e7L /* of cash: thousandths times ten-thousandths */

static long double open_gain(const struct line *l, int64_t price)
{
    return ((long double)(l->size * price)) / UNIT - l->basis;
}

static void model_meet(struct line *l)
{
    long double gain = open_gain(l, l->price);
    l->mfe = fmaxl(l->mfe, gain);
    l->mae = fminl(l->mae, gain);
}

static long double model_realized(const struct line *l)
{
    return (long double)l->cash / UNIT + l->basis;
}

/* Trades at the price; the size stays on its side of zero. */
static void model_trade(struct line *l, int64_t size)
{
    int64_t change = size - l->size;
    if (llabs(size) > llabs(l->size))
        l->basis += (long double)(change * l->price) / UNIT;
    else if (l->size != 0)
        l->basis *= (long double)size / (long double)l->size;
    l->cash -= change * l->price;
    l->size = size;
}

static void model_start(struct line *l, int64_t size, int64_t us)
{
    *l = (struct line){
        .price = l->price, .entry_us = us, .entry_price = l->price, .entry_size = llabs(size)
    };
    model_trade(l, size);
}

/* ---- a tick ---- */

static int64_t draw_size(const struct line *l)
{
    int64_t side = l->size < 0 ? -1 : 1, held = llabs(l->size);
    switch (draw(8)) {
    case 0:
        return 0;
    case 1:
        return -side * (1 + draw(5000)); /* a flip, or an open short */
    case 2:
        return side * (held + 1 + draw(5000));
    case 3:
        return side * (held / 2);
    case 4:
        return held > 1 ? side * (1 + draw((int)held - 1)) : held * side;
    default:
        return l->size;
    }
}

/* The target position of each symbol, and the broker's report of it. */
static struct tick *draw_tick(struct walk *w, int64_t us, int64_t target[SYMBOLS])
{
    struct tick *tick = arena_zero(&arena, sizeof *tick);
    struct position *positions = arena_zero(&arena, SYMBOLS * sizeof *positions);
    struct symbol_amount *marks = arena_zero(&arena, SYMBOLS * sizeof *marks);
    struct symbol_amount *fees = arena_zero(&arena, SYMBOLS * sizeof *fees);
    *tick = (struct tick){
        .tick_us = us, .snapshot_id = "s", .positions = positions, .marks = marks, .fees = fees
    };
    for (int n = 0, i = draw(SYMBOLS); n < SYMBOLS; n++, i = (i + 1) % SYMBOLS) {
        struct line *l = &w->line[i];
        int64_t before = l->price;
        l->price = l->price + (int64_t)draw((int)(l->price / 10) + 3) - l->price / 20 - 1;
        if (l->price < 1)
            l->price = 1;
        target[i] = draw_size(l);
        if (target[i] == 0 && l->size != 0 && w->manner.forgets_marks)
            l->price = before;
        w->equity += l->size * (l->price - before);
        bool flat = target[i] == 0;
        if (!flat || (draw(3) == 0 && !w->manner.forgets_marks))
            positions[tick->position_count++] =
                (struct position){ .symbol = symbols[i],
                                   .side = target[i] < 0 ? TRADE_SHORT : TRADE_LONG,
                                   .size_base = fixed(llabs(target[i]), 3),
                                   .mark_price = fixed(l->price, 4) };
        else if (!w->manner.forgets_marks)
            marks[tick->mark_count++] = (struct symbol_amount){ symbols[i], fixed(l->price, 4) };
        if (draw(4) == 0) {
            int64_t fee = draw(1000);
            fees[tick->fee_count++] = (struct symbol_amount){ symbols[i], fixed(fee, 4) };
            w->fees_paid += (long double)fee / 1e4L;
        }
    }
    return tick;
}

/* The average and the PnL of the trade so far, for a broker that reports them. */
static void state_facts(const struct walk *w, struct tick *tick, const int64_t target[SYMBOLS])
{
    for (size_t p = 0; p < tick->position_count; p++) {
        struct position *position = (struct position *)&tick->positions[p];
        int i = symbol_index(position->symbol);
        struct line after = w->line[i], *l = &after;
        bool flip = l->size * target[i] < 0, fresh = l->size == 0 || flip;
        model_trade(l, fresh ? 0 : target[i]);
        if (w->manner.states_pnl && !(l->size == 0 && w->line[i].size == 0))
            position->realized_pnl_usd = stated(flip ? 0 : model_realized(l)); /* of the position it lists */
        if (w->manner.states_entry && target[i] != 0)
            position->entry_price =
                fresh ? position->mark_price : stated(l->basis / ((long double)l->size / 1000));
    }
}

/* ---- the ops against the model ---- */

static void check_state(const struct trade *t, const struct line *l)
{
    HOLDS((t->side == TRADE_SHORT) == (l->size < 0));
    HOLDS(near(number(t->size_base.value), (long double)llabs(l->size) / 1000));
    HOLDS(near(number(t->realized_pnl_usd.value), model_realized(l)));
    HOLDS(near(fabsl(l->basis), number(t->average_entry_price.value) * number(t->size_base.value)));
    HOLDS(near(number(t->mfe_usd), l->mfe) && near(number(t->mae_usd), l->mae));
    HOLDS(decimal_sign(t->mfe_usd) >= 0 && decimal_sign(t->mae_usd) <= 0);
    HOLDS(t->entry_tick_us == l->entry_us);
    HOLDS(near(number(t->entry_price.value), (long double)l->entry_price / 10000));
    HOLDS(near(number(t->entry_size_usd.value), (long double)(l->entry_price * l->entry_size) / UNIT));
}

static void check_close(struct walk *w, const struct trade_op *op, struct line *l, int64_t us)
{
    const struct trade *t = &op->trade;
    HOLDS((t->side == TRADE_SHORT) == (l->size < 0));
    model_meet(l);
    model_trade(l, 0);
    l->basis = 0;
    HOLDS(t->exit_price.given && near(number(t->exit_price.value), (long double)l->price / 10000));
    HOLDS(t->exit_reason && t->exit_snapshot_id && t->exit_tick_us == us);
    HOLDS(t->realized_pnl_usd.given && near(number(t->realized_pnl_usd.value), (long double)l->cash / UNIT));
    HOLDS(decimal_sign(t->holding_minutes) > 0);
    HOLDS(fabsl(number(t->holding_minutes) * 60e6L - (long double)(us - l->entry_us)) <= 31);
    HOLDS(near(number(t->mfe_usd), l->mfe) && near(number(t->mae_usd), l->mae));
    HOLDS(decimal_sign(t->size_base.value) == 0);
    w->closed_pnl += number(t->realized_pnl_usd.value);
    w->fees_booked += number(t->fees_usd);
}

/* Plays one symbol's ops; returns how many there were. */
static size_t check_symbol(struct walk *w, const struct trade_op *op, const struct trade_op *end, int i,
                           int64_t target, int64_t us)
{
    struct line *l = &w->line[i];
    const struct trade_op *first = op;
    bool flip = l->size * target < 0;
    if (l->size != 0 && (target == 0 || flip)) {
        HOLDS(op < end && op->kind == TRADE_CLOSE && op->flip == flip);
        check_close(w, op++, l, us);
        l->size = 0;
    }
    if (l->size == 0 && target != 0) {
        HOLDS(op < end && op->kind == TRADE_OPEN && op->flip == flip);
        model_start(l, target, us);
        check_state(&op++->trade, l);
    } else if (target != 0) {
        HOLDS(op < end && op->kind == TRADE_UPDATE);
        model_meet(l);
        model_trade(l, target);
        model_meet(l);
        check_state(&op++->trade, l);
    }
    for (const struct trade_op *o = first; o < op; o++)
        HOLDS(strcmp(o->trade.symbol, symbols[i]) == 0);
    return (size_t)(op - first);
}

static const char *ops_text(const struct materialized *m)
{
    struct buf out = { .arena = &arena };
    for (size_t i = 0; i < m->op_count; i++)
        materialize_op_json(&out, &m->ops[i]);
    return buf_string(&out);
}

static void play_tick(struct walk *w, int64_t us)
{
    int64_t target[SYMBOLS];
    struct tick *tick = draw_tick(w, us, target);
    state_facts(w, tick, target);
    struct materialized m, again;
    HOLDS(materialize(&arena, w->open, w->open_count, tick, w->last_us, &m) == MATERIALIZED);
    if (draw(16) == 0) { /* a runner that died before it stored the ops retries */
        HOLDS(materialize(&arena, w->open, w->open_count, tick, w->last_us, &again) == MATERIALIZED);
        HOLDS(strcmp(ops_text(&m), ops_text(&again)) == 0);
    }
    size_t at = 0;
    for (int i = 0; i < SYMBOLS; i++) /* their order is that of the ops */
        at += check_symbol(w, m.ops + at, m.ops + m.op_count, i, target[i], us);
    HOLDS(at == m.op_count);
    for (size_t i = 0; i < m.stray_count; i++)
        w->fees_booked += number(m.stray_fees[i].amount.value);
    w->open = materialize_open_rows(&arena, &m, &w->open_count);
    for (size_t i = 1; i < w->open_count; i++)
        HOLDS(strcmp(w->open[i - 1].symbol, w->open[i].symbol) < 0); /* never two open rows of one symbol */
    w->last_us = us;
    w->ticks[w->seen++] = tick;
}

/* ---- a walk ---- */

/* A missed tick: its changes reach the ledger with the next tick, its fees never do. */
static void miss_tick(struct walk *w, int64_t us)
{
    int64_t target[SYMBOLS];
    long double fees = w->fees_paid;
    draw_tick(w, us, target);
    w->fees_paid = fees;
}

static void check_equity(const struct walk *w)
{
    long double pnl = w->closed_pnl, fees = w->fees_booked;
    for (size_t i = 0; i < w->open_count; i++) {
        const struct trade *t = &w->open[i];
        long double move = number(t->mark_price.value) - number(t->average_entry_price.value);
        pnl += number(t->realized_pnl_usd.value);
        pnl += number(t->size_base.value) * (t->side == TRADE_LONG ? move : -move);
        fees += number(t->fees_usd);
    }
    HOLDS(fabsl(pnl - (long double)w->equity / UNIT) < 0.005L);
    HOLDS(near(fees, w->fees_paid));
}

/* Every suffix of the ticks, again. */
static void check_replay(const struct walk *w)
{
    struct materialized m;
    for (int i = 0; i < w->seen; i++) {
        enum materialize_status status =
            materialize(&arena, w->open, w->open_count, w->ticks[i], w->last_us, &m);
        HOLDS(status == (i + 1 < w->seen ? MATERIALIZE_OLDER_TICK : MATERIALIZE_SAME_TICK));
        HOLDS(m.op_count == 0 && m.stray_count == 0);
    }
}

static void play_walks(uint64_t seed, struct manner manner)
{
    state = seed;
    for (int n = 0; n < WALKS; n++) {
        struct walk w = { .manner = manner, .last_us = MATERIALIZE_NO_TICK };
        for (int i = 0; i < SYMBOLS; i++)
            w.line[i].price = 1 + draw(i == 0 ? 2000000 : 20000);
        int64_t us = INT64_C(1780000000000000);
        for (int t = 0, ticks = 2 + draw(TICKS - 1); t < ticks; t++) {
            us += draw(5) ? 300000000 : 1 + draw(1000000000); /* every five minutes, or whenever */
            if (manner.misses_ticks && t + 1 < ticks && draw(3) == 0)
                miss_tick(&w, us);
            else
                play_tick(&w, us);
        }
        check_equity(&w);
        check_replay(&w);
        arena_release(&arena);
    }
}

START_TEST(walks_match_for_a_broker_that_reports_only_positions)
{
    play_walks(1, (struct manner){ 0 });
}
END_TEST

START_TEST(walks_match_for_a_broker_that_reports_averages_and_misses_ticks)
{
    play_walks(2, (struct manner){ .states_entry = true, .misses_ticks = true });
}
END_TEST

START_TEST(walks_match_for_a_broker_that_reports_pnl)
{
    play_walks(3, (struct manner){ .states_entry = true, .states_pnl = true });
}
END_TEST

START_TEST(walks_match_for_a_broker_that_omits_marks_of_closed_symbols)
{
    play_walks(4, (struct manner){ .forgets_marks = true });
}
END_TEST

UNIT_MAIN("materialize_walk", walks_match_for_a_broker_that_reports_only_positions,
          walks_match_for_a_broker_that_reports_averages_and_misses_ticks,
          walks_match_for_a_broker_that_reports_pnl,
          walks_match_for_a_broker_that_omits_marks_of_closed_symbols)
