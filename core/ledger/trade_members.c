/* A trade as JSON: every member of every form, in one table. */
#include "core/ledger/trade_members.h"

#include "core/base/money.h"
#include "core/base/time_text.h"

static struct decimal pnl_pct(const struct trade_source *s)
{
    return decimal_round(money_share(s->trade->realized_pnl_usd.value, s->trade->entry_size_usd.value), 4);
}

static struct decimal held_minutes(const struct trade_source *s)
{
    return trade_minutes(s->trade->entry_tick_us, s->now_us);
}

enum {
    ROW = FORM_OPEN_ROW,
    OPS = FORM_OP_OPEN | FORM_OP_UPDATE | FORM_OP_CLOSE,
    CONTEXT = FORM_CONTEXT_OPEN | FORM_CONTEXT_CLOSED,
    READ = FORM_READ,
    NEEDED = FORM_READ | FORM_READ_REQUIRED,
    ENTRY = ROW | FORM_OP_OPEN | FORM_STORE_ENTRY | FORM_READ, /* the entry */
    EXIT = FORM_OP_CLOSE | FORM_STORE_EXIT | FORM_READ,        /* the exit */
    STATE = ROW | OPS | FORM_STORE | FORM_READ,                /* what any tick may change */
};

/* clang-format off */
#define ROW_OF(name, kind, ...) { #name, ",\"" #name "\":", sizeof #name - 1, kind, __VA_ARGS__ }
#define T(name, kind, member, in_forms, ...) ROW_OF(name, kind, offsetof(struct trade, member), in_forms, __VA_ARGS__)
#define OP(name, kind, in_forms, ...) ROW_OF(name, kind, offsetof(struct trade_op, name), in_forms, .of_op = true, __VA_ARGS__)
#define COMPUTED(name, in_forms) ROW_OF(name, MEMBER_COMPUTED, 0, in_forms, .compute = name)
const struct trade_member trade_members[] = {
    T(trade_id, MEMBER_TEXT, id, ROW | READ),
    { "op", ",\"op\":", 2, MEMBER_ENUM, offsetof(struct trade_op, kind), OPS, .of_op = true, .names = trade_op_names },
    T(trade_id, MEMBER_TEXT, id, OPS, .leave_out = true),
    T(id, MEMBER_TEXT, id, FORM_STORE | READ),
    T(symbol, MEMBER_TEXT, symbol, ENTRY | OPS | CONTEXT | NEEDED),
    T(side, MEMBER_ENUM, side, ENTRY | OPS | CONTEXT | NEEDED, .names = trade_side_names),
    OP(flip, MEMBER_BOOL, FORM_OP_OPEN | FORM_OP_CLOSE),
    T(entry_tick_at, MEMBER_TIME, entry_tick_us, ENTRY | CONTEXT | NEEDED),
    T(entry_size_usd, MEMBER_QUANTITY, entry_size_usd, CONTEXT),
    T(entry_price, MEMBER_QUANTITY, entry_price, ENTRY | CONTEXT | NEEDED),
    T(entry_size_usd, MEMBER_QUANTITY, entry_size_usd, ENTRY | NEEDED),
    T(entry_leverage, MEMBER_QUANTITY, entry_leverage, ENTRY),
    T(entry_reason, MEMBER_TEXT, entry_reason, ENTRY | CONTEXT),
    T(entry_snapshot_id, MEMBER_TEXT, entry_snapshot_id, ENTRY),
    T(entry_regime_tag, MEMBER_TEXT, entry_regime_tag, ENTRY),
    T(regime, MEMBER_TEXT, entry_regime_tag, CONTEXT),
    T(entry_lessons_hash, MEMBER_TEXT, entry_lessons_hash, ENTRY),
    T(situation, MEMBER_TEXT, situation, FORM_STORE_ENTRY),
    T(exit_tick_at, MEMBER_TIME, exit_tick_us, EXIT | FORM_CONTEXT_CLOSED),
    T(exit_price, MEMBER_QUANTITY, exit_price, EXIT | FORM_CONTEXT_CLOSED),
    T(exit_reason, MEMBER_TEXT, exit_reason, EXIT | FORM_CONTEXT_CLOSED),
    T(exit_snapshot_id, MEMBER_TEXT, exit_snapshot_id, EXIT),
    T(holding_minutes, MEMBER_DECIMAL, holding_minutes, EXIT),
    T(realized_pnl_usd, MEMBER_QUANTITY, realized_pnl_usd, FORM_STORE_EXIT | FORM_CONTEXT_CLOSED | READ),
    COMPUTED(pnl_pct, FORM_CONTEXT_CLOSED),
    T(fees_usd, MEMBER_DECIMAL, fees_usd, FORM_CONTEXT_CLOSED),
    T(holding_minutes, MEMBER_DECIMAL, holding_minutes, FORM_CONTEXT_CLOSED),
    OP(change, MEMBER_ENUM, FORM_OP_UPDATE, .names = size_change_names),
    T(size_base, MEMBER_QUANTITY, size_base, STATE | FORM_CONTEXT_OPEN),
    T(average_entry_price, MEMBER_QUANTITY, average_entry_price, STATE | FORM_CONTEXT_OPEN),
    T(realized_so_far_usd, MEMBER_QUANTITY, realized_pnl_usd, STATE & ~(unsigned)FORM_OP_CLOSE, .yields = true),
    T(realized_pnl_usd, MEMBER_QUANTITY, realized_pnl_usd, FORM_OP_CLOSE),
    OP(pnl_source, MEMBER_ENUM, OPS, .names = pnl_source_names),
    T(mark_price, MEMBER_QUANTITY, mark_price, STATE | FORM_CONTEXT_OPEN),
    OP(mark_source, MEMBER_ENUM, OPS, .names = mark_source_names),
    T(mfe_usd, MEMBER_DECIMAL, mfe_usd, STATE | FORM_CONTEXT_OPEN),
    T(mae_usd, MEMBER_DECIMAL, mae_usd, STATE | FORM_CONTEXT_OPEN),
    T(fees_usd, MEMBER_DECIMAL, fees_usd, STATE),
    COMPUTED(held_minutes, FORM_CONTEXT_OPEN),
};
/* clang-format on */
enum { COUNT = sizeof trade_members / sizeof *trade_members };
_Static_assert((int)COUNT <= (int)TRADE_MEMBERS_MAX, "a reader keeps one bit for each member");
const size_t trade_members_count = COUNT;

/* ---- writing ---- */

static void put_time(struct buf *out, int64_t us)
{
    char text[TIME_TEXT_SIZE];
    time_text_short(us, text);
    buf_json_string(out, text);
}

static void put_value(struct buf *out, const struct trade_member *m, const struct trade_source *s)
{
    const char *from = (m->of_op ? (const char *)s->op : (const char *)s->trade) + m->offset;
    switch (m->kind) {
    case MEMBER_TEXT:
        buf_json_string(out, *(const char *const *)from);
        break;
    case MEMBER_TIME:
        put_time(out, *(const int64_t *)from);
        break;
    case MEMBER_QUANTITY:
        quantity_json(out, *(const struct quantity *)from);
        break;
    case MEMBER_DECIMAL:
        quantity_json(out, quantity_derived(*(const struct decimal *)from));
        break;
    case MEMBER_ENUM:
        buf_json_string(out, m->names[*(const unsigned *)from]);
        break;
    case MEMBER_BOOL:
        buf_json_bool(out, *(const bool *)from);
        break;
    case MEMBER_COMPUTED:
        quantity_json(out, quantity_derived(m->compute(s)));
        break;
    }
}

static bool is_left_out(const struct trade_member *m, const struct trade *t)
{
    return m->leave_out && !*(const char *const *)((const char *)t + m->offset);
}

void trade_members_json(struct buf *out, unsigned forms, const struct trade_source *source)
{
    bool first = out->len > 0 && out->data[out->len - 1] == '{';
    for (const struct trade_member *m = trade_members; m < trade_members + COUNT; m++) {
        if (!(m->forms & forms) || is_left_out(m, source->trade))
            continue;
        buf_add(out, m->key + first, m->name_len + 4 - first); /* the first has no comma */
        put_value(out, m, source);
        first = false;
    }
}

/* ---- reading ---- */

const struct trade_member *trade_members_find(const char *name)
{
    for (const struct trade_member *m = trade_members; m < trade_members + COUNT; m++)
        if (m->forms & FORM_READ && m->name[0] == name[0] && strcmp(m->name, name) == 0)
            return m;
    return NULL;
}

bool trade_members_is_number(const struct trade_member *m)
{
    return m->kind == MEMBER_QUANTITY || m->kind == MEMBER_DECIMAL;
}

static bool take_enum(const char *const *names, const char *text, unsigned *out)
{
    for (unsigned i = 0; names[i]; i++)
        if (strcmp(names[i], text) == 0) {
            *out = i;
            return true;
        }
    return false;
}

bool trade_members_take(const struct trade_member *m, const char *text, struct arena *arena,
                        struct trade *out)
{
    char *to = (char *)out + m->offset;
    switch (m->kind) {
    case MEMBER_TEXT:
        *(const char **)to = text;
        return true;
    case MEMBER_TIME:
        return time_text_parse(text, (int64_t *)to);
    case MEMBER_ENUM:
        return take_enum(m->names, text, (unsigned *)to);
    case MEMBER_QUANTITY:
        if (m->yields && ((struct quantity *)to)->given)
            return true;
        (void)quantity_take(arena, text, (struct quantity *)to);
        return ((struct quantity *)to)->given;
    case MEMBER_DECIMAL:
        return decimal_parse(text, (struct decimal *)to) <= DECIMAL_ROUNDED;
    case MEMBER_BOOL:
    case MEMBER_COMPUTED:
        break;
    }
    return false;
}
