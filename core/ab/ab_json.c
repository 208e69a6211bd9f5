/* Writes a report as JSON. */
#include <math.h>

#include "core/ab/ab_internal.h"
#include "core/base/json_put.h"

/* Significant digits: enough for any sum of money, and for a probability. */
enum { DIGITS = 10, DIGITS_OF_P = 6 };

static void put_number(struct buf *out, const char *key, double value, int digits)
{
    buf_json_key(out, key);
    if (isfinite(value))
        buf_fmt(out, "%.*g", digits, value + 0.0); /* no "-0" */
    else
        buf_text(out, "null");
}

static void put_count(struct buf *out, const char *key, size_t value)
{
    buf_json_key(out, key);
    buf_fmt(out, "%zu", value);
}

static const char *const metric_names[] = { "net_usd", "return_pct" };

static void put_measure(struct buf *out, const struct ab_group *g, int metric)
{
    const struct ab_summary *s = &g->of[metric].summary;
    buf_json_key(out, metric_names[metric]);
    if (!ab_enough(g) || g->of[metric].count < AB_TRADES_MIN) {
        buf_text(out, "null");
        return;
    }
    buf_char(out, '{');
    put_count(out, "count", s->count);
    put_number(out, "mean", s->mean, DIGITS);
    put_number(out, "median", s->median, DIGITS);
    put_number(out, "win_rate", s->win_rate, DIGITS);
    put_number(out, "profit_factor", s->profit_factor, DIGITS);
    put_number(out, "ci_low", s->low, DIGITS);
    put_number(out, "ci_high", s->high, DIGITS);
    buf_char(out, '}');
}

static void put_versus(struct buf *out, const struct ab_report *r, const struct ab_groups *groups,
                       const struct ab_group *g)
{
    static const struct {
        const char *difference, *p, *corrected;
    } keys[] = {
        { "difference_net_usd", "p_net_usd", "p_net_usd_corrected" },
        { "difference_return_pct", "p_return_pct", "p_return_pct_corrected" },
    };
    buf_json_key(out, "versus_previous");
    if (g->before == AB_NOTHING) {
        buf_text(out, "null");
        return;
    }
    buf_char(out, '{');
    json_put_text(out, "lessons_hash", r->revisions[groups->items[g->before].rank].hash);
    for (int m = 0; m < AB_METRICS; m++) {
        put_number(out, keys[m].difference, g->of[m].difference, DIGITS);
        put_number(out, keys[m].p, g->of[m].p, DIGITS_OF_P);
        put_number(out, keys[m].corrected, g->of[m].corrected, DIGITS_OF_P);
    }
    buf_char(out, '}');
}

static void put_group(struct buf *out, const struct ab_report *r, const struct ab_groups *groups,
                      const struct ab_group *g)
{
    put_count(out, "trades", g->trades);
    for (int m = 0; m < AB_METRICS; m++)
        put_measure(out, g, m);
    buf_json_key(out, "not_enough_trades");
    buf_json_bool(out, !ab_enough(g));
    put_versus(out, r, groups, g);
}

static void put_groups(struct buf *out, const struct ab_report *r, const struct ab_revision *v,
                       enum ab_dimension d, const char *list, const char *key)
{
    const struct ab_groups *groups = &r->groups[d];
    buf_json_key(out, list);
    buf_char(out, '[');
    for (size_t i = 0; i < v->groups[d]; i++) {
        const struct ab_group *g = &groups->items[v->group[d] + i];
        buf_text(out, i ? ",{" : "{");
        json_put_text(out, key, ab_named(&r->keys[d], g->key)->text);
        put_group(out, r, groups, g);
        buf_char(out, '}');
    }
    buf_char(out, ']');
}

static void put_notes(struct buf *out, const struct ab_revision *v)
{
    const size_t ids = v->notes < AB_NOTE_IDS_MAX ? v->notes : AB_NOTE_IDS_MAX;
    buf_json_key(out, "note_ids");
    buf_char(out, '[');
    for (size_t i = 0; i < ids; i++)
        buf_fmt(out, "%s\"%s\"", i ? "," : "", v->note_ids[i]);
    buf_char(out, ']');
    put_count(out, "note_ids_omitted", v->notes - ids);
    buf_json_key(out, "suppressed");
    buf_char(out, '[');
    const char *comma = "";
    for (int slot = 0; slot < REFLECT_SLOTS; slot++)
        if (v->suppressed & 1u << slot) {
            buf_fmt(out, "%s\"%s\"", comma, reflect_slot_names[slot]);
            comma = ",";
        }
    buf_char(out, ']');
}

void ab_json_revision(struct ab_report *r, size_t rank)
{
    const struct ab_revision *v = &r->revisions[rank];
    struct buf *out = &r->json;
    buf_text(out, rank ? ",{" : "{");
    json_put_text(out, "lessons_hash", v->hash);
    put_notes(out, v);
    json_put_time(out, "first_entry_at", v->first_us);
    json_put_time(out, "last_entry_at", v->last_us);
    const struct ab_group *all = &r->groups[AB_ALL].items[v->group[AB_ALL]];
    put_number(out, "mean_realized_pnl_usd", ab_enough(all) ? v->realized_usd / (double)v->trades : NAN,
               DIGITS);
    put_group(out, r, &r->groups[AB_ALL], all);
    put_groups(out, r, v, AB_BY_REGIME, "by_regime", "regime");
    put_groups(out, r, v, AB_BY_SYMBOL, "by_symbol", "symbol");
    put_count(out, "symbols_omitted", v->omitted[AB_BY_SYMBOL]);
    buf_char(out, '}');
}

void ab_json_head(struct ab_report *r)
{
    struct buf *out = &r->json;
    buf_char(out, '{');
    json_put_text(out, "skill_id", r->skill_id);
    json_put_text(out, "as_of", r->as_of);
    put_count(out, "min_trades", AB_TRADES_MIN);
    put_count(out, "trades", r->trades);
    put_count(out, "comparisons", r->comparisons);
    put_count(out, "revisions_omitted", r->omitted);
    buf_json_key(out, "revisions");
    buf_char(out, '[');
}

void ab_json_tail(struct ab_report *r)
{
    buf_text(&r->json, "]}");
}
