/* The identity of a tick: the same content in any order and spelling, and nothing else. */
#include "core/ledger/tick_hash.h"
#include "tests/core/unit.h"

static struct arena arena;

struct content {
    struct position positions[2];
    struct symbol_amount marks[2], fees[2];
    struct tick tick;
    const char *equity, *lessons_hash;
};

static struct content example(void)
{
    return (struct content){
        .positions = { { .symbol = "BTC",
                         .side = TRADE_LONG,
                         .size_base = unit_number("1.5"),
                         .mark_price = unit_number("100") },
                       { .symbol = "ETH",
                         .side = TRADE_SHORT,
                         .size_base = unit_number("2"),
                         .mark_price = unit_number("10"),
                         .leverage = unit_number("3") } },
        .marks = { { "SOL", unit_number("5") }, { "XRP", unit_number("6") } },
        .fees = { { "BTC", unit_number("0.1") }, { "ETH", unit_number("0.2") } },
        .tick = { .position_count = 2,
                  .mark_count = 2,
                  .fee_count = 2,
                  .intent = { "open_position", "BTC", "breakout", "executed", NULL } },
        .equity = "1000",
    };
}

static const char *hash_of(struct content *c)
{
    c->tick.positions = c->positions;
    c->tick.marks = c->marks;
    c->tick.fees = c->fees;
    return tick_hash(&arena, &c->tick, unit_number(c->equity), c->lessons_hash);
}

#define SWAP(list)                   \
    do {                             \
        __auto_type first = list[0]; \
        list[0] = list[1];           \
        list[1] = first;             \
    } while (0)

START_TEST(order_spelling_and_instant_do_not_matter)
{
    struct content a = example(), b = example();
    SWAP(b.positions);
    SWAP(b.marks);
    SWAP(b.fees);
    b.equity = "1000.00";
    b.positions[0].size_base = unit_number("20e-1");
    b.tick.tick_us = 1;
    b.tick.snapshot_id = "another";
    ck_assert_str_eq(hash_of(&a), hash_of(&b));
    arena_release(&arena);
}
END_TEST

START_TEST(every_member_of_the_content_matters)
{
    struct content same = example(), all[16];
    size_t n = 0;
#define VARIANT(...) (all[n] = example(), all[n].__VA_ARGS__, n++)
    VARIANT(equity = "1001");
    VARIANT(lessons_hash = "none");
    VARIANT(positions[0].side = TRADE_SHORT);
    VARIANT(positions[0].symbol = "BTC2");
    VARIANT(positions[0].size_base = unit_number("1.6"));
    VARIANT(positions[0].entry_price = unit_number("99"));
    VARIANT(positions[1].leverage = (struct quantity){ 0 });
    VARIANT(positions[1].realized_pnl_usd = unit_number("0"));
    VARIANT(tick.position_count = 1);
    VARIANT(marks[0].amount = unit_number("7"));
    VARIANT(fees[1].amount = unit_number("0.3"));
    VARIANT(tick.mark_count = 1);
    VARIANT(tick.intent.reason = NULL);
    VARIANT(tick.intent.engine_rule = "R1");
#undef VARIANT
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(strcmp(hash_of(&same), hash_of(&all[i])) != 0, "variant %zu", i);
        for (size_t j = 0; j < i; j++)
            ck_assert_msg(strcmp(hash_of(&all[i]), hash_of(&all[j])) != 0, "variants %zu and %zu", i, j);
    }
    arena_release(&arena);
}
END_TEST

/* Stored hashes are compared with new ones: they must not change between releases. */
START_TEST(a_stored_hash_stays_valid)
{
    struct content c = example();
    ck_assert_str_eq(hash_of(&c), "c58453bcf4e7a9c044514c26e04aed7ba4d2801e07db5429eac49ed5f443ecf9");
    arena_release(&arena);
}
END_TEST

UNIT_MAIN("tick_hash", order_spelling_and_instant_do_not_matter, every_member_of_the_content_matters,
          a_stored_hash_stays_valid)
