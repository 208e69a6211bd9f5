/* The decision context as text for a prompt, within a token budget. */
#include "core/ledger/context.h"

#include "core/base/line_text.h"
#include "core/base/money.h"
#include "core/base/time_text.h"
#include "core/base/tokens.h"

enum { SYMBOL_CHARS = 64, TAG_CHARS = 40, MINUTE_LEN = 16 }; /* "2026-06-04T10:00" */

static const char closed_heading[] = "## Recent trades on this skill (closed)\n";
static const char open_heading[] = "## Open positions (memory view)\n";

/* ---- lines ---- */

static void put_reason(struct buf *out, const char *reason)
{
    if (!reason)
        return;
    buf_text(out, " \"");
    line_text(out, reason, CONTEXT_REASON_CHARS);
    buf_char(out, '"');
}

/* The exit shows its date only if it differs from that of the entry. */
static void put_span(struct buf *out, int64_t from_us, int64_t to_us)
{
    char from[TIME_TEXT_SIZE], to[TIME_TEXT_SIZE];
    time_text_full(from_us, from);
    time_text_full(to_us, to);
    size_t same = memcmp(from, to, 11) == 0 ? 11 : 0;
    buf_add(out, from, MINUTE_LEN);
    buf_text(out, " → ");
    buf_add(out, to + same, MINUTE_LEN - same);
}

/* Fast path: the lexeme itself, if it is canonical and short enough to be exact. */
static void put_price(struct buf *out, struct quantity price)
{
    const size_t len = price.lexeme ? strlen(price.lexeme) : 0;
    if (len > 0 && len <= DECIMAL_SCALE && (price.lexeme[len - 1] != '0' || !memchr(price.lexeme, '.', len)))
        money_price_text(out, price.lexeme);
    else
        money_price(out, price.value);
}

static void put_minutes(struct buf *out, struct decimal minutes)
{
    char text[DECIMAL_TEXT_SIZE];
    decimal_fixed(minutes, 0, text);
    buf_text(out, text);
    buf_char(out, 'm');
}

static void put_what(struct buf *out, const struct trade *t)
{
    line_text(out, t->symbol, SYMBOL_CHARS);
    buf_char(out, ' ');
    buf_text(out, trade_side_names[t->side]);
    buf_char(out, ' ');
    money_usd(out, t->entry_size_usd.value);
}

static void put_closed(struct buf *out, const struct trade *t, int64_t now_us)
{
    (void)now_us; /* a closed trade has its own end */
    buf_text(out, "- ");
    put_span(out, t->entry_tick_us, t->exit_tick_us);
    buf_char(out, ' ');
    put_what(out, t);
    buf_char(out, ' ');
    put_price(out, t->entry_price);
    buf_text(out, " → ");
    put_price(out, t->exit_price);
    buf_char(out, ' ');
    money_pnl(out, t->realized_pnl_usd.value);
    struct decimal share = money_share(t->realized_pnl_usd.value, t->entry_size_usd.value);
    if (decimal_is_valid(share)) {
        buf_text(out, " (");
        money_percent(out, share, 1);
        buf_char(out, ')');
    }
    buf_char(out, ' ');
    put_minutes(out, t->holding_minutes);
    if (t->entry_regime_tag) {
        buf_text(out, " regime=");
        line_text(out, t->entry_regime_tag, TAG_CHARS);
    }
    put_reason(out, t->entry_reason);
    buf_char(out, '\n');
}

static void put_open(struct buf *out, const struct trade *t, int64_t now_us)
{
    buf_text(out, "- ");
    put_what(out, t);
    buf_text(out, " @ ");
    put_price(out, t->entry_price);
    buf_text(out, " mark=");
    put_price(out, t->mark_price);
    buf_text(out, " MFE=");
    money_change(out, t->mfe_usd);
    buf_text(out, " / MAE=");
    money_change(out, t->mae_usd);
    buf_text(out, " held ");
    put_minutes(out, trade_minutes(t->entry_tick_us, now_us));
    put_reason(out, t->entry_reason);
    buf_char(out, '\n');
}

/* ---- sections within the budget ---- */

struct budget {
    size_t used, max;
};

/* Charges the lines to the budget. False: they do not fit. The estimate of a text is the sum over its lines.
 */
static bool charge(struct budget *b, const char *lines, size_t len)
{
    size_t tokens = tokens_estimate(lines, len);
    if (tokens > b->max - b->used)
        return false;
    b->used += tokens;
    return true;
}

typedef void put_trade(struct buf *out, const struct trade *t, int64_t now_us);

/* Appends the heading and as many trades as fit, or nothing if none fits. The blank line before the section
 * is charged here and written by the caller. */
static size_t put_section(struct buf *out, struct budget *b, const char *heading, put_trade *put,
                          const struct trade *trades, size_t count, int64_t now_us)
{
    const size_t start = out->len;
    const struct budget before = *b;
    size_t shown = 0;
    buf_text(out, heading);
    if (!charge(b, heading, strlen(heading)) || (before.used > 0 && !charge(b, "\n", 1)))
        count = 0;
    for (; shown < count; shown++) {
        size_t line = out->len;
        put(out, &trades[shown], now_us);
        if (!charge(b, out->data + line, out->len - line)) {
            out->len = line;
            break;
        }
    }
    if (shown == 0) {
        out->len = start;
        *b = before;
    }
    return shown;
}

/* Appends the lessons, or nothing if they do not fit. */
static void put_lessons(struct buf *out, struct budget *b, const char *text, struct context_shown *shown)
{
    if (!text || !*text)
        return;
    buf_text(out, text);
    if (out->data[out->len - 1] != '\n')
        buf_char(out, '\n');
    shown->lessons_tokens = tokens_estimate(out->data, out->len);
    const struct budget before = *b;
    shown->lessons = charge(b, out->data, out->len) && (before.used == 0 || charge(b, "\n", 1));
    if (!shown->lessons) {
        out->len = 0;
        *b = before;
    }
}

static void put_journal(struct buf *out, struct budget *b, const struct context_section *journal)
{
    const size_t between = b->used > 0; /* the blank line before the section */
    if (!journal || b->max - b->used <= between)
        return;
    const size_t tokens = journal->put(out, journal->arg, b->max - b->used - between);
    b->used += tokens ? tokens + between : 0;
}

static void add_section(struct buf *out, size_t start, const struct buf *section)
{
    if (section->len == 0)
        return;
    if (out->len > start)
        buf_char(out, '\n');
    buf_add(out, section->data, section->len);
}

static size_t closed_most(const struct context *c)
{
    return c->closed_count < CONTEXT_TRADES_MAX ? c->closed_count : CONTEXT_TRADES_MAX;
}

/* Sections are charged in order of importance and shown in the order of the prompt. */
struct context_shown context_text(struct buf *out, const struct context *c, size_t max_tokens)
{
    struct context_shown shown = { .risk = true };
    struct budget budget = { .max = max_tokens };
    struct buf risk = { .arena = out->arena }, lessons = risk, closed = risk, open = risk, journal = risk;
    risk_state_text(&risk, &c->risk);
    if (!charge(&budget, risk.data, risk.len)) {
        risk.len = 0;
        shown.risk = false;
    }
    put_lessons(&lessons, &budget, c->lessons.text, &shown);
    shown.open = put_section(&open, &budget, open_heading, put_open, c->open, c->open_count, c->now_us);
    put_journal(&journal, &budget, c->journal);
    shown.closed =
        put_section(&closed, &budget, closed_heading, put_closed, c->closed, closed_most(c), c->now_us);
    shown.open_omitted = c->open_count - shown.open;
    shown.closed_omitted = c->closed_count - shown.closed;
    shown.tokens = budget.used;
    const size_t start = out->len;
    add_section(out, start, &lessons);
    add_section(out, start, &risk);
    add_section(out, start, &closed);
    add_section(out, start, &open);
    add_section(out, start, &journal);
    return shown;
}
