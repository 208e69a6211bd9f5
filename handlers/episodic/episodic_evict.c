/* Eviction: which entries have had their time, into the archive and back. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "handlers/episodic/episodic.h"
#include "handlers/routes.h"

struct evict_in {
    const char *ticker, *task_type, *dry_run, *at, *eviction_id;
    struct texts policies, ids;
    int64_t max_age_days, keep_per_pair, unread_days, limit, samples;
};

enum { POLICIES = 3, DAYS_MOST = 36500 };
static const char *const policy_names[POLICIES] = { "time", "size", "relevance" };

/* clang-format off */
#define V(kind, member, ...) FIELD(FROM_BODY, kind, struct evict_in, member, __VA_ARGS__)
static const struct field evict_fields[] = {
    V(KIND_TAGS, policies, .min = 1, .max = POLICIES, .item_max = 16, .fallback = "time,size,relevance"),
    V(KIND_INT, max_age_days, .min = 1, .max = DAYS_MOST, .fallback = "180"),
    V(KIND_INT, keep_per_pair, .min = 1, .max = 1000000, .fallback = "20"),
    V(KIND_INT, unread_days, .min = 1, .max = DAYS_MOST, .fallback = "30"),
    V(KIND_LINE, ticker, .min = 1, .max = 64),
    V(KIND_LINE, task_type, .min = 1, .max = 64),
    V(KIND_BOOL, dry_run, .fallback = "true"),
    V(KIND_TIME, at, .fallback = "now"),
    V(KIND_INT, limit, .min = 1, .max = 100000, .fallback = "10000"),
    V(KIND_INT, samples, .min = 0, .max = 100, .fallback = "10"),
    END_FIELDS,
};
static const struct field restore_fields[] = {
    V(KIND_UUIDS, ids, .min = 1, .max = 1000),
    V(KIND_UUID, eviction_id),
    V(KIND_TIME, at, .fallback = "now"),
    V(KIND_INT, limit, .min = 1, .max = 100000, .fallback = "10000"),
    END_FIELDS,
};
/* clang-format on */

static int64_t int_column(const struct rows *r, const char *name)
{
    return strtoll(rows_text(r, 0, name), NULL, 10);
}

/* ---- into the archive ---- */

static enum err check_policies(struct call *c, const struct texts *policies)
{
    enum err err = OK;
    for (size_t i = 0; i < policies->count; i++) {
        size_t p = 0;
        while (p < POLICIES && strcmp(policy_names[p], policies->items[i]) != 0)
            p++;
        if (p == POLICIES)
            err = problem_field(&c->problem, arena_fmt(&c->arena, "policies[%zu]", i), FAULT_NOT_A_CHOICE,
                                "must be one of time, size, relevance");
    }
    return err;
}

static void put_eviction(struct call *c, const struct rows *r)
{
    const struct evict_in *in = c->in;
    const char *id = rows_text(r, 0, "_eviction_id");
    struct buf *out = reply_json(c, 200);
    const int64_t matched = int_column(r, "_matched");
    const int64_t evicted = int_column(r, "_evicted");
    buf_fmt(out, "{\"dry_run\":%s,\"at\":\"%s\",\"matched\":%" PRId64, in->dry_run,
            rows_time(&c->arena, r, 0, "_at"), matched);
    buf_fmt(out, ",\"evicted\":%" PRId64 ",\"remaining\":%" PRId64, evicted, matched - evicted);
    buf_fmt(out, ",\"by_policy\":{\"time\":%s,\"size\":%s,\"relevance\":%s},\"samples\":[",
            rows_text(r, 0, "_time"), rows_text(r, 0, "_size"), rows_text(r, 0, "_relevance"));
    for (int row = 0; row < rows_count(r) && rows_text(r, row, "id"); row++) {
        if (row)
            buf_char(out, ',');
        rows_json(out, r, row);
    }
    buf_text(out, "],\"eviction_id\":");
    buf_json_string(out, id);
    buf_char(out, '}');
}

static enum err evict_tx(struct call *c, void *arg)
{
    (void)arg;
    struct rows *r;
    TRY(db_one(c, &EPISODE_EVICT, &r));
    put_eviction(c, r);
    return OK;
}

static enum err episode_evict(struct call *c)
{
    const struct evict_in *in = c->in;
    TRY(check_policies(c, &in->policies));
    return db_tx(c, evict_tx, NULL);
}

/* ---- and back ---- */

static enum err restore_tx(struct call *c, void *arg)
{
    (void)arg;
    const struct evict_in *in = c->in;
    struct rows *r;
    TRY(db_one(c, &EPISODE_RESTORE, &r));
    if (!rows_text(r, 0, "asked"))
        return problem_set(&c->problem, ERR_NOT_FOUND, "there was no eviction %s", in->eviction_id);
    const int64_t restored = int_column(r, "restored"), found = int_column(r, "found");
    buf_fmt(reply_json(c, 200),
            "{\"restored\":%" PRId64 ",\"skipped\":%" PRId64 ",\"remaining\":%" PRId64 "}", restored,
            int_column(r, "asked") - found, found - restored);
    return OK;
}

static enum err episode_restore(struct call *c)
{
    const struct evict_in *in = c->in;
    if (!in->ids.count == !in->eviction_id)
        return problem_field(&c->problem, in->eviction_id ? "eviction_id" : "ids",
                             in->eviction_id ? FAULT_NOT_TOGETHER : FAULT_REQUIRED,
                             "either ids or an eviction_id says what comes back");
    return db_tx(c, restore_tx, NULL);
}

#define IN(table) .fields = table, .in_size = sizeof(struct evict_in), .role = ROLE_AGENT, .waits = true

const struct route evict_routes[] = {
    { POST, "/v1/episodic/evict", episode_evict, IN(evict_fields) },
    { POST, "/v1/episodic/restore", episode_restore, IN(restore_fields) },
    END_ROUTES,
};
