/* Open trades as JSON: in the answer to a tick, in the snapshot that keeps it, and as they come back. */
#include "handlers/ledger/trade_row.h"

#include "core/base/time_text.h"
#include "core/ledger/json_put.h"
#include "server/json/flat.h"

/* ---- out ---- */

static void put_row(struct buf *out, const struct trade *t)
{
    buf_char(out, '{');
    json_put_text(out, "trade_id", t->id);
    json_put_text(out, "symbol", t->symbol);
    json_put_text(out, "side", trade_side_names[t->side]);
    json_put_entry(out, t);
    json_put_quantity(out, "size_base", t->size_base);
    json_put_quantity(out, "average_entry_price", t->average_entry_price);
    json_put_quantity(out, "realized_so_far_usd", t->realized_pnl_usd);
    json_put_quantity(out, "mark_price", t->mark_price);
    json_put_decimal(out, "mfe_usd", t->mfe_usd);
    json_put_decimal(out, "mae_usd", t->mae_usd);
    json_put_decimal(out, "fees_usd", t->fees_usd);
    buf_char(out, '}');
}

void trade_rows_json(struct buf *out, const struct trade *rows, size_t count)
{
    buf_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_char(out, ',');
        put_row(out, &rows[i]);
    }
    buf_char(out, ']');
}

void trade_ops_json(struct buf *out, const struct materialized *m)
{
    buf_char(out, '[');
    for (size_t i = 0; i < m->op_count; i++) {
        if (i)
            buf_char(out, ',');
        materialize_op_json(out, &m->ops[i]);
    }
    buf_char(out, ']');
}

void trade_fees_json(struct buf *out, const struct materialized *m)
{
    buf_char(out, '[');
    for (size_t i = 0; i < m->stray_count; i++) {
        buf_text(out, i ? ",{" : "{");
        json_put_text(out, "symbol", m->stray_fees[i].symbol);
        json_put_quantity(out, "fees_usd", m->stray_fees[i].amount);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

/* ---- in ---- */

/* A row of the ledger has both PnLs; the trade has room for the one that counts. */
struct row {
    struct trade trade;
    struct quantity realized_so_far_usd;
};

enum member_kind { MEMBER_TEXT, MEMBER_SIDE, MEMBER_TIME, MEMBER_QUANTITY, MEMBER_DECIMAL };

struct member {
    const char *name;
    size_t len;
    enum member_kind kind;
    size_t offset;
    bool required;
};

#define M(name, kind, offset, ...) { #name, sizeof #name - 1, kind, offset, __VA_ARGS__ }
#define T(name, kind, member, ...) M(name, kind, offsetof(struct row, trade.member), __VA_ARGS__)
static const struct member members[] = {
    T(trade_id, MEMBER_TEXT, id),
    T(id, MEMBER_TEXT, id), /* of a row of the table */
    T(symbol, MEMBER_TEXT, symbol, .required = true),
    T(side, MEMBER_SIDE, side, .required = true),
    T(entry_tick_at, MEMBER_TIME, entry_tick_us, .required = true),
    T(entry_price, MEMBER_QUANTITY, entry_price, .required = true),
    T(entry_size_usd, MEMBER_QUANTITY, entry_size_usd, .required = true),
    T(entry_leverage, MEMBER_QUANTITY, entry_leverage),
    T(entry_reason, MEMBER_TEXT, entry_reason),
    T(entry_snapshot_id, MEMBER_TEXT, entry_snapshot_id),
    T(entry_regime_tag, MEMBER_TEXT, entry_regime_tag),
    T(entry_lessons_hash, MEMBER_TEXT, entry_lessons_hash),
    T(exit_tick_at, MEMBER_TIME, exit_tick_us),
    T(exit_price, MEMBER_QUANTITY, exit_price),
    T(exit_reason, MEMBER_TEXT, exit_reason),
    T(exit_snapshot_id, MEMBER_TEXT, exit_snapshot_id),
    T(holding_minutes, MEMBER_DECIMAL, holding_minutes),
    T(realized_pnl_usd, MEMBER_QUANTITY, realized_pnl_usd),
    T(size_base, MEMBER_QUANTITY, size_base),
    T(average_entry_price, MEMBER_QUANTITY, average_entry_price),
    M(realized_so_far_usd, MEMBER_QUANTITY, offsetof(struct row, realized_so_far_usd)),
    T(mark_price, MEMBER_QUANTITY, mark_price),
    T(mfe_usd, MEMBER_DECIMAL, mfe_usd),
    T(mae_usd, MEMBER_DECIMAL, mae_usd),
    T(fees_usd, MEMBER_DECIMAL, fees_usd),
};
enum { MEMBERS = sizeof members / sizeof *members };

/* Which member came behind each one in the last row: rows are alike, so it is guessed to come again. The
 * first is behind MEMBERS. */
struct order {
    unsigned char next[MEMBERS + 1];
};

/* -1: a column that a trade has no member for. */
static int find(const char *name, int guess)
{
    if (name == members[guess].name)
        return guess;
    for (int i = 0; i < MEMBERS; i++)
        if (members[i].name[0] == name[0] && strcmp(members[i].name, name) == 0)
            return i;
    return -1;
}

static bool take_side(const char *name, enum trade_side *out)
{
    for (int side = 0; side < TRADE_SIDES; side++)
        if (strcmp(name, trade_side_names[side]) == 0) {
            *out = (enum trade_side)side;
            return true;
        }
    return false;
}

static bool take_value(const struct member *m, const struct flat_member *value, void *to)
{
    struct quantity number;
    bool is_number = m->kind == MEMBER_QUANTITY || m->kind == MEMBER_DECIMAL;
    if (value->kind != (is_number ? FLAT_NUMBER : FLAT_TEXT))
        return false;
    switch (m->kind) {
    case MEMBER_TEXT:
        *(const char **)to = value->text;
        return true;
    case MEMBER_SIDE:
        return take_side(value->text, to);
    case MEMBER_TIME:
        return time_text_parse(value->text, to);
    case MEMBER_QUANTITY:
        (void)quantity_read(value->text, to);
        return ((struct quantity *)to)->given;
    case MEMBER_DECIMAL:
        (void)quantity_read(value->text, &number);
        *(struct decimal *)to = number.value;
        return number.given;
    }
    return false;
}

/* Reads the members of one object; what is null or absent stays as it is in an empty trade. */
static bool take_row(struct flat *f, struct order *order, struct trade *out)
{
    struct row row = { 0 };
    struct flat_member value;
    unsigned seen = 0;
    for (int last = MEMBERS, guess;;) {
        guess = order->next[last];
        if (!flat_member(f, members[guess].name, members[guess].len, &value))
            break;
        const int at = find(value.name, guess);
        if (at < 0)
            continue;
        order->next[last] = (unsigned char)at;
        last = at;
        if (value.kind == FLAT_NULL)
            continue;
        if (!take_value(&members[at], &value, (char *)&row + members[at].offset))
            return false;
        seen |= 1u << at;
    }
    for (int i = 0; i < MEMBERS; i++)
        if (members[i].required && !(seen & 1u << i))
            return false;
    if (!row.trade.realized_pnl_usd.given)
        row.trade.realized_pnl_usd = row.realized_so_far_usd;
    *out = row.trade;
    return true;
}

enum err trade_rows_read(struct arena *arena, const char *json, struct trade **rows, size_t *count)
{
    size_t room = 16;
    *count = 0;
    *rows = arena_alloc(arena, room * sizeof **rows);
    if (!json)
        return OK;
    struct flat f = flat_begin(arena_text(arena, json));
    struct order order = { 0 };
    while (flat_object(&f)) {
        if (*count == room) {
            struct trade *more = arena_alloc(arena, 2 * room * sizeof *more);
            memcpy(more, *rows, room * sizeof *more);
            *rows = more;
            room *= 2;
        }
        if (!take_row(&f, &order, &(*rows)[*count]))
            return ERR_INTERNAL;
        ++*count;
    }
    return flat_ended(&f) ? OK : ERR_INTERNAL;
}
