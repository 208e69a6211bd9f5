/* The materializer, against its golden files. */
#include "core/ledger/materialize.h"
#include "tests/core/golden.h"

static struct arena arena;

static const char *const files[] = {
    "transitions", "size_changes", "flips", "labels", "marks",    "broker_pnl",
    "symbols",     "ticks",        "fees",  "digits", "refusals",
};

static const char *const statuses[] = {
    [MATERIALIZED] = "materialized",
    [MATERIALIZE_SAME_TICK] = "same_tick",
    [MATERIALIZE_OLDER_TICK] = "older_tick",
    [MATERIALIZE_TOO_MANY] = "too_many",
    [MATERIALIZE_DUPLICATE_SYMBOL] = "duplicate_symbol",
    [MATERIALIZE_BAD_SIZE] = "bad_size",
    [MATERIALIZE_BAD_PRICE] = "bad_price",
    [MATERIALIZE_TOO_LARGE] = "too_large",
};

/* The case being read: its ledger, and the tick that its lines build. */
struct scene {
    const char *name;
    struct trade *open;
    size_t open_count;
    int64_t last_us;
    int ticks;
    bool pending;
    struct tick tick;
    struct position positions[MATERIALIZE_POSITIONS_MAX + 1];
    struct symbol_amount marks[8], fees[8];
    struct buf expected;
};

static const char *given(const char *column)
{
    return strcmp(column, "-") == 0 || *column == '\0' ? NULL : column;
}

static struct quantity quantity(const char *column)
{
    return given(column) ? unit_number(column) : (struct quantity){ .given = false };
}

static void put_result(struct buf *out, enum materialize_status status, const struct materialized *m)
{
    if (status != MATERIALIZED)
        buf_fmt(out, "=\t%s%s%s\n", statuses[status], m->symbol ? " " : "", m->symbol ? m->symbol : "");
    else if (m->op_count == 0 && m->stray_count == 0)
        buf_text(out, "=\tnothing\n");
    for (size_t i = 0; i < m->op_count; i++) {
        struct buf op = { .arena = &arena };
        materialize_op_json(&op, &m->ops[i]);
        buf_fmt(out, "=\t%s\n", buf_string(&op));
    }
    for (size_t i = 0; i < m->stray_count; i++)
        buf_fmt(out, "=\tstray %s %s\n", m->stray_fees[i].symbol, m->stray_fees[i].amount.lexeme);
}

/* Runs the tick that was read, if any; appends the result to `now`. */
static void run_tick(struct scene *s, const char *file, struct buf *now)
{
    if (!s->pending)
        return;
    s->pending = false;
    struct materialized m;
    struct buf got = { .arena = &arena };
    s->tick.positions = s->positions;
    s->tick.marks = s->marks;
    s->tick.fees = s->fees;
    struct tick *tick = arena_alloc(&arena, sizeof *tick);
    *tick = s->tick;
    enum materialize_status status = materialize(&arena, s->open, s->open_count, tick, s->last_us, &m);
    put_result(&got, status, &m);
    if (status == MATERIALIZED) {
        s->open = materialize_open_rows(&arena, &m, &s->open_count);
        s->last_us = s->tick.tick_us;
    }
    buf_add(now, got.data, got.len);
    if (!golden_rewrites())
        ck_assert_msg(strcmp(buf_string(&got), buf_string(&s->expected)) == 0,
                      "%s, %s, tick %d:\n%sinstead of\n%s", file, s->name, s->ticks, buf_string(&got),
                      buf_string(&s->expected));
}

static void read_position(struct scene *s, char **column)
{
    ck_assert_uint_lt(s->tick.position_count, MATERIALIZE_POSITIONS_MAX + 1);
    struct position *p = &s->positions[s->tick.position_count++];
    *p = (struct position){
        .symbol = column[1],
        .side = strcmp(column[2], "short") == 0 ? TRADE_SHORT : TRADE_LONG,
        .size_base = quantity(column[3]),
        .mark_price = quantity(column[4]),
    };
    for (int i = 5; i < 8; i++) {
        char *value = strchr(column[i], '=');
        if (!value)
            continue;
        struct quantity q = quantity(value + 1);
        if (strncmp(column[i], "entry_price=", 12) == 0)
            p->entry_price = q;
        else if (strncmp(column[i], "leverage=", 9) == 0)
            p->leverage = q;
        else
            p->realized_pnl_usd = q;
    }
}

static void read_line(struct scene *s, char **column)
{
    const char *what = column[0];
    if (strcmp(what, "case") == 0) {
        memset(s, 0, sizeof *s);
        s->name = column[1];
        s->last_us = MATERIALIZE_NO_TICK;
    } else if (strcmp(what, "tick") == 0) {
        memset(&s->tick, 0, sizeof s->tick);
        s->expected = (struct buf){ .arena = &arena };
        s->pending = true;
        s->tick.snapshot_id = arena_fmt(&arena, "s%d", ++s->ticks);
        s->tick.tick_us = unit_time_us(column[1]);
    } else if (strcmp(what, "action") == 0) {
        s->tick.intent.kind = given(column[1]);
        s->tick.intent.symbol = given(column[2]);
        s->tick.intent.reason = given(column[3]);
    } else if (strcmp(what, "engine") == 0) {
        s->tick.intent.engine_kind = given(column[1]);
        s->tick.intent.engine_rule = given(column[2]);
    } else if (strcmp(what, "position") == 0) {
        read_position(s, column);
    } else if (strcmp(what, "mark") == 0) {
        s->marks[s->tick.mark_count++] = (struct symbol_amount){ column[1], quantity(column[2]) };
    } else if (strcmp(what, "fee") == 0) {
        s->fees[s->tick.fee_count++] = (struct symbol_amount){ column[1], quantity(column[2]) };
    } else {
        ck_assert_str_eq(what, "=");
        buf_fmt(&s->expected, "=\t%s\n", column[1]);
    }
}

/* Runs a file; returns it with the actual results. */
static const char *play(const char *file, int *cases)
{
    FILE *f = fopen(arena_fmt(&arena, "%s/materialize/%s.tsv", TEST_DATA, file), "r");
    ck_assert_msg(f != NULL, "%s", file);
    struct scene *s = arena_zero(&arena, sizeof *s);
    struct buf now = { .arena = &arena };
    char line[4096];
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        if (*line == '#' || *line == '\0') {
            run_tick(s, file, &now);
            buf_fmt(&now, "%s\n", line);
            continue;
        }
        char *column[8];
        char *copy = arena_text(&arena, line);
        unit_columns(copy, column, 8);
        if (strcmp(column[0], "case") == 0 || strcmp(column[0], "tick") == 0)
            run_tick(s, file, &now);
        *cases += strcmp(column[0], "case") == 0;
        if (strcmp(column[0], "=") != 0)
            buf_fmt(&now, "%s\n", line);
        read_line(s, column);
    }
    fclose(f);
    run_tick(s, file, &now);
    return buf_string(&now);
}

START_TEST(results_match_the_golden_files)
{
    int cases = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const char *now = play(files[i], &cases);
        golden_check(&arena, arena_fmt(&arena, "materialize/%s.tsv", files[i]), now);
        arena_release(&arena);
    }
    ck_assert_int_ge(cases, 60);
}
END_TEST

/* Tables of 200, the maximum, and of one more. */
START_TEST(values_at_the_limits_are_accepted_and_beyond_them_refused)
{
    enum { MOST = MATERIALIZE_POSITIONS_MAX };
    struct position *positions = arena_zero(&arena, (MOST + 1) * sizeof *positions);
    for (int i = 0; i <= MOST; i++)
        positions[i] = (struct position){ .symbol = arena_fmt(&arena, "S%03d", (i * 7) % (MOST + 1)),
                                          .size_base = quantity_derived(decimal_from_int(i + 1)),
                                          .mark_price = quantity_derived(decimal_from_int(5)) };
    struct tick tick = { .tick_us = 1, .positions = positions, .position_count = MOST + 1 };
    struct materialized m;
    ck_assert_int_eq(materialize(&arena, NULL, 0, &tick, MATERIALIZE_NO_TICK, &m), MATERIALIZE_TOO_MANY);
    ck_assert_uint_eq(m.op_count, 0);
    tick.position_count = MOST;
    ck_assert_int_eq(materialize(&arena, NULL, 0, &tick, MATERIALIZE_NO_TICK, &m), MATERIALIZED);
    ck_assert_uint_eq(m.op_count, MOST);
    for (size_t i = 1; i < MOST; i++)
        ck_assert_int_lt(strcmp(m.ops[i - 1].trade.symbol, m.ops[i].trade.symbol), 0);

    size_t open_count;
    struct trade *open = materialize_open_rows(&arena, &m, &open_count);
    ck_assert_uint_eq(open_count, MOST);
    for (int i = 0; i < MOST; i++) /* all flip at once */
        positions[i].side = TRADE_SHORT;
    tick.tick_us = 2;
    ck_assert_int_eq(materialize(&arena, open, MOST, &tick, 1, &m), MATERIALIZED);
    ck_assert_uint_eq(m.op_count, 2 * MOST);
    struct symbol_amount *many = arena_zero(&arena, (MATERIALIZE_AMOUNTS_MAX + 1) * sizeof *many);
    tick.marks = tick.fees = many;
    tick.mark_count = MATERIALIZE_AMOUNTS_MAX + 1;
    ck_assert_int_eq(materialize(&arena, open, MOST, &tick, 1, &m), MATERIALIZE_TOO_MANY);
    tick.mark_count = 0;
    tick.fee_count = MATERIALIZE_AMOUNTS_MAX + 1;
    ck_assert_int_eq(materialize(&arena, open, MOST, &tick, 1, &m), MATERIALIZE_TOO_MANY);
    arena_release(&arena);
}
END_TEST

START_TEST(the_order_of_positions_does_not_matter)
{
    static const char *const symbols[] = { "SOL", "BTC", "ETH", "DOGE", "BTC2" };
    uint64_t random = 3;
    const char *first = NULL;
    for (int round = 0; round < 200; round++) {
        struct position positions[5] = { 0 };
        for (int i = 0; i < 5; i++)
            positions[i] = (struct position){ .symbol = symbols[i],
                                              .size_base = quantity("2"),
                                              .mark_price = quantity("3") };
        for (uint64_t i = 4; i > 0; i--) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
            uint64_t j = (random >> 33) % (i + 1);
            struct position swap = positions[i];
            positions[i] = positions[j];
            positions[j] = swap;
        }
        struct tick tick = { .tick_us = 1, .positions = positions, .position_count = 5 };
        struct materialized m;
        struct buf out = { .arena = &arena };
        ck_assert_int_eq(materialize(&arena, NULL, 0, &tick, MATERIALIZE_NO_TICK, &m), MATERIALIZED);
        put_result(&out, MATERIALIZED, &m);
        if (!first)
            first = buf_string(&out);
        ck_assert_str_eq(first, buf_string(&out));
    }
    arena_release(&arena);
}
END_TEST

START_TEST(a_tick_before_the_entry_of_an_open_row_is_older)
{
    struct position btc = { .symbol = "BTC", .size_base = quantity("1"), .mark_price = quantity("100") };
    struct tick tick = { .tick_us = 10, .positions = &btc, .position_count = 1 };
    struct materialized m;
    size_t count;
    ck_assert_int_eq(materialize(&arena, NULL, 0, &tick, MATERIALIZE_NO_TICK, &m), MATERIALIZED);
    struct trade *open = materialize_open_rows(&arena, &m, &count);
    tick.tick_us = 9;
    ck_assert_int_eq(materialize(&arena, open, count, &tick, MATERIALIZE_NO_TICK, &m),
                     MATERIALIZE_OLDER_TICK);
    ck_assert_str_eq(m.symbol, "BTC");
    arena_release(&arena);
}
END_TEST

START_TEST(two_open_rows_of_one_symbol_are_refused)
{
    struct position btc = { .symbol = "BTC", .size_base = quantity("1"), .mark_price = quantity("100") };
    struct tick tick = { .tick_us = 10, .positions = &btc, .position_count = 1 };
    struct materialized m;
    ck_assert_int_eq(materialize(&arena, NULL, 0, &tick, MATERIALIZE_NO_TICK, &m), MATERIALIZED);
    struct trade open[2] = { m.ops[0].trade, m.ops[0].trade };
    tick.tick_us = 11;
    ck_assert_int_eq(materialize(&arena, open, 2, &tick, 10, &m), MATERIALIZE_DUPLICATE_SYMBOL);
    ck_assert_str_eq(m.symbol, "BTC");
    ck_assert_uint_eq(m.op_count, 0);
    arena_release(&arena);
}
END_TEST

UNIT_MAIN("materialize", results_match_the_golden_files,
          values_at_the_limits_are_accepted_and_beyond_them_refused, the_order_of_positions_does_not_matter,
          a_tick_before_the_entry_of_an_open_row_is_older, two_open_rows_of_one_symbol_are_refused)
