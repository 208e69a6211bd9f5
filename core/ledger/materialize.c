/* The materializer: computes what the portfolio of a tick changes in the ledger. */
#include "core/ledger/materialize.h"

#include <stdlib.h>
#include <string.h>

/* ---- the state machine ---- */

enum held { NOTHING, LONG, SHORT, HELD };
enum { OPENS = 1, UPDATES = 2, CLOSES = 4, FLIPS = CLOSES | OPENS };

static const unsigned char transitions[HELD][HELD] = {
    [NOTHING] = { [NOTHING] = 0, [LONG] = OPENS, [SHORT] = OPENS },
    [LONG] = { [NOTHING] = CLOSES, [LONG] = UPDATES, [SHORT] = FLIPS },
    [SHORT] = { [NOTHING] = CLOSES, [LONG] = FLIPS, [SHORT] = UPDATES },
};

/* One symbol in this tick: its open row, its reported position, or both. */
struct pair {
    const struct trade *row;
    const struct position *position;
};

static bool is_held(const struct position *p)
{
    return p && decimal_sign(p->size_base.value) > 0;
}

static enum held held_of(enum trade_side side)
{
    return side == TRADE_LONG ? LONG : SHORT;
}

static unsigned transition(const struct pair *pair)
{
    enum held before = pair->row ? held_of(pair->row->side) : NOTHING;
    enum held after = is_held(pair->position) ? held_of(pair->position->side) : NOTHING;
    return transitions[before][after];
}

/* ---- checks ---- */

static bool is_price(struct quantity q)
{
    return q.given && decimal_sign(q.value) > 0;
}

static enum materialize_status check_position(const struct position *p)
{
    if (!p->size_base.given || decimal_sign(p->size_base.value) < 0)
        return MATERIALIZE_BAD_SIZE;
    if (!is_held(p))
        return MATERIALIZED; /* brokers list closed positions with prices of 0 */
    if ((p->mark_price.given && !is_price(p->mark_price)) ||
        (p->entry_price.given && !is_price(p->entry_price)))
        return MATERIALIZE_BAD_PRICE;
    return MATERIALIZED;
}

static enum materialize_status check_tick(const struct trade *open, size_t open_count,
                                          const struct tick *tick, int64_t last_tick_us, const char **symbol)
{
    if (tick->tick_us == last_tick_us)
        return MATERIALIZE_SAME_TICK;
    if (tick->tick_us < last_tick_us)
        return MATERIALIZE_OLDER_TICK;
    if (open_count > MATERIALIZE_POSITIONS_MAX || tick->position_count > MATERIALIZE_POSITIONS_MAX ||
        tick->mark_count > MATERIALIZE_AMOUNTS_MAX || tick->fee_count > MATERIALIZE_AMOUNTS_MAX)
        return MATERIALIZE_TOO_MANY;
    for (size_t i = 0; i < open_count; i++)
        if (open[i].entry_tick_us > tick->tick_us) {
            *symbol = open[i].symbol;
            return MATERIALIZE_OLDER_TICK;
        }
    for (size_t i = 0; i < tick->mark_count; i++)
        if (!is_price(tick->marks[i].amount)) {
            *symbol = tick->marks[i].symbol;
            return MATERIALIZE_BAD_PRICE;
        }
    for (size_t i = 0; i < tick->position_count; i++) {
        enum materialize_status status = check_position(&tick->positions[i]);
        if (status != MATERIALIZED) {
            *symbol = tick->positions[i].symbol;
            return status;
        }
    }
    return MATERIALIZED;
}

/* ---- pairs of a row and a position, by symbol ---- */

static const char *symbol_of(const struct pair *p)
{
    return p->row ? p->row->symbol : p->position->symbol;
}

static int by_symbol(const void *a, const void *b)
{
    return strcmp(symbol_of(a), symbol_of(b));
}

/* Makes one pair per symbol, sorted. `symbol` is set to one that has two rows or two positions. */
static size_t pair_up(struct pair *pairs, const struct trade *open, size_t open_count,
                      const struct tick *tick, const char **symbol)
{
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < open_count; i++)
        pairs[count++] = (struct pair){ .row = &open[i] };
    for (size_t i = 0; i < tick->position_count; i++)
        pairs[count++] = (struct pair){ .position = &tick->positions[i] };
    if (count > 0)
        qsort(pairs, count, sizeof *pairs, by_symbol);
    for (size_t i = 0; i < count; i++) {
        struct pair *last = kept > 0 ? &pairs[kept - 1] : NULL;
        if (!last || by_symbol(last, &pairs[i]) != 0) {
            pairs[kept++] = pairs[i];
            continue;
        }
        if ((last->row && pairs[i].row) || (last->position && pairs[i].position))
            *symbol = symbol_of(last);
        if (pairs[i].row)
            last->row = pairs[i].row;
        else
            last->position = pairs[i].position;
    }
    return kept;
}

/* ---- marks and fees ---- */

static const struct symbol_amount *find_amount(const struct symbol_amount *amounts, size_t count,
                                               const char *symbol)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(amounts[i].symbol, symbol) == 0)
            return &amounts[i];
    return NULL;
}

/* The result is not given if there is no mark at all. */
static struct quantity find_mark(const struct pair *pair, const struct tick *tick, enum mark_source *source)
{
    const struct symbol_amount *mark;
    *source = MARK_POSITION;
    if (pair->position && is_price(pair->position->mark_price))
        return pair->position->mark_price;
    if ((mark = find_amount(tick->marks, tick->mark_count, symbol_of(pair)))) {
        *source = MARK_MARKS;
        return mark->amount;
    }
    if (pair->row) {
        *source = MARK_LAST_KNOWN;
        return pair->row->mark_price;
    }
    return pair->position->entry_price;
}

static struct decimal sum_fees(const struct tick *tick, const char *symbol)
{
    struct decimal sum = decimal_from_int(0);
    for (size_t i = 0; i < tick->fee_count; i++)
        if (strcmp(tick->fees[i].symbol, symbol) == 0)
            sum = decimal_add(sum, tick->fees[i].amount.value);
    return sum;
}

/* The part of a flip's fees that belongs to its close. The close and the open usually were one order. */
static struct decimal close_share(const struct pair *pair, struct decimal fees)
{
    struct decimal closed = pair->row->size_base.value, opened = pair->position->size_base.value;
    return decimal_div(decimal_mul(fees, closed), decimal_add(closed, opened));
}

static void find_stray_fees(struct arena *arena, const struct tick *tick, struct materialized *m)
{
    m->stray_fees = arena_alloc(arena, (tick->fee_count + 1) * sizeof *m->stray_fees);
    for (size_t i = 0; i < tick->fee_count; i++) {
        size_t op = 0;
        while (op < m->op_count && strcmp(m->ops[op].trade.symbol, tick->fees[i].symbol) != 0)
            op++;
        if (op == m->op_count)
            m->stray_fees[m->stray_count++] = tick->fees[i];
    }
}

/* ---- the ops ---- */

static const struct quantity not_given;

static struct decimal realized_since(const struct trade *before, const struct trade *after)
{
    return decimal_sub(after->realized_pnl_usd.value, before->realized_pnl_usd.value);
}

static void op_close(struct trade_op *op, const struct pair *pair, const struct tick *tick,
                     struct quantity mark)
{
    struct quantity stated = pair->position && !op->flip ? pair->position->realized_pnl_usd : not_given;
    op->trade = *pair->row;
    op->pnl_source = stated.given ? PNL_BROKER : PNL_COMPUTED;
    trade_close(&op->trade, mark, stated, tick->tick_us);
    op->realized = realized_since(pair->row, &op->trade);
    op->trade.exit_reason = trade_label_exit(&tick->intent, op->trade.symbol, op->flip);
    op->trade.exit_snapshot_id = tick->snapshot_id;
}

static void op_open(struct trade_op *op, const struct pair *pair, const struct tick *tick,
                    struct quantity mark)
{
    op->trade = trade_open(pair->position, mark);
    op->pnl_source = pair->position->realized_pnl_usd.given ? PNL_BROKER : PNL_COMPUTED;
    op->realized = op->trade.realized_pnl_usd.value;
    op->trade.entry_tick_us = tick->tick_us;
    op->trade.entry_reason = trade_label_entry(&tick->intent, op->trade.symbol);
    op->trade.entry_snapshot_id = tick->snapshot_id;
}

static void op_update(struct trade_op *op, const struct pair *pair, struct quantity mark)
{
    int change = decimal_compare(pair->position->size_base.value, pair->row->size_base.value);
    op->change = change == 0 ? SIZE_SAME : change > 0 ? SIZE_ADDED : SIZE_REDUCED;
    op->trade = *pair->row;
    op->pnl_source = pair->position->realized_pnl_usd.given ? PNL_BROKER : PNL_COMPUTED;
    trade_follow(&op->trade, pair->position, mark);
    op->realized = realized_since(pair->row, &op->trade);
}

static struct trade_op *add_op(struct materialized *m, enum trade_op_kind kind, unsigned steps,
                               enum mark_source source)
{
    struct trade_op *op = &m->ops[m->op_count++];
    *op = (struct trade_op){ .kind = kind, .flip = steps == FLIPS, .mark_source = source };
    return op;
}

static enum materialize_status add_fees(struct trade_op *op, struct decimal fees)
{
    op->trade.fees_usd = decimal_add(op->trade.fees_usd, fees);
    return trade_is_valid(&op->trade) ? MATERIALIZED : MATERIALIZE_TOO_LARGE;
}

static enum materialize_status take_steps(struct materialized *m, const struct pair *pair,
                                          const struct tick *tick)
{
    unsigned steps = transition(pair);
    if (!steps)
        return MATERIALIZED;
    enum mark_source source;
    struct quantity mark = find_mark(pair, tick, &source);
    if (!is_price(mark))
        return MATERIALIZE_BAD_PRICE;
    struct decimal fees = sum_fees(tick, symbol_of(pair));
    enum materialize_status status = MATERIALIZED;
    if (steps & UPDATES) {
        struct trade_op *op = add_op(m, TRADE_UPDATE, steps, source);
        op_update(op, pair, mark);
        status = add_fees(op, fees);
    }
    if (steps & CLOSES) {
        struct trade_op *op = add_op(m, TRADE_CLOSE, steps, source);
        struct decimal share = steps == FLIPS ? close_share(pair, fees) : fees;
        op_close(op, pair, tick, mark);
        status = add_fees(op, share);
        fees = decimal_sub(fees, share);
    }
    if ((steps & OPENS) && status == MATERIALIZED) {
        struct trade_op *op = add_op(m, TRADE_OPEN, steps, source);
        op_open(op, pair, tick, mark);
        status = add_fees(op, fees);
    }
    return status;
}

enum materialize_status materialize(struct arena *arena, const struct trade *open, size_t open_count,
                                    const struct tick *tick, int64_t last_tick_us, struct materialized *out)
{
    *out = (struct materialized){ 0 };
    const char *symbol = NULL;
    enum materialize_status status = check_tick(open, open_count, tick, last_tick_us, &symbol);
    struct materialized m = { 0 };
    if (status == MATERIALIZED) {
        size_t most = open_count + tick->position_count; /* the two ops of a flip have one of each */
        struct pair *pairs = arena_alloc(arena, (most + 1) * sizeof *pairs);
        m.ops = arena_alloc(arena, (most + 1) * sizeof *m.ops);
        size_t count = pair_up(pairs, open, open_count, tick, &symbol);
        if (symbol)
            status = MATERIALIZE_DUPLICATE_SYMBOL;
        for (size_t i = 0; i < count && status == MATERIALIZED; i++) {
            status = take_steps(&m, &pairs[i], tick);
            symbol = symbol_of(&pairs[i]);
        }
    }
    if (status != MATERIALIZED) {
        out->symbol = symbol;
        return status;
    }
    find_stray_fees(arena, tick, &m);
    *out = m;
    return MATERIALIZED;
}

struct trade *materialize_open_rows(struct arena *arena, const struct materialized *m, size_t *count)
{
    struct trade *rows = arena_alloc(arena, (m->op_count + 1) * sizeof *rows);
    *count = 0;
    for (size_t i = 0; i < m->op_count; i++)
        if (m->ops[i].kind != TRADE_CLOSE)
            rows[(*count)++] = m->ops[i].trade;
    return rows;
}
