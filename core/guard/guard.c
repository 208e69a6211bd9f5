/* The guard: recognizes text that would instruct its reader instead of informing it. */
#include "core/guard/guard.h"

#include <string.h>

#include "core/guard/decode.h"
#include "core/guard/guard_internal.h"

const char *const guard_verdict_names[GUARD_VERDICTS + 1] = { "clean", "refused", NULL };

/* One text that is looked at: the original, or what was encoded in the layer above. */
struct layer {
    const struct layer *above;     /* NULL: this is the original */
    const struct decoded *decoded; /* its text, by pieces of the layer above */
    struct folded folded;
    const char *text;
    size_t len;
};

struct checking {
    struct guard_report *report;
    const struct layer *layer;
    size_t quotes_left; /* quotations that are still examined */
};

/* ---- places ---- */

/* Turns bytes of a layer's text into those of the original. */
static void to_original(const struct layer *l, size_t *start, size_t *end)
{
    for (; l->above; l = l->above) {
        const struct decode_piece *first = decode_piece_of(l->decoded, *start);
        const struct decode_piece *last = decode_piece_of(l->decoded, *end > *start ? *end - 1 : *start);
        *start = first->start;
        *end = last->end;
    }
}

static void add_hit(struct guard_report *r, const struct guard_rule *rule, size_t start, size_t end)
{
    size_t at = 0;
    for (; at < r->hit_count; at++) {
        const struct guard_hit *h = &r->hits[at];
        if (h->rule == rule && h->start < end && start < h->start + h->len) /* the same place again */
            return;
    }
    while (at > 0 && r->hits[at - 1].start > start) {
        r->hits[at] = r->hits[at - 1];
        at--;
    }
    r->hits[at] = (struct guard_hit){ rule, start, end - start };
    r->hit_count++;
}

/* ---- quotations ---- */

/* Words of a report about an instruction, and words that make the report an instruction itself. */
static const char *const reporting[] = { "flagged",    "blocked",   "refused",  "rejected", "quarantin",
                                         "detected",   "injection", "phishing", "spam",     "scam",
                                         "suspicious", "attempt",   "reported", NULL };
static const char *const commanding[] = { "follow",  "obey",  "comply",  "must",   "should",
                                          "execute", "do as", "do what", "please", NULL };

static bool has_any(const char *text, size_t len, const char *const *words)
{
    for (; *words; words++)
        if (memmem(text, len, *words, strlen(*words)))
            return true;
    return false;
}

/* Whether the place is in quotation marks, and what surrounds them only reports it. */
static bool is_mention(const struct folded *f, size_t start, size_t end)
{
    enum { QUOTE_MAX = 160, AROUND_MAX = 120 };
    size_t open = start, close = end;
    while (open > 0 && start - open < QUOTE_MAX && f->text[open - 1] != '"' && f->text[open - 1] != '\n')
        open--;
    while (close < f->len && close - end < QUOTE_MAX && f->text[close] != '"' && f->text[close] != '\n')
        close++;
    if (open == 0 || f->text[open - 1] != '"' || close == f->len || f->text[close] != '"')
        return false;
    const size_t before = open > AROUND_MAX ? open - AROUND_MAX : 0;
    const size_t after = f->len - close > AROUND_MAX ? close + AROUND_MAX : f->len;
    return (has_any(f->text + before, open - before, reporting) ||
            has_any(f->text + close, after - close, reporting)) &&
           !has_any(f->text + before, open - before, commanding) &&
           !has_any(f->text + close, after - close, commanding);
}

/* ---- layers ---- */

/* Adds a hit at bytes of the layer's text. False: the report is full. */
static bool report_at(struct checking *c, const struct guard_rule *rule, size_t start, size_t end)
{
    to_original(c->layer, &start, &end);
    if (end > start) {
        c->report->verdict = GUARD_REFUSED;
        add_hit(c->report, rule, start, end);
    }
    c->report->more = c->report->hit_count == GUARD_HITS_MAX;
    return !c->report->more;
}

static bool found(void *context, const struct guard_rule *rule, size_t start, size_t end)
{
    struct checking *c = context;
    const struct folded *f = &c->layer->folded;
    if (!c->layer->above && c->quotes_left && rule->grade == GUARD_REFUSE) {
        c->quotes_left--;
        if (is_mention(f, start, end))
            return true;
    }
    return report_at(c, rule, fold_origin(f, start), fold_origin(f, end));
}

static void check_words(struct arena *arena, struct checking *c, const struct layer *l)
{
    struct guard_match *m = guard_match_begin(arena, found, c);
    c->report->disguises |= l->folded.disguises | guard_words_read(m, l->folded.text, l->folded.len);
    const int points = guard_match_points(m);
    c->report->points = points > c->report->points ? points : c->report->points;
}

static void check_layer(struct arena *arena, struct checking *c, struct layer *l, int depth)
{
    c->layer = l;
    fold_text(arena, l->text, l->len, &l->folded);
    if (l->folded.hidden)
        report_at(c, guard_match_rule(DIRECT_HIDDEN_TEXT), l->folded.hidden_start, l->folded.hidden_end);
    if (!c->report->more)
        check_words(arena, c, l);
    if (depth == GUARD_DEPTH)
        return;
    struct decoded decoded;
    decode_runs(arena, l->text, l->len, &decoded);
    if (!decoded.count || c->report->more)
        return;
    c->report->disguises |= FOLD_ENCODED;
    if (decoded.prose &&
        !report_at(c, guard_match_rule(DIRECT_ENCODED_TEXT), decoded.prose->start, decoded.prose->end))
        return;
    struct layer below = { .above = l, .decoded = &decoded, .text = decoded.text, .len = decoded.len };
    check_layer(arena, c, &below, depth + 1);
}

void guard_check(struct arena *arena, const char *text, size_t len, struct guard_report *report)
{
    enum { QUOTES_MAX = 16 };
    struct checking c = { .report = report, .quotes_left = QUOTES_MAX };
    struct layer original = { .text = text, .len = len };
    memset(report, 0, sizeof *report);
    check_layer(arena, &c, &original, 0);
}
