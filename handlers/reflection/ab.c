/* Reports whether the lessons of a skill help: compares its trades by the lessons text at entry. */
#include <math.h>
#include <string.h>

#include "core/ab/ab_report.h"
#include "core/base/time_text.h"
#include "handlers/kit/fields.h"
#include "handlers/kit/job.h"
#include "handlers/kit/pages.h"
#include "handlers/reflection/reflection.h"
#include "handlers/routes.h"
#include "server/config.h"
#include "server/dispatch/query.h"

enum {
    TEXTS_MAX = 2000,     /* newest notes whose text is tried with suppressed slots */
    TRADES_A_PAGE = 2000, /* takes one to two milliseconds of the loop */
    NOTES_A_PAGE = 2000,
    TEXTS_A_PAGE = 200,
};

struct ab_in {
    const char *skill_id, *version, *deployment_id, *mode, *symbol, *regime, *since, *until, *as_of;
    struct cursor_values cursor;
    struct texts hashes;
    int64_t limit, max_texts;
};

/* clang-format off */
#define A(from, kind, member, ...) FIELD(from, kind, struct ab_in, member, __VA_ARGS__)
#define SKILL_ID A(FROM_PATH, KIND_NAME, skill_id, .required = true)
#define AS_OF    FIELD_AS_OF(struct ab_in)
static const struct field ab_fields[] = {
    SKILL_ID,
    A(FROM_QUERY, KIND_NAME, version),
    A(FROM_QUERY, KIND_UUID, deployment_id),
    A(FROM_QUERY, KIND_CHOICE, mode, .choices = CHOICES("live", "paper", "sim")),
    A(FROM_QUERY, KIND_LINE, symbol, .min = 1, .max = 64),
    A(FROM_QUERY, KIND_LINE, regime, .min = 1, .max = 64),
    A(FROM_QUERY, KIND_TIME, since), A(FROM_QUERY, KIND_TIME, until),
    AS_OF,
    FIELD_PAGES(struct ab_in), A(COMPUTED, KIND_TEXTS, hashes), A(COMPUTED, KIND_INT, max_texts),
    END_FIELDS,
};
static const struct field version_fields[] = { SKILL_ID, AS_OF, END_FIELDS };
/* clang-format on */

COLUMNS(ver, version, _traded);
COLUMNS(trade, entry_lessons_hash, entry_regime_tag, symbol, net_usd, return_pct, realized_pnl_usd, entry_us);
COLUMNS(note, content_hash, id, suppressed);
COLUMNS(note_text, content_hash, id, suppressed, lessons_text);
QUERY(ab_versions, AB_VERSIONS, version_fields, READS(ver), .missing = "skill {skill_id}");
QUERY(ab_trades, AB_TRADES, ab_fields, READS(trade));
QUERY(ab_notes, AB_NOTES, ab_fields, READS(note));
QUERY(ab_texts, AB_TEXTS, ab_fields, READS(note_text));

/* A report under construction. The job is done in steps while rows are added to the report. */
struct ab_build {
    struct call *c;
    struct ab_in in; /* of the request, plus computed query parameters */
    struct job *job;
    struct ab_report *report;
};

static bool report_step(void *report)
{
    return ab_report_step(report);
}

static void report_release(void *report)
{
    ab_report_release(report);
}

static struct ab_build build_open(struct call *c, struct arena *arena)
{
    struct ab_build m = { .c = c, .in = *(const struct ab_in *)c->in };
    char as_of[TIME_TEXT_SIZE];
    int64_t us = 0;
    (void)time_text_parse(m.in.as_of, &us); /* checked by the field table */
    time_text_short(us, as_of);
    m.report = ab_report_open(m.in.skill_id, strcmp(m.in.as_of, LATEST) == 0 ? NULL : as_of);
    m.job = job_open(arena, report_step);
    m.job->work = m.report;
    arena_on_release(m.job->arena, report_release, m.report);
    return m;
}

/* ---- rows ---- */

static enum err check_count(struct ab_build *m)
{
    const int64_t most = m->c->loop->config->max_compared_trades;
    if ((int64_t)ab_report_trades(m->report) <= most)
        return OK;
    return problem_field(&m->c->problem, "since", FAULT_TOO_MANY,
                         "there are more than %lld trades: ask for a shorter period, one version or one "
                         "deployment",
                         (long long)most);
}

/* Adds the first `count` rows of a page to the report, which keeps only numbers, not the rows. */
typedef enum err take_fn(struct ab_build *m, const struct rows *r, int count);

struct read {
    struct ab_build *build;
    take_fn *take;
};

static enum err take_page(struct call *c, struct pages *p, const struct rows *r, int count,
                          struct arena *step)
{
    (void)c;
    (void)step;
    const struct read *read = p->arg;
    TRY(read->take(read->build, r, count));
    return check_count(read->build);
}

static enum err read_all(struct ab_build *m, const struct query *q, int64_t limit, take_fn *take)
{
    struct read read = { m, take };
    struct pages p = { PAGES_OF(q, &m->in), .take = take_page, .arg = &read };
    return pages_walk(m->c, &p, limit);
}

static enum err take_trades(struct ab_build *m, const struct rows *r, int count)
{
    for (int row = 0; row < count; row++) {
        const struct ab_trade t = {
            .lessons_hash = rows_text(r, row, &trade.entry_lessons_hash),
            .regime = rows_text(r, row, &trade.entry_regime_tag),
            .symbol = rows_text(r, row, &trade.symbol),
            .values = { row_double(r, row, &trade.net_usd, NAN), row_double(r, row, &trade.return_pct, NAN) },
            .realized_usd = row_double(r, row, &trade.realized_pnl_usd, NAN),
            .entry_us = row_int(r, row, &trade.entry_us, 0),
        };
        ab_report_trade(m->report, &t);
    }
    return OK;
}

static enum err take_notes(struct ab_build *m, const struct rows *r, int count)
{
    for (int row = 0; row < count; row++) {
        const struct ab_note n = { .hash = rows_text(r, row, &note.content_hash),
                                   .id = rows_text(r, row, &note.id),
                                   .suppressed = slot_set_listed(rows_text(r, row, &note.suppressed)) };
        ab_report_note(m->report, &n);
    }
    return OK;
}

static enum err take_texts(struct ab_build *m, const struct rows *r, int count)
{
    for (int row = 0; row < count; row++) {
        const struct ab_note n = { .hash = rows_text(r, row, &note_text.content_hash),
                                   .id = rows_text(r, row, &note_text.id),
                                   .suppressed = slot_set_listed(rows_text(r, row, &note_text.suppressed)),
                                   .text = rows_text(r, row, &note_text.lessons_text) };
        ab_report_text(m->report, &n);
    }
    return job_run(m->c, m->job);
}

/* The trades of all versions, or of the requested one. */
static enum err read_trades(struct ab_build *m)
{
    const char *only = m->in.version;
    struct rows *r;
    TRY(query_one(m->c, &ab_versions, &m->in, NULL, &r));
    for (int row = 0; row < rows_count(r); row++) {
        m->in.version = rows_text(r, row, &ver.version);
        if (row_bool(r, row, &ver._traded) && (!only || strcmp(only, m->in.version) == 0))
            TRY(read_all(m, &ab_trades, TRADES_A_PAGE, take_trades));
    }
    return job_run(m->c, m->job);
}

static enum err read_notes(struct ab_build *m)
{
    if (!ab_report_unexplained(m->report))
        return OK;
    m->in.hashes.items = arena_alloc(&m->c->arena, AB_REVISIONS_MAX * sizeof *m->in.hashes.items);
    m->in.hashes.count = ab_report_hashes(m->report, m->in.hashes.items);
    m->in.max_texts = TEXTS_MAX;
    TRY(read_all(m, &ab_notes, NOTES_A_PAGE, take_notes));
    if (!ab_report_unexplained(m->report))
        return OK;
    return read_all(m, &ab_texts, TEXTS_A_PAGE, take_texts);
}

static enum err compute_report(struct ab_build *m)
{
    ab_report_compute(m->report);
    TRY(job_run(m->c, m->job));
    const struct buf *json = ab_report_json(m->report);
    buf_add(call_reply_json(m->c, 200), json->data, json->len);
    return OK;
}

static enum err build_report(struct call *c)
{
    struct arena arena = { 0 };
    struct ab_build m = build_open(c, &arena);
    enum err err = read_trades(&m);
    if (err == OK)
        err = read_notes(&m);
    if (err == OK)
        err = compute_report(&m);
    arena_release(&arena);
    return err;
}

static enum err ab_get(struct call *c)
{
    return job_limited(c, build_report);
}

const struct route ab_routes[] = {
    { GET, "/v1/skills/{skill_id}/ab", ab_get, INPUT(ab_fields, struct ab_in), .role = ROLE_READER,
      .waits = true },
    END_ROUTES,
};
