/* POST /v1/facts/decay: lowers the confidence of inferred facts that nobody confirmed (core/facts/fact.h). */
#include <inttypes.h>
#include <string.h>

#include "core/base/json_put.h"
#include "core/base/time_text.h"
#include "handlers/facts/facts.h"
#include "handlers/kit/instant.h"
#include "handlers/kit/pages.h"
#include "handlers/routes.h"

enum { PAGE_FACTS = 500, HOURS_MAX = 87600, SAMPLES_MAX = 100 };
static const int64_t hour_us = INT64_C(3600000000);

struct decay_in {
    const char *rate, *floor, *scope, *prefix, *dry_run, *at;
    int64_t period_hours, samples;
    const char *changes; /* computed */
    int64_t limit;
    struct cursor_values cursor;
};

/* clang-format off */
#define D(from, kind, member, ...) FIELD(from, kind, struct decay_in, member, __VA_ARGS__)
static const struct field decay_fields[] = {
    D(FROM_BODY, KIND_NUMBER, rate, .above_zero = true, .max = 1, .fallback = "0.05"),
    D(FROM_BODY, KIND_NUMBER, floor, .min = 0, .max = 1, .fallback = "0.3"),
    D(FROM_BODY, KIND_INT, period_hours, .min = 1, .max = HOURS_MAX, .fallback = "24"),
    D(FROM_BODY, KIND_KEY, scope, .min = 1, .max = FACT_SCOPE_MAX),
    D(FROM_BODY, KIND_KEY, prefix, .min = 1, .max = FACT_KEY_MAX),
    D(FROM_BODY, KIND_BOOL, dry_run, .fallback = "true"),
    D(FROM_BODY, KIND_INT, samples, .min = 0, .max = SAMPLES_MAX, .fallback = "10"),
    FIELD_AT(struct decay_in),
    D(COMPUTED, KIND_TEXT, changes),
    FIELD_PAGES(struct decay_in),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(decaying, scope, key, version, confidence, decayed_at);
COLUMNS(decayed, decayed, archived);
QUERY(facts_decaying, FACTS_DECAYING, decay_fields, READS(decaying));
QUERY(facts_decay, FACTS_DECAY, decay_fields, READS(decayed));

struct run {
    struct decay_in *in;
    struct fact_decay rule;
    int64_t at_us;
    int64_t matched, decayed, archived, shown;
    struct buf samples; /* in the arena of the call */
};

struct change {
    const char *scope, *key, *before;
    int64_t version, periods;
    struct fact_trust trust;
    bool archived;
};

static void put_change(struct buf *out, const struct change *x)
{
    buf_text(out, out->len > 1 ? ",{" : "{");
    json_put_text(out, "scope", x->scope);
    json_put_text(out, "key", x->key);
    json_put_int(out, "version", x->version);
    json_put_decimal(out, "confidence", x->trust.confidence);
    json_put_time(out, "decayed_at", x->trust.decayed_us);
    json_put_bool(out, "archived", x->archived);
    buf_char(out, '}');
}

static void put_sample(struct buf *out, const struct change *x)
{
    buf_text(out, out->len ? ",{" : "{");
    json_put_text(out, "scope", x->scope);
    json_put_text(out, "key", x->key);
    json_put_int(out, "periods", x->periods);
    json_put_raw(out, "confidence_before", x->before);
    json_put_decimal(out, "confidence", x->trust.confidence);
    json_put_bool(out, "archived", x->archived);
    buf_char(out, '}');
}

static bool read_change(const struct run *run, const struct rows *r, int row, struct change *x)
{
    *x = (struct change){
        .scope = rows_text(r, row, &decaying.scope),
        .key = rows_text(r, row, &decaying.key),
        .before = rows_text(r, row, &decaying.confidence),
        .version = row_int(r, row, &decaying.version, 0),
        .trust = { row_decimal(r, row, &decaying.confidence), row_time_us(r, row, &decaying.decayed_at, 0) },
    };
    x->periods = fact_decay(&x->trust, &run->rule, run->at_us);
    x->archived = x->periods && fact_is_below(&x->trust, &run->rule);
    return x->periods > 0;
}

static void count_change(struct run *run, const struct change *x)
{
    *(x->archived ? &run->archived : &run->decayed) += 1;
    if (run->shown < run->in->samples) {
        put_sample(&run->samples, x);
        run->shown++;
    }
}

static enum err take_page(struct call *c, struct pages *p, const struct rows *r, int count,
                          struct arena *step)
{
    struct run *run = p->arg;
    struct buf changes = { .arena = step };
    buf_char(&changes, '[');
    for (int row = 0; row < count; row++) {
        struct change x;
        run->matched++;
        if (read_change(run, r, row, &x)) {
            put_change(&changes, &x);
            count_change(run, &x);
        }
    }
    buf_char(&changes, ']');
    if (changes.len == 2 || field_is_true(run->in->dry_run))
        return OK;
    run->in->changes = buf_string(&changes);
    struct rows *stored;
    const enum err err = query_one(c, &facts_decay, run->in, step, &stored);
    run->in->changes = NULL;
    return err;
}

static enum err decay_tx(struct call *c, void *arg)
{
    struct run run = *(const struct run *)arg;
    run.samples.arena = &c->arena;
    run.in->cursor.count = 0; /* the transaction may be a retry */
    struct pages pages = { PAGES_OF(&facts_decaying, run.in), .take = take_page, .arg = &run };
    TRY(pages_walk(c, &pages, PAGE_FACTS));
    if (!run.decayed && !run.archived)
        TRY(query_durable(c)); /* an earlier request may have done it */
    struct buf *out = call_reply_json(c, 200);
    buf_fmt(out, "{\"dry_run\":%s", run.in->dry_run);
    json_put_time(out, "at", run.at_us);
    json_put_int(out, "matched", run.matched);
    json_put_int(out, "decayed", run.decayed);
    json_put_int(out, "archived", run.archived);
    json_put_int(out, "unchanged", run.matched - run.decayed - run.archived);
    buf_json_key(out, "samples");
    buf_char(out, '[');
    buf_add(out, run.samples.data, run.samples.len);
    buf_text(out, "]}");
    return OK;
}

static enum err decay(struct call *c)
{
    struct decay_in *in = c->in;
    struct run run = { .in = in, .rule.period_us = in->period_hours * hour_us };
    TRY(instant_check(c, "at", in->at));
    if (decimal_parse(in->rate, &run.rule.rate) > DECIMAL_ROUNDED ||
        decimal_parse(in->floor, &run.rule.floor) > DECIMAL_ROUNDED || !time_text_parse(in->at, &run.at_us))
        return ERR_INTERNAL;
    return query_tx(c, decay_tx, &run);
}

const struct route fact_decay_routes[] = {
    { POST, "/v1/facts/decay", decay, INPUT(decay_fields, struct decay_in), .role = ROLE_AGENT,
      .waits = true },
    END_ROUTES,
};
