/* Fuzzes the materializer: any sequence of portfolios leaves a consistent ledger. */
#include "core/ledger/materialize.h"
#include "tests/fuzz/fuzz.h"

static const char *const fuzz_symbols[] = { "A", "AB", "B", "é" };
static const char *const fuzz_numbers[] = {
    "0",
    "1",
    "2.50",
    "0.0000964",
    "65200.12345678",
    "99999999999999999999",
    "1e-18",
    "3e-19",
    "-1",
    "1e10",
    "7",
    "-0",
    "0.1",
    "9999999999.5",
    "1E3",
    "1000",
};
static const char *const fuzz_kinds[] = { NULL,   "close_position", "adjust_position", "propose_order",
                                          "hold", "flatten",        "executed",        "rejected" };

struct bytes {
    const uint8_t *at, *end;
};

static unsigned take(struct bytes *b, unsigned below)
{
    return b->at < b->end ? *b->at++ % below : 0;
}

static struct quantity take_number(struct bytes *b, bool maybe)
{
    struct quantity q = { .given = false };
    if (!maybe || take(b, 2))
        quantity_read(fuzz_numbers[take(b, sizeof fuzz_numbers / sizeof *fuzz_numbers)], &q);
    return q;
}

static void take_tick(struct bytes *b, struct tick *tick, struct position *positions,
                      struct symbol_amount *amounts)
{
    tick->tick_us += (int64_t)take(b, 200) - 20;
    tick->intent = (struct trade_intent){ .kind = fuzz_kinds[take(b, 8)],
                                          .symbol = take(b, 2) ? fuzz_symbols[take(b, 4)] : NULL,
                                          .reason = take(b, 2) ? "why" : NULL,
                                          .engine_kind = fuzz_kinds[take(b, 8)] };
    tick->position_count = take(b, 5);
    for (size_t i = 0; i < tick->position_count; i++)
        positions[i] = (struct position){ .symbol = fuzz_symbols[take(b, 4)],
                                          .side = take(b, 2) ? TRADE_SHORT : TRADE_LONG,
                                          .size_base = take_number(b, false),
                                          .mark_price = take_number(b, true),
                                          .entry_price = take_number(b, true),
                                          .leverage = take_number(b, true),
                                          .realized_pnl_usd = take_number(b, true) };
    tick->mark_count = take(b, 3);
    tick->fee_count = take(b, 3);
    for (size_t i = 0; i < tick->mark_count + tick->fee_count; i++)
        amounts[i] = (struct symbol_amount){ fuzz_symbols[take(b, 4)], take_number(b, false) };
    tick->positions = positions;
    tick->marks = amounts;
    tick->fees = amounts + tick->mark_count;
}

static void check_ops(const struct materialized *m, struct arena *arena)
{
    for (size_t i = 0; i < m->op_count; i++) {
        const struct trade_op *op = &m->ops[i], *before = i > 0 ? op - 1 : NULL;
        struct buf json = { .arena = arena };
        materialize_op_json(&json, op);
        HOLDS(utf8_check(json.data, json.len) == json.len);
        HOLDS(trade_is_valid(&op->trade));
        HOLDS(decimal_sign(op->trade.mfe_usd) >= 0 && decimal_sign(op->trade.mae_usd) <= 0);
        HOLDS((op->kind == TRADE_CLOSE) == (decimal_sign(op->trade.size_base.value) == 0));
        HOLDS(op->kind != TRADE_CLOSE || (op->trade.exit_reason && op->trade.exit_price.given));
        int order = before ? strcmp(before->trade.symbol, op->trade.symbol) : -1;
        HOLDS(order < 0 || (order == 0 && before->flip && op->flip && before->kind == TRADE_CLOSE &&
                            op->kind == TRADE_OPEN && before->trade.side != op->trade.side));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = { 0 };
    struct bytes b = { data, data + size };
    struct tick tick = { .tick_us = 0 };
    struct trade *open = NULL;
    size_t count = 0;
    int64_t last_us = MATERIALIZE_NO_TICK;
    for (int i = 0; i < 64 && b.at < b.end; i++) {
        struct position positions[4];
        struct symbol_amount amounts[4];
        struct materialized m;
        take_tick(&b, &tick, positions, amounts);
        enum materialize_status status = materialize(&arena, open, count, &tick, last_us, &m);
        HOLDS(status == MATERIALIZED || (m.op_count == 0 && m.stray_count == 0));
        if (status != MATERIALIZED)
            continue;
        check_ops(&m, &arena);
        open = materialize_open_rows(&arena, &m, &count);
        last_us = tick.tick_us;
        HOLDS(materialize(&arena, open, count, &tick, last_us, &m) == MATERIALIZE_SAME_TICK);
    }
    arena_release(&arena);
    return 0;
}
