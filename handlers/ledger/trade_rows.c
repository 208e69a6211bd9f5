/* Trades as JSON: in the response to a tick, in its snapshot, and read back from the database. */
#include "handlers/ledger/trade_rows.h"

#include "core/base/json_put.h"
#include "core/ledger/trade_members.h"
#include "server/json/reader.h"

/* ---- writing ---- */

void trade_rows_json(struct buf *out, const struct trade *rows, size_t count)
{
    buf_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        buf_text(out, i ? ",{" : "{");
        trade_members_json(out, FORM_OPEN_ROW, &(struct trade_source){ .trade = &rows[i] });
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

void trade_rows_ops_json(struct buf *out, const struct materialized *m)
{
    buf_char(out, '[');
    for (size_t i = 0; i < m->op_count; i++) {
        if (i)
            buf_char(out, ',');
        materialize_op_json(out, &m->ops[i]);
    }
    buf_char(out, ']');
}

void trade_rows_fees_json(struct buf *out, const struct materialized *m)
{
    buf_char(out, '[');
    for (size_t i = 0; i < m->stray_count; i++) {
        buf_text(out, i ? ",{" : "{");
        json_put_text(out, "symbol", m->stray_fees[i].symbol);
        buf_json_key(out, "fees_usd");
        quantity_json(out, m->stray_fees[i].amount);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

/* ---- reading ---- */

/* The successor of each member in the previous row. Rows have the same member order, so this predicts the
 * next name. The first member of a row is the successor of TRADE_MEMBERS_MAX. */
struct order {
    unsigned char next[TRADE_MEMBERS_MAX + 1];
    uint64_t required; /* a bit for each member */
};

static bool take_value(struct json_reader *r, const struct trade_member *m, struct arena *arena,
                       struct trade *out)
{
    const char *text = trade_members_is_number(m) ? reader_lexeme(r) : reader_text(r);
    return text && trade_members_take(m, text, arena, out);
}

static uint64_t required_members(void)
{
    uint64_t required = 0;
    for (size_t i = 0; i < trade_members_count; i++)
        if (trade_members[i].forms & FORM_READ_REQUIRED)
            required |= UINT64_C(1) << i;
    return required;
}

/* Reads one object. Null and absent members keep the value of an empty trade. Unknown members are skipped. */
static bool take_row(struct json_reader *r, struct order *order, struct arena *arena, struct trade *out)
{
    uint64_t seen = 0;
    size_t last = TRADE_MEMBERS_MAX;
    *out = (struct trade){ 0 };
    if (!reader_object(r))
        return false;
    for (const char *name;;) {
        const struct trade_member *m = &trade_members[order->next[last]];
        if (!(name = reader_name_guess(r, m->name, m->name_len)))
            break;
        if (name != m->name && !(m = trade_members_find(name))) {
            reader_skip(r);
            continue;
        }
        const size_t at = (size_t)(m - trade_members);
        order->next[last] = (unsigned char)at;
        last = at;
        if (reader_peek(r) == 'n')
            reader_skip(r);
        else if (take_value(r, m, arena, out))
            seen |= UINT64_C(1) << at;
        else
            return false;
    }
    return r->fault == READER_OK && (seen & order->required) == order->required;
}

enum err trade_rows_read(struct arena *arena, const char *json, struct trade **rows, size_t *count)
{
    size_t room = 16;
    *count = 0;
    *rows = arena_alloc(arena, room * sizeof **rows);
    if (!json)
        return OK;
    char *text = arena_text(arena, json);
    struct json_reader r = reader_begin_stored(text, strlen(text));
    struct order order = { .required = required_members() };
    if (!reader_list(&r))
        return ERR_INTERNAL;
    while (reader_item(&r)) {
        if (*count == room) {
            struct trade *more = arena_alloc(arena, 2 * room * sizeof *more);
            memcpy(more, *rows, room * sizeof *more);
            *rows = more;
            room *= 2;
        }
        if (!take_row(&r, &order, arena, &(*rows)[*count]))
            return ERR_INTERNAL;
        ++*count;
    }
    return reader_ended(&r) ? OK : ERR_INTERNAL;
}
