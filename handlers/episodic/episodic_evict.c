/* Eviction: moves old entries to the archive, and restores them. */
#include <inttypes.h>
#include <string.h>

#include "core/base/json_put.h"
#include "handlers/kit/fields.h"
#include "handlers/routes.h"
#include "server/dispatch/query.h"

struct evict_in {
    const char *ticker, *task_type, *dry_run, *at, *eviction_id;
    struct texts policies, ids;
    int64_t max_age_days, keep_per_pair, unread_days, limit, samples;
};

enum { POLICIES = 3, DAYS_MAX = 36500 };
static const char *const policy_names[POLICIES] = { "time", "size", "relevance" };

/* clang-format off */
#define V(kind, member, ...) FIELD(FROM_BODY, kind, struct evict_in, member, __VA_ARGS__)
static const struct field evict_fields[] = {
    V(KIND_TAGS, policies, .min = 1, .max = POLICIES, .item_max = 16, .fallback = "time,size,relevance"),
    V(KIND_INT, max_age_days, .min = 1, .max = DAYS_MAX, .fallback = "180"),
    V(KIND_INT, keep_per_pair, .min = 1, .max = 1000000, .fallback = "20"),
    V(KIND_INT, unread_days, .min = 1, .max = DAYS_MAX, .fallback = "30"),
    V(KIND_LINE, ticker, .min = 1, .max = 64),
    V(KIND_LINE, task_type, .min = 1, .max = 64),
    V(KIND_BOOL, dry_run, .fallback = "true"),
    FIELD_AT(struct evict_in),
    V(KIND_INT, limit, .min = 1, .max = 100000, .fallback = "10000"),
    V(KIND_INT, samples, .min = 0, .max = 100, .fallback = "10"),
    END_FIELDS,
};
static const struct field restore_fields[] = {
    V(KIND_UUIDS, ids, .min = 1, .max = 1000),
    V(KIND_UUID, eviction_id),
    FIELD_AT(struct evict_in),
    V(KIND_INT, limit, .min = 1, .max = 100000, .fallback = "10000"),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(evicted_row, id, _eviction_id, _at, _matched, _evicted, _time, _size, _relevance);
COLUMNS(restored_row, asked, found, restored);
QUERY(episode_evict, EPISODE_EVICT, evict_fields, READS(evicted_row));
QUERY(episode_restore, EPISODE_RESTORE, restore_fields, READS(restored_row));

/* ---- evict ---- */

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

static void put_eviction(struct call *c, const struct evict_in *in, const struct rows *r)
{
    const char *id = rows_text(r, 0, &evicted_row._eviction_id);
    struct buf *out = call_reply_json(c, 200);
    const int64_t matched = row_int(r, 0, &evicted_row._matched, 0);
    const int64_t evicted = row_int(r, 0, &evicted_row._evicted, 0);
    buf_fmt(out, "{\"dry_run\":%s,\"at\":\"%s\",\"matched\":%" PRId64, in->dry_run,
            rows_time(r, 0, &evicted_row._at, &c->arena), matched);
    buf_fmt(out, ",\"evicted\":%" PRId64 ",\"remaining\":%" PRId64, evicted, matched - evicted);
    buf_fmt(out, ",\"by_policy\":{\"time\":%s,\"size\":%s,\"relevance\":%s},\"samples\":[",
            rows_text(r, 0, &evicted_row._time), rows_text(r, 0, &evicted_row._size),
            rows_text(r, 0, &evicted_row._relevance));
    for (int row = 0; row < rows_count(r) && rows_text(r, row, &evicted_row.id); row++) {
        if (row)
            buf_char(out, ',');
        rows_json(out, r, row);
    }
    buf_char(out, ']');
    json_put_text(out, "eviction_id", id);
    buf_char(out, '}');
}

static enum err evict_tx(struct call *c, void *arg)
{
    struct rows *r;
    TRY(query_one(c, &episode_evict, arg, NULL, &r));
    put_eviction(c, arg, r);
    return OK;
}

static enum err evict(struct call *c)
{
    const struct evict_in *in = c->in;
    TRY(check_policies(c, &in->policies));
    return query_tx(c, evict_tx, c->in);
}

/* ---- restore ---- */

static enum err restore_tx(struct call *c, void *arg)
{
    const struct evict_in *in = arg;
    struct rows *r;
    TRY(query_one(c, &episode_restore, in, NULL, &r));
    if (!rows_text(r, 0, &restored_row.asked))
        return problem_set(&c->problem, ERR_NOT_FOUND, "there is no eviction %s", in->eviction_id);
    const int64_t restored = row_int(r, 0, &restored_row.restored, 0),
                  found = row_int(r, 0, &restored_row.found, 0);
    if (!restored)
        TRY(query_durable(c)); /* an earlier request has restored them */
    buf_fmt(call_reply_json(c, 200),
            "{\"restored\":%" PRId64 ",\"skipped\":%" PRId64 ",\"remaining\":%" PRId64 "}", restored,
            row_int(r, 0, &restored_row.asked, 0) - found, found - restored);
    return OK;
}

static enum err restore(struct call *c)
{
    const struct evict_in *in = c->in;
    if (!in->ids.count == !in->eviction_id)
        return problem_field(&c->problem, in->eviction_id ? "eviction_id" : "ids",
                             in->eviction_id ? FAULT_NOT_TOGETHER : FAULT_REQUIRED,
                             "give either ids or eviction_id, and not both");
    return query_tx(c, restore_tx, c->in);
}

#define IN(table) INPUT(table, struct evict_in), .role = ROLE_AGENT, .waits = true

const struct route evict_routes[] = {
    { POST, "/v1/episodic/evict", evict, IN(evict_fields) },
    { POST, "/v1/episodic/restore", restore, IN(restore_fields) },
    END_ROUTES,
};
