/* The risk state: what the agent and the engine did in this session, as a section of a prompt and as JSON. */
#include "core/ledger/risk_state.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/base/line_text.h"
#include "core/base/money.h"
#include "core/base/json_put.h"

enum { RULE_CHARS = 40 };

/* ---- counting ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void keep_tail(struct risk_state *r, struct arena *arena, const char *const *rules, size_t count)
{
    r->tail_count = count < RISK_REJECTIONS_TAIL ? count : RISK_REJECTIONS_TAIL;
    const char **tail = arena_alloc(arena, RISK_REJECTIONS_TAIL * sizeof *tail);
    for (size_t i = 0; i < r->tail_count; i++)
        tail[r->tail_count - 1 - i] = rules[i];
    r->tail = tail;
}

void risk_state_add_rejections(struct risk_state *r, struct arena *arena, const char **rules, size_t count)
{
    if (count == 0)
        return;
    keep_tail(r, arena, rules, count);
    struct rule_count *counts = arena_alloc(arena, count * sizeof *counts);
    qsort(rules, count, sizeof *rules, by_text);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(rules[i], rules[i - 1]) != 0)
            counts[r->rule_count++] = (struct rule_count){ .rule = rules[i] };
        counts[r->rule_count - 1].count++;
    }
    r->rejections = counts;
}

void risk_state_add_session(struct risk_state *r, const struct session *s, int64_t now_us)
{
    r->losing_closes = s->losing_closes;
    if (!session_is_today(s, now_us))
        return;
    r->executed_today = s->executed_today;
    r->has_pnl_today = true;
    r->pnl_today_pct = session_pnl_pct(s);
}

/* ---- order ---- */

/* Most frequent first, ties in byte order, so that the input order does not matter. */
static int by_count(const void *a, const void *b)
{
    const struct rule_count *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return strcmp(x->rule, y->rule);
}

static struct rule_count *sorted_rules(struct buf *out, const struct risk_state *r)
{
    struct rule_count *rules = arena_alloc(out->arena, (r->rule_count + 1) * sizeof *rules);
    if (r->rule_count > 0) {
        memcpy(rules, r->rejections, r->rule_count * sizeof *rules);
        qsort(rules, r->rule_count, sizeof *rules, by_count);
    }
    return rules;
}

static size_t tail_start(const struct risk_state *r)
{
    return r->tail_count > RISK_REJECTIONS_TAIL ? r->tail_count - RISK_REJECTIONS_TAIL : 0;
}

const char *risk_state_repeated(const struct risk_state *r)
{
    if (r->tail_count < RISK_REPEATED)
        return NULL;
    const char *last = r->tail[r->tail_count - 1];
    for (size_t i = r->tail_count - RISK_REPEATED; i < r->tail_count; i++)
        if (strcmp(r->tail[i], last) != 0)
            return NULL;
    return last;
}

static bool has_pnl(const struct risk_state *r)
{
    return r->has_pnl_today && decimal_is_valid(r->pnl_today_pct);
}

/* ---- the section ---- */

static void put_rejections(struct buf *out, const struct risk_state *r)
{
    if (r->rule_count == 0)
        return;
    const struct rule_count *rules = sorted_rules(out, r);
    buf_text(out, "- engine rejections (last 1h): ");
    for (size_t i = 0; i < r->rule_count && i < RISK_RULES_SHOWN; i++) {
        buf_text(out, i > 0 ? ", " : "");
        line_text(out, rules[i].rule, RULE_CHARS);
        buf_char(out, '=');
        buf_int(out, rules[i].count);
    }
    if (r->rule_count > RISK_RULES_SHOWN)
        buf_fmt(out, ", %zu more rules", r->rule_count - RISK_RULES_SHOWN);
    buf_char(out, '\n');
}

static void put_tail(struct buf *out, const struct risk_state *r)
{
    if (r->tail_count == 0)
        return;
    buf_text(out, "- recent rejection sequence: ");
    for (size_t i = tail_start(r); i < r->tail_count; i++) {
        buf_text(out, i > tail_start(r) ? " → " : "");
        line_text(out, r->tail[i], RULE_CHARS);
    }
    if (risk_state_repeated(r))
        buf_fmt(out, " ← same code in the last %d+ rejections; do not repeat the same proposal shape",
                RISK_REPEATED);
    buf_char(out, '\n');
}

static void put_pnl(struct buf *out, const struct risk_state *r)
{
    if (!has_pnl(r) || decimal_sign(decimal_round(r->pnl_today_pct, 2)) == 0)
        return;
    buf_text(out, "- realized PnL today (UTC, vs day-start equity): ");
    money_percent(out, r->pnl_today_pct, 2);
    buf_char(out, '\n');
}

static void put_losses(struct buf *out, const struct risk_state *r)
{
    if (r->losing_closes <= 0)
        return;
    buf_fmt(out, "- consecutive losing closes: %" PRId64, r->losing_closes);
    if (r->losing_closes >= RISK_REPEATED)
        buf_text(out, " (consider whether your read of the regime still holds)");
    buf_char(out, '\n');
}

void risk_state_text(struct buf *out, const struct risk_state *r)
{
    size_t start = out->len;
    buf_text(out, "## Recent activity (this session)\n");
    size_t heading = out->len;
    put_rejections(out, r);
    put_tail(out, r);
    if (r->executed_today > 0)
        buf_fmt(out, "- executed orders today (UTC): %" PRId64 "\n", r->executed_today);
    put_pnl(out, r);
    put_losses(out, r);
    if (out->len == heading)
        out->len = start;
}

/* ---- JSON ---- */

void risk_state_members(struct buf *out, const struct risk_state *r)
{
    const struct rule_count *rules = sorted_rules(out, r);
    buf_json_key(out, "rejections_last_hour");
    buf_char(out, '[');
    for (size_t i = 0; i < r->rule_count; i++) {
        buf_text(out, i > 0 ? ",{" : "{");
        json_put_text(out, "rule", rules[i].rule);
        json_put_int(out, "count", rules[i].count);
        buf_char(out, '}');
    }
    buf_text(out, "]");
    buf_json_key(out, "recent_rejections");
    buf_char(out, '[');
    for (size_t i = tail_start(r); i < r->tail_count; i++) {
        buf_text(out, i > tail_start(r) ? "," : "");
        buf_json_string(out, r->tail[i]);
    }
    buf_text(out, "]");
    json_put_text(out, "repeated_rejection", risk_state_repeated(r));
    json_put_int(out, "executed_orders_today", r->executed_today);
    buf_json_key(out, "realized_pnl_today_pct");
    char text[DECIMAL_TEXT_SIZE] = "null";
    if (has_pnl(r))
        decimal_text(decimal_round(r->pnl_today_pct, 4), text);
    buf_text(out, text);
    json_put_int(out, "consecutive_losing_closes", r->losing_closes);
}
