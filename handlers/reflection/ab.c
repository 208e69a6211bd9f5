/* Whether the lessons of a skill help: its trades by the text of lessons that they were made under. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ab/ab_report.h"
#include "core/base/time_text.h"
#include "db/db.h"
#include "handlers/kit/fields.h"
#include "handlers/reflection/reflection.h"
#include "handlers/routes.h"
#include "server/config.h"
#include "server/worker.h"

enum {
    TEXTS_MOST = 2000,    /* notes, the newest, of which it is tried what slots were left out */
    TRADES_A_PAGE = 2000, /* a millisecond or two of the loop */
    NOTES_A_PAGE = 2000,
    TEXTS_A_PAGE = 200,
    TURN_US = 1000,
};

struct ab_in {
    const char *skill_id, *version, *deployment_id, *mode, *symbol, *regime, *since, *until, *as_of;
    struct cursor_values cursor;
    struct texts hashes;
    int64_t limit, texts_most;
};

/* clang-format off */
#define A(from, kind, member, ...) FIELD(from, kind, struct ab_in, member, __VA_ARGS__)
static const struct field ab_fields[] = {
    A(FROM_PATH, KIND_NAME, skill_id, .required = true),
    A(FROM_QUERY, KIND_NAME, version),
    A(FROM_QUERY, KIND_UUID, deployment_id),
    A(FROM_QUERY, KIND_CHOICE, mode, .choices = (const char *const[]){ "live", "paper", "sim", NULL }),
    A(FROM_QUERY, KIND_LINE, symbol, .min = 1, .max = 64),
    A(FROM_QUERY, KIND_LINE, regime, .min = 1, .max = 64),
    A(FROM_QUERY, KIND_TIME, since), A(FROM_QUERY, KIND_TIME, until),
    A(FROM_QUERY, KIND_TIME, as_of, .fallback = LATEST),
    A(COMPUTED, KIND_INT, limit), A(COMPUTED, KIND_CURSOR, cursor), A(COMPUTED, KIND_TEXTS, hashes), A(COMPUTED, KIND_INT, texts_most),
    END_FIELDS,
};
/* clang-format on */

/* ---- the worker's part ---- */

struct ab_job {
    struct worker_job job;
    struct ab_report *report;
};

static bool job_step(struct worker_job *job)
{
    return ab_report_step(((struct ab_job *)job)->report);
}

static void job_release(struct worker_job *job)
{
    ab_report_release(((struct ab_job *)job)->report);
    free(job);
}

static struct ab_job *job_new(const struct ab_in *in)
{
    struct ab_job *job = calloc(1, sizeof *job);
    if (!job)
        abort();
    job->job = (struct worker_job){ .step = job_step, .release = job_release, .turn_us = TURN_US };
    char as_of[TIME_TEXT_SIZE];
    int64_t us = 0;
    (void)time_text_parse(in->as_of, &us); /* as the field has it, it can be read */
    time_text_short(us, as_of);
    job->report = ab_report_open(in->skill_id, strcmp(in->as_of, LATEST) == 0 ? NULL : as_of);
    return job;
}

/* What there is to do is done beside the loop. *job is NULL when the call may not wait for it. */
static enum err work(struct call *c, struct ab_job **job)
{
    struct ab_job *at_work = *job;
    *job = NULL;
    TRY(worker_run(c, &at_work->job));
    *job = at_work;
    return OK;
}

/* ---- rows ---- */

static enum err check_count(struct call *c, const struct ab_job *job)
{
    const int64_t most = c->loop->config->max_compared_trades;
    if ((int64_t)ab_report_trades(job->report) <= most)
        return OK;
    return problem_field(&c->problem, "since", FAULT_TOO_MANY,
                         "there are more than %lld trades: ask for a shorter time, one version or one "
                         "deployment",
                         (long long)most);
}

typedef enum err taker(struct call *c, struct ab_job **job, const struct rows *r, int count);

/* Page by page: only numbers are kept of them. */
static enum err walk(struct call *c, struct ab_job **job, const struct statement *st, int64_t limit,
                     taker *take)
{
    struct ab_in *in = c->in;
    char at[64], id[64];
    bool more = true;
    enum err err = OK;
    in->limit = limit;
    in->cursor = (struct cursor_values){ 0 };
    while (err == OK && more) {
        struct db_step step;
        struct rows *r;
        call_breathe(c);
        db_step_begin(c, &step);
        err = db_rows(c, st, &r);
        if (err == OK) {
            const int count = rows_count(r) > limit ? (int)limit : rows_count(r);
            more = rows_count(r) > count;
            if (more) {
                snprintf(at, sizeof at, "%s", rows_text(r, count - 1, "_cursor_1"));
                snprintf(id, sizeof id, "%s", rows_text(r, count - 1, "_cursor_2"));
                in->cursor = (struct cursor_values){ 2, { at, id } };
            }
            err = take(c, job, r, count);
        }
        db_step_end(c, &step);
        if (err == OK) /* not before: what a problem says must outlive the step */
            err = check_count(c, *job);
    }
    return err;
}

static double number(const struct rows *r, int row, const char *column)
{
    const char *text = rows_text(r, row, column);
    return text ? strtod(text, NULL) : NAN;
}

static enum err take_trades(struct call *c, struct ab_job **job, const struct rows *r, int count)
{
    (void)c;
    struct ab_report *report = (*job)->report;
    for (int row = 0; row < count; row++) {
        const struct ab_trade t = {
            .lessons_hash = rows_text(r, row, "entry_lessons_hash"),
            .regime = rows_text(r, row, "entry_regime_tag"),
            .symbol = rows_text(r, row, "symbol"),
            .values = { number(r, row, "net_usd"), number(r, row, "return_pct") },
            .realized_usd = number(r, row, "realized_pnl_usd"),
            .entry_us = strtoll(rows_text(r, row, "entry_us"), NULL, 10),
        };
        ab_report_trade(report, &t);
    }
    return OK;
}

static struct ab_note note_at(const struct rows *r, int row)
{
    return (struct ab_note){ .hash = rows_text(r, row, "content_hash"),
                             .id = rows_text(r, row, "id"),
                             .suppressed = slot_set_listed(rows_text(r, row, "suppressed")) };
}

static enum err take_notes(struct call *c, struct ab_job **job, const struct rows *r, int count)
{
    (void)c;
    for (int row = 0; row < count; row++) {
        const struct ab_note n = note_at(r, row);
        ab_report_note((*job)->report, &n);
    }
    return OK;
}

static enum err take_texts(struct call *c, struct ab_job **job, const struct rows *r, int count)
{
    for (int row = 0; row < count; row++) {
        struct ab_note n = note_at(r, row);
        n.text = rows_text(r, row, "lessons_text");
        ab_report_text((*job)->report, &n);
    }
    return work(c, job);
}

/* The trades of all versions, or of the one that was asked for. */
static enum err read_trades(struct call *c, struct ab_job **job)
{
    struct ab_in *in = c->in;
    const char *only = in->version;
    struct rows *versions;
    TRY(db_rows(c, &AB_VERSIONS, &versions));
    if (!rows_count(versions))
        return ERR_NOT_FOUND;
    for (int row = 0; row < rows_count(versions); row++) {
        in->version = rows_text(versions, row, "version");
        if (rows_text(versions, row, "_traded")[0] == 't' && (!only || strcmp(only, in->version) == 0))
            TRY(walk(c, job, &AB_TRADES, TRADES_A_PAGE, take_trades));
    }
    return work(c, job);
}

static enum err read_notes(struct call *c, struct ab_job **job)
{
    struct ab_in *in = c->in;
    if (!ab_report_unexplained((*job)->report))
        return OK;
    in->hashes.items = arena_alloc(&c->arena, AB_REVISIONS_MAX * sizeof *in->hashes.items);
    in->hashes.count = ab_report_hashes((*job)->report, in->hashes.items);
    in->texts_most = TEXTS_MOST;
    TRY(walk(c, job, &AB_NOTES, NOTES_A_PAGE, take_notes));
    if (!ab_report_unexplained((*job)->report))
        return OK;
    return walk(c, job, &AB_TEXTS, TEXTS_A_PAGE, take_texts);
}

static enum err compute(struct call *c, struct ab_job **job)
{
    ab_report_compute((*job)->report);
    TRY(work(c, job));
    const struct buf *json = ab_report_json((*job)->report);
    buf_add(reply_json(c, 200), json->data, json->len);
    return OK;
}

static enum err report(struct call *c)
{
    struct ab_job *job = job_new(c->in);
    enum err err = read_trades(c, &job);
    if (err == OK)
        err = read_notes(c, &job);
    if (err == OK)
        err = compute(c, &job);
    if (job)
        job_release(&job->job);
    return err;
}

/* A report takes tens of megabytes: however many ask, only a few have one at a time. */
static enum err ab(struct call *c)
{
    TRY(worker_enter(c));
    enum err err = report(c);
    worker_leave(c->loop);
    return err;
}

const struct route ab_routes[] = {
    { GET, "/v1/skills/{skill_id}/ab", ab, .fields = ab_fields, .in_size = sizeof(struct ab_in),
      .role = ROLE_READER, .waits = true },
    END_ROUTES,
};
