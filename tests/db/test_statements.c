/* Every statement, run by one owner with the ids and names of another: it neither shows nor changes the rows
 * of the other. */
#include <check.h>

#include "core/base/array_text.h"
#include "db/statement.h"
#include "tests/db/owned_rows.h"

static PGconn *pg;

/* Statements on an owned table that take no owner, each with the reason. */
static const struct {
    const char *statement, *reason;
} unowned[] = {
    { "key_refresh", "finds out who the owner is; its rows never become an answer" },
    { "key_find", "finds out who the owner is; its row never becomes an answer" },
    { "backfill_owner", "finds the owners that the background job works for; no answer shows them" },
    { "backfill_count", "a number over all owners, for the metrics of the service" },
    { "unsealed_owner", "finds the owners that the sealer works for; no answer shows them" },
};

/* Owned statements that show and change nothing even for their owner, each with the reason. */
static const struct {
    const char *statement, *reason;
} silent[] = {
    { "idempotency_lock", "takes a lock that is not a row" },
};

/* ---- parameters ---- */

/* The values of each parameter, by name and, for a name with several types, by type. `theirs` refers to a row
 * of ann, `own` to one of bob; texts that a write would store belong to neither. NULL is a value too. "@1" is
 * the first of the owner's ids. */
enum {
    BOOL = 16,
    INT2 = 21,
    INT4 = 23,
    INT8 = 20,
    TEXT = 25,
    TEXTS = 1009,
    TIMESTAMPTZ = 1184,
    NUMERIC = 1700,
    UUID = 2950,
    JSONB = 3802
};

#define TICK_SNAPSHOT                                                                                   \
    "[{\"id\":\"@9\",\"tick_at\":\"2026-01-03T00:00:00Z\",\"equity_usd\":1,\"content_hash\":\"x\","     \
    "\"input\":{},\"ops\":[],"                                                                          \
    "\"open\":[],\"unmatched_fees\":[],\"reflection_due\":false,\"day_start_equity_usd\":1,\"executed_" \
    "today\":0,\"realized_today_usd\":0,\"losing_closes\":0}]"
#define TICK_NUMBERS                                                                                 \
    "\"fees_usd\":0.2,\"mfe_usd\":6,\"mae_usd\":-3,\"size_base\":0.02,\"average_entry_price\":3380," \
    "\"realized_so_far_usd\":0,\"mark_price\":3400,\"last_tick_at\":\"2026-01-03T00:00:00Z\"}]"
#define TICK_CHANGED "[{\"id\":\"@3\",\"status\":\"open\"," TICK_NUMBERS
#define TICK_OPENED                                                                                          \
    "[{\"id\":\"@8\",\"symbol\":\"DOGE\",\"side\":\"long\",\"status\":\"open\",\"entry_tick_at\":\"2026-01-" \
    "03T00:"                                                                                                 \
    "00:00Z\",\"entry_price\":1,\"entry_size_usd\":1,\"situation\":\"DOGE long\"," TICK_NUMBERS

#define NEW_EPISODE                                                                                    \
    "[{\"id\":\"#9\",\"content_hash\":\"hash 9\",\"ticker\":\"NEW\",\"task_type\":\"guidance\","       \
    "\"created_at\":\"2026-01-03\",\"question\":\"q\",\"answer\":\"a\",\"confidence\":0.6,\"source\":" \
    "\"external\","                                                                                    \
    "\"source_citations\":[],\"regime_tag\":{},\"embedding_status\":\"pending\"}]"
#define ZEROS_9    ",0,0,0,0,0,0,0,0,0"
#define ZEROS_90   ZEROS_9 ZEROS_9 ZEROS_9 ZEROS_9 ZEROS_9 ZEROS_9 ZEROS_9 ZEROS_9 ZEROS_9 ZEROS_9
#define ZEROS_383  ZEROS_90 ZEROS_90 ZEROS_90 ZEROS_90 ZEROS_9 ZEROS_9 ",0,0,0,0,0"
#define NEW_VECTOR "[{\"id\":\"@2\",\"width\":384,\"vector\":\"[1" ZEROS_383 "]\"}]"

static const struct given {
    const char *name;
    Oid type; /* 0: any */
    const char *theirs, *own;
    const char *only; /* the start of the names of the statements that it is for; NULL: all */
} given[] = {
    { "key", 0, "fact-1", "fact-1", "fact_" },
    { "scope", 0, "global", "global", "fact_" },
    { "scope", 0, "global", "global", "facts_of_keys" },
    { "scope", 0, NULL, "desk", "facts_" },
    { "cursor_1", TEXT, NULL, "desk", "fact_" },
    { "prefix", 0, NULL, "fact" },
    { "source", 0, "tool_verified", "user_stated", "fact_change" },
    { "source", 0, "agent_inferred", "agent_inferred", "fact_" },
    { "confidence", 0, "0.9", "0.7", "fact_" },
    { "value", 0, "[1]", "{\"a\":0.10}" },
    { "change", 0, "put", "correct", "fact_write" },
    { "change", 0, "verify", "delete", "fact_change" },
    { "changes", 0,
      "[{\"scope\":\"global\",\"key\":\"fact-1\",\"version\":2,\"confidence\":0.2,\"decayed_at\":\"2026-02-"
      "01\","
      "\"archived\":true}]",
      "[{\"scope\":\"global\",\"key\":\"fact-1\",\"version\":2,\"confidence\":0.5,\"decayed_at\":\"2026-02-"
      "01\","
      "\"archived\":false}]" },
    { "needs_verification", 0, NULL, "true" },
    { "stale", 0, NULL, "true" },
    { "archived", 0, "false", "true" },
    { "keys", 0, "{fact-1,macro}", "{macro}" },
    { "observation_type", 0, "tool_result_verified", NULL, "fact_list" },
    { "observation_type", 0, "tool_result_verified", NULL, "fact_export" },
    { "observation_type", 0, "tool_result_verified", "tool_result_verified" },
    { "default_types", 0, "{}", "{}" },
    { "ttl_seconds", 0, "100", NULL },
    { "ttl_days", 0, "10", NULL },
    { "types", 0, "[{\"observation_type\":\"a\",\"store\":true,\"ttl_seconds\":null}]", "[]" },
    { "id", 0, "@5", "@5", "thesis_" },
    { "text", 0, "a text", "a text", "memory_create" },
    { "text", 0, "a text", "a text", "thesis_open" },
    { "symbol", 0, "BTC", "ETH", "thesis_" },
    { "symbol", 0, "BTC", "ETH", "order_" },
    { "outcome", 0, "filled", "filled", "order_" },
    { "outcome", JSONB, "{\"metric\":\"m\",\"value\":1}", NULL },
    { "id", 0, "@1", "@1" },
    { "ids", 0, "{@1,@2,@3,@4}", "{@1,@2}" },
    { "pinned", 0, "{@1,@2,@3,@4}", "{@1,@2}" },
    { "into", 0, "@4", "@4" },
    { "key", 0, "key-1", "key-3" },
    { "claim", 0, "@1", "@1" },
    { "claim_ms", 0, "1000", "1000" },
    { "request_hash", 0, "hash " ANN_MARK, "hash plainword" },
    { "tags", 0, "{macro}", "{macro}" },
    { "tags_all", 0, "{macro}", NULL },
    { "status", TEXT, NULL, "proposed" },
    { "status", TEXTS, NULL, "{active,open}" },
    { "status", INT4, "201", "200" },
    { "active", 0, "true", NULL },
    { "text", 0, "macro calls", NULL },
    { "since", 0, "2025-01-01", NULL },
    { "until", 0, "2027-01-01", NULL },
    { "as_of", 0, "9999-12-31T23:59:59Z", "2026-01-02T12:00:00Z" },
    { "cursor_1", TIMESTAMPTZ, NULL, "infinity" },
    { "cursor_1", NUMERIC, NULL, NULL },
    { "cursor_1", INT4, "0", NULL },
    { "cursor_1", INT8, "0", NULL },
    { "cursor_1", TEXT, "", NULL },
    { "cursor_1", UUID, NULL, NULL },
    { "cursor_2", 0, NULL, NULL },
    { "limit", 0, "200", "1" },
    { "skill_id", 0, "skill-1", "skill-9" },
    { "version", 0, "v1", "v9" },
    { "mode", 0, "live", "live" },
    { "deployment_id", 0, "@1", "@1" },
    { "symbol", 0, "BTC", NULL },
    { "side", 0, "long", "long" },
    { "regime", TEXT, "chop_lowvol", NULL },
    { "regime", JSONB, "{\"rates\":\"cutting\"}", NULL },
    { "lessons_hash", 0, "0123456789abcdef", NULL },
    { "exit_reason", 0, ANN_MARK " exit", NULL },
    { "entry_since", 0, "2025-01-01", NULL },
    { "entry_until", 0, "2027-01-01", NULL },
    { "exit_since", 0, "2025-01-01", NULL },
    { "exit_until", 0, "2027-01-01", NULL },
    { "group_by", 0, "exit_reason", "symbol" },
    { "stale_days", 0, "1", "1" },
    { "max_pairs", 0, "100", "100" },
    { "window_us", 0, "3600000000", "3600000000" },
    { "max_rejections", 0, "5000", "1" },
    { "retry_us", 0, "3600000000", "1" },
    { "similar_keys", 0, "{1,7,8}", "{1,2}" },
    { "deployment_id", 0, "@1", "@1" },
    { "engine_kind", 0, "rejected", NULL },
    { "engine_rule", 0, NULL, NULL },
    { "action_kind", 0, NULL, NULL },
    { "k", 0, "30", NULL },
    { "ticker", 0, "ACME", "ACME" },
    { "task_type", 0, "guidance", "guidance" },
    { "source", 0, "tool_verified", NULL },
    { "embedding_status", 0, "embedded", NULL },
    { "min_confidence", 0, "0.5", NULL },
    { "days_threshold", 0, "30", "30" },
    { "prior_id", 0, "@1", "@1" },
    { "hashes", 0, "{hash 1,hash 2,0123456789abcdef}", "{hash 1}" },
    { "max_texts", 0, "100", "1" },
    { "eviction_id", 0, "@1", "@1" },
    { "policies", 0, "{time,size,relevance}", "{size}" },
    { "max_age_days", 0, "1", "1" },
    { "keep_per_pair", 0, "1", "1" },
    { "unread_days", 0, "1", "1" },
    { "dry_run", 0, "false", "true" },
    { "samples", 0, "10", "10" },
    /* a search: near a vector of model-1, and with a word of ann */
    { "query_text", 0, "a question", "an answer" },
    { "query_vector", 0, "{1,0,0}", "{1,0}" },
    { "query_model", 0, "model-1", "model-1", "memory_other_dim" },
    { "query_model", 0, "model-1", "model-2" },
    { "query_dim", 0, "3", "2" },
    { "width", 0, "384", "384" },
    { "regime_only", 0, "false", "false" },
    { "regime_penalty", 0, "0.1", "0.1" },
    { "word_query", 0, ANN_MARK, "question" },
    { "lexemes", 0, "{" ANN_MARK ",question}", "{question}" },
    { "idfs", 0, "{2,1}", "{1}" },
    { "max_compared", 0, "100", "100" },
    { "max_candidates", 0, "100", "100" },
    { "max_visited", 0, "1000", "1000" },
    { "max_word_matches", 0, "100", "100" },
    { "max_sampled", 0, "100", "100" },
    { "max_pending", 0, "100", "100" },
    { "skipped", 0, "{}", "{}" },
    { "after", 0, "", "" },
    { "situations", 0, "true", "true" },
    { "most", 0, "100", "100" },
    { "min_similarity", 0, "0.1", "0" },
    { "query", 0, "{}", "{}" },
    { "filters", 0, "{}", "{}" },
    { "candidates", 0, "[]", "[]" },
    { "include_supplied", 0, "true", "false" },
    { "other_than", 0, "OTHER", "OTHER" },
    { "only_task", 0, NULL, NULL },
    { "query_halfvec", 0, "[1" ZEROS_383 "]", "[1" ZEROS_383 "]" },
    /* values that a write stores */
    { "entries", 0, NEW_EPISODE, NEW_EPISODE },
    { "vectors", 0, NEW_VECTOR, NEW_VECTOR },
    { "model", 0, "model-1", "model-1" },
    { "dim", 0, "3", "2" },
    { "cost_usd", 0, "0.45", NULL },
    { "new_id", 0, "0190cccc-cccc-7ccc-8ccc-cccccccccccc", "0190cccc-cccc-7ccc-8ccc-cccccccccccc" },
    { "at", 0, "2026-03-01", "2026-03-01" },
    { "now", 0, "2026-03-01", "2026-03-01" },
    { "context", 0, "a context", "a context" },
    { "outcome", 0, "ran", "ran" },
    { "takeaway", 0, "Shrink the odds of macro calls by a tenth 1",
      "Shrink the odds of macro calls by a tenth" },
    { "evidence", 0, "{a log}", "{a log}" },
    { "to_status", 0, "retired", "retired" },
    { "reason", 0, NULL, NULL },
    { "validation", 0, "{\"metric\":\"m\",\"value\":1,\"sample_size\":1}", NULL },
    { "superseded_by", 0, NULL, NULL },
    { "strategy", 0, "a strategy", "a strategy" },
    { "avoid", 0, "{a rule}", NULL },
    { "memory", 0, "{\"enabled\":false}", NULL },
    { "name", 0, "a name", NULL },
    { "scope", 0, NULL, "skill" },
    { "promoted_at", 0, "2026-03-01", "2026-03-01" },
    { "reflection", 0, "{\"cadence\":\"daily\"}", NULL },
    /* a tick of the first deployment, which has five: one more snapshot, the open trade changed, one opened
     */
    { "tick_at", 0, "2026-01-02T12:00:00Z", "2026-01-02T12:00:00Z" },
    { "snapshot_id", 0, "@9", "@9" },
    { "expected", 0, "5", "5" },
    { "count", 0, "1", "1" },
    { "closed", 0, "0", "0" },
    { "actions", 0, "1", "0" },
    { "before_at", 0, "2026-01-02T12:00:00Z", "2026-01-02T12:00:00Z" },
    { "before_n", 0, "0", "0" },
    { "executed_today", 0, "2", "2" },
    { "losing_closes", 0, "0", "0" },
    { "day_start_equity_usd", 0, "1028.5", "1028.5" },
    { "realized_today_usd", 0, "0", "0" },
    { "snapshots", 0, TICK_SNAPSHOT, TICK_SNAPSHOT },
    { "changed", 0, TICK_CHANGED, TICK_CHANGED },
    { "opened", 0, TICK_OPENED, TICK_OPENED },
    /* a reflection on the first deployment that made a note */
    { "max_trades", 0, "1000", "10" },
    { "shown_trades", 0, "60", "1" },
    { "reason_chars", 0, "400", "400" },
    { "reflection_id", 0, "0190cccc-cccc-7ccc-8ccc-cccccccccccd", "0190cccc-cccc-7ccc-8ccc-cccccccccccd" },
    { "note_id", 0, "0190cccc-cccc-7ccc-8ccc-ccccccccccce", "0190cccc-cccc-7ccc-8ccc-ccccccccccce" },
    { "detail", 0, NULL, NULL },
    { "forced", 0, "false", "true" },
    { "suppressed", 0, "{}", "{sizing}" },
    { "trades_considered", 0, "2", "2" },
    { "window_start", 0, "2026-01-01T10:00:00Z", "2026-01-01T10:00:00Z" },
    { "window_end", 0, "2026-01-02T11:00:00Z", "2026-01-02T11:00:00Z" },
    { "lessons_text", 0, "a text", "a text" },
    { "content_hash", 0, "0123456789abcdef", "0123456789abcdef" },
    { "model_used", 0, "builtin", "builtin" },
    { "input_tokens", 0, "0", "0" },
    { "output_tokens", 0, "0", "0" },
    { "content_type", 0, "application/json", "application/json" },
    /* a memory, a thesis, an order, a search or an event */
    { "kind", TEXTS, NULL, "{note,thesis}" },
    { "kind", 0, "decision", "note", "memory_create" },
    { "kind", 0, "decision", NULL, "memory_list" },
    { "kind", 0, "decision", NULL, "memory_export" },
    { "kind", 0, "memories", NULL, "memory_retrieval_" },
    { "kind", 0, "memory.created", NULL, "memory_event_" },
    { "action", 0, "add", NULL, "memory_create" },
    { "action", 0, "add", "add" },
    { "thesis_id", 0, "@5", NULL },
    { "memory_id", 0, "@5", NULL },
    { "subject_id", 0, "@1", NULL },
    { "journal_id", 0, "@1", "@1" },
    { "after_seq", 0, "0", "1" },
    { "last_seq", 0, "2", "2" },
    { "around", 0, "100", "100" },
    { "seq", 0, "2", "2" },
    { "before", 0, "the hash before", "the hash before" },
    { "rendered", 0, "a text", "a text" },
    { "tokens", 0, "3", "3" },
    { "decision_id", 0, "@1", "@1" },
    { "agent_name", 0, "trader", NULL },
    { "model_call_id", 0, "call-1", NULL },
    { "invalidation", 0, "below", NULL },
    { "target", 0, "a target", NULL },
    { "horizon", 0, "weeks", NULL },
    { "parallel", 0, "true", "false" },
    { "cleared", 0, "{side}", "{}" },
    { "validates", 0, "{@1}", NULL },
    { "client_order_id", 0, "order-1", "order-1" },
    { "size", 0, "0.1", "1" },
    { "filled_size", 0, "0.1", NULL },
    { "average_price", 0, "65000", NULL },
    { "fees_usd", 0, "0.1", NULL },
    { "broker_order_id", 0, "7", NULL },
    { "location", 0, "/v1/nowhere", NULL },
    { "body", 0, "{}", "{}" },
};

enum { GIVEN = sizeof given / sizeof *given, MOST_PARAMS = 32, VALUE_SIZE = 1024 };

/* Which parameters refer to rows of the other owner, and which to the caller's own. */
enum variant { ALL_THEIRS, ALL_OWN, LISTS_THEIRS, LISTS_OWN, LISTS_MIXED, VARIANTS };

static bool is_list(const char *param)
{
    return strcmp(param, "ids") == 0;
}

static bool names_a_row(const char *param)
{
    return is_list(param) || strcmp(param, "id") == 0 || strcmp(param, "deployment_id") == 0 ||
           strcmp(param, "into") == 0;
}

/* Writes the template: `@` stands for ann's ids, `#` for the caller's. */
static const char *with_ids(const char *template, const char *at, const char *caller, char out[VALUE_SIZE])
{
    char *p = out;
    for (const char *t = template; *t; t++)
        if (*t == '@' || *t == '#')
            p += sprintf(p, "%s", owned_ids(*t == '@' ? at : caller));
        else
            *p++ = *t;
    *p = 0;
    return out;
}

static bool is_for(const struct given *g, const struct statement *st, const char *param, Oid type)
{
    return strcmp(g->name, param) == 0 && (!g->type || g->type == type) &&
           (!g->only || strncmp(st->name, g->only, strlen(g->only)) == 0);
}

static const char *value_of(const struct statement *st, const char *param, Oid type, enum variant v,
                            const char *caller, char out[VALUE_SIZE])
{
    const struct given *g = NULL;
    for (int i = 0; i < GIVEN && !g; i++)
        if (is_for(&given[i], st, param, type))
            g = &given[i];
    ck_assert_msg(g != NULL, "tests/db/test_statements.c must be told what to give for :%s (type %u)", param,
                  type);
    if (v == LISTS_MIXED && is_list(param))
        return with_ids("{@1,@2,#1,#2}", ANN, caller, out);
    bool theirs = v == ALL_THEIRS || (v == LISTS_THEIRS && (is_list(param) || !names_a_row(param))) ||
                  (v == LISTS_OWN && !is_list(param)) || (v == LISTS_MIXED && !names_a_row(param));
    const char *template = theirs ? g->theirs : g->own;
    return template ? with_ids(template, theirs ? ANN : caller, caller, out) : NULL;
}

/* ---- running ---- */

/* Whether the row has no values after the first column. */
static bool is_empty(const PGresult *r, int row)
{
    for (int col = 1; col < PQnfields(r); col++)
        if (!PQgetisnull(r, row, col))
            return false;
    return true;
}

/* Whether the row of the form for several requests has the values of the single form's row. */
static bool is_row(const PGresult *together, int row, const PGresult *alone, int alone_row)
{
    bool same = alone_row < PQntuples(alone);
    for (int col = 0; same && col < PQnfields(alone); col++) {
        ck_assert_str_eq(PQfname(together, col + 1), PQfname(alone, col));
        same &= strcmp(PQgetvalue(together, row, col + 1), PQgetvalue(alone, alone_row, col)) == 0;
    }
    return same;
}

/* Undoes a write of the statement, so that it can be repeated with the same ids. */
static void undo(const struct statement *st)
{
    if (st->lane == LANE_WRITE)
        owned_run(pg, "rollback to alone");
}

/* Executed for three requests at once, of which only the second is the caller's, the statement must return
 * the same row for the second, and for the others what it returns to an owner without rows. */
static void check_together(const struct statement *st, const char *const *values, const PGresult *alone)
{
    struct arena arena = { 0 };
    const char *arrays[MOST_PARAMS], *nobody[MOST_PARAMS];
    for (int i = 0; i < st->param_count; i++) {
        bool owner = strcmp(st->params[i], "owner") == 0;
        struct buf out = { .arena = &arena };
        array_text_add(&out, owner ? "nobody" : values[i]);
        array_text_add(&out, values[i]);
        array_text_add(&out, owner ? "no \"body\"" : values[i]);
        arrays[i] = array_text_end(&out);
        nobody[i] = owner ? "nobody" : values[i];
    }
    PGresult *none = PQexecPrepared(pg, st->name, st->param_count, nobody, NULL, NULL, 0);
    owned_ok(pg, none, st->name);
    undo(st);
    PGresult *r = PQexecPrepared(pg, st->together_name, st->param_count, arrays, NULL, NULL, 0);
    owned_ok(pg, r, st->together_name);
    ck_assert_int_eq(PQnfields(r), PQnfields(alone) + 1);
    ck_assert_str_eq(PQfname(r, 0), "_n");
    int own = 0;
    for (int row = 0; row < PQntuples(r); row++) {
        if (strcmp(PQgetvalue(r, row, 0), "2") == 0)
            ck_assert_msg(is_row(r, row, alone, own++), "%s differs from %s", st->together_name, st->name);
        else
            ck_assert_msg(is_empty(r, row) || is_row(r, row, none, 0),
                          "%s returns the caller's row to another request", st->together_name);
    }
    ck_assert_int_eq(own, PQntuples(alone));
    PQclear(none);
    PQclear(r);
    arena_release(&arena);
}

static PGresult *run(const struct statement *st, const char *caller, enum variant v)
{
    static char texts[MOST_PARAMS][VALUE_SIZE];
    const char *values[MOST_PARAMS];
    ck_assert_int_le(st->param_count, MOST_PARAMS);
    PGresult *about = PQdescribePrepared(pg, st->name);
    owned_ok(pg, about, st->name);
    ck_assert_int_eq(PQnparams(about), st->param_count);
    for (int i = 0; i < st->param_count; i++)
        values[i] = strcmp(st->params[i], "owner") == 0
                        ? caller
                        : value_of(st, st->params[i], PQparamtype(about, i), v, caller, texts[i]);
    PQclear(about);
    if (st->together)
        owned_run(pg, "savepoint alone");
    PGresult *r = PQexecPrepared(pg, st->name, st->param_count, values, NULL, NULL, 0);
    owned_ok(pg, r, st->name);
    if (!st->together)
        return r;
    undo(st);
    check_together(st, values, r);
    undo(st);
    if (st->lane == LANE_WRITE) {
        PQclear(r);
        r = PQexecPrepared(pg, st->name, st->param_count, values, NULL, NULL, 0);
        owned_ok(pg, r, st->name);
    }
    return r;
}

static bool is_same(const PGresult *a, const PGresult *b)
{
    bool same = PQntuples(a) == PQntuples(b);
    for (int row = 0; same && row < PQntuples(a); row++)
        for (int col = 0; col < PQnfields(a); col++)
            same &= strcmp(PQgetvalue(a, row, col), PQgetvalue(b, row, col)) == 0;
    return same;
}

struct seen {
    bool shows, changes;
};

/* Whether the statement shows or changes rows of ann when `caller` runs it; all changes are rolled back. It
 * shows something, even if only a count, when its result is different without her rows. */
static struct seen observe(const struct statement *st, const char *caller, enum variant v)
{
    struct seen seen;
    owned_run(pg, "begin; savepoint filled");
    const char *before = owned_sum(pg, ANN);
    PGresult *r = run(st, caller, v);
    seen.changes = strcmp(before, owned_sum(pg, ANN)) != 0;
    owned_run(pg, "rollback to filled");
    owned_remove(pg, ANN);
    PGresult *without = run(st, caller, v);
    seen.shows = !is_same(r, without);
    PQclear(r);
    PQclear(without);
    owned_run(pg, "rollback");
    return seen;
}

static bool is_silent(const struct statement *st)
{
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (strcmp(st->name, silent[i].statement) == 0)
            return true;
    return false;
}

static void prepare(const char *statement_name, const char *sql)
{
    PGresult *r = PQprepare(pg, statement_name, sql, 0, NULL);
    owned_ok(pg, r, statement_name);
    PQclear(r);
}

static void setup(void)
{
    pg = database_migrated("statements");
    owned_run(pg, "set search_path = daybook, public");
    owned_fill(pg);
    for (int i = 0; i < statements_count; i++) {
        prepare(statements[i]->name, statements[i]->sql);
        if (statements[i]->together)
            prepare(statements[i]->together_name, statements[i]->together);
    }
}

static void teardown(void)
{
    database_finish(pg);
}

/* ---- the tests ---- */

START_TEST(no_statement_shows_or_changes_rows_of_another_owner)
{
    ck_assert_int_gt(statements_count, 0);
    for (int i = 0; i < statements_count; i++)
        for (int v = 0; v < VARIANTS && statements[i]->owned; v++) {
            struct seen seen = observe(statements[i], BOB, (enum variant)v);
            ck_assert_msg(!seen.shows, "%s shows rows of another owner (variant %d)", statements[i]->name, v);
            ck_assert_msg(!seen.changes, "%s changes rows of another owner (variant %d)", statements[i]->name,
                          v);
        }
}
END_TEST

/* Otherwise the test above would prove nothing. */
START_TEST(every_statement_shows_or_changes_rows_of_its_owner)
{
    for (int i = 0; i < statements_count; i++) {
        const struct statement *st = statements[i];
        bool any = false;
        for (int v = 0; v < VARIANTS && st->owned; v++) {
            struct seen seen = observe(st, ANN, (enum variant)v);
            any |= seen.shows || seen.changes;
        }
        ck_assert_msg(any || !st->owned || is_silent(st),
                      "%s did nothing with the rows of its own owner: give it parameters that do", st->name);
    }
}
END_TEST

START_TEST(a_statement_that_forgets_its_owner_is_detected)
{
    static const char *const params[] = { "owner", "ids" };
    static const struct statement leaks[] = {
        { .name = "leak_1", .sql = "select id from lessons where $1::text <> '' and id = any ($2::uuid[])" },
        { .name = "leak_2",
          .sql = "select 1 from lessons where owner = $1 or id = any ($2::uuid[]) and 'x' = takeaway" },
        { .name = "leak_3",
          .sql = "select array_to_json(array_agg(l.tags)) from lessons l join lessons mine on mine.owner = "
                 "$1 where $2::text is "
                 "not null" },
        { .name = "leak_4",
          .sql = "update lessons set tags = '{x}' where $1::text <> '' and id = any ($2::uuid[])" },
        { .name = "leak_5",
          .sql = "delete from idempotency_keys where key = 'key-1' and $1::text <> $2::text" },
        { .name = "leak_6", .sql = "select count(*) from lessons where $1::text <> $2::text" },
    };
    /* The second one shows nothing of ann. */
    static const bool found[] = { true, false, true, true, true, true };
    for (size_t i = 0; i < sizeof leaks / sizeof *leaks; i++) {
        struct statement st = leaks[i];
        st.param_count = 2;
        st.params = params;
        prepare(st.name, st.sql);
        struct seen seen = observe(&st, BOB, ALL_THEIRS);
        ck_assert_msg((seen.shows || seen.changes) == found[i], "%s", st.name);
    }
}
END_TEST

/* Whether the text has the word, not as part of another. */
static bool has_word(const char *text, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = strstr(text, word); p; p = strstr(p + 1, word)) {
        bool begins = p == text || !(isalnum((unsigned char)p[-1]) || p[-1] == '_');
        if (begins && !isalnum((unsigned char)p[len]) && p[len] != '_')
            return true;
    }
    return false;
}

START_TEST(a_statement_on_an_owned_table_takes_the_owner_first)
{
    char tables[MOST_TABLES][64];
    int count = owned_tables(pg, tables);
    for (int i = 0; i < statements_count; i++) {
        const struct statement *st = statements[i];
        bool allowed = false, touches = false;
        for (size_t u = 0; u < sizeof unowned / sizeof *unowned; u++)
            allowed |= strcmp(st->name, unowned[u].statement) == 0;
        for (int t = 0; t < count; t++)
            touches |= has_word(st->sql, tables[t]);
        ck_assert_msg(!touches || st->owned || allowed, "%s touches an owned table and takes no owner",
                      st->name);
        ck_assert_msg(!allowed || !st->owned, "%s is listed as unowned and is not", st->name);
        ck_assert_msg(!st->owned || (st->param_count > 0 && strcmp(st->params[0], "owner") == 0),
                      "the first parameter of %s is not the owner", st->name);
    }
}
END_TEST

START_TEST(exceptions_name_existing_statements)
{
    const char *listed[16];
    size_t count = 0;
    for (size_t i = 0; i < sizeof unowned / sizeof *unowned; i++)
        listed[count++] = unowned[i].statement;
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        listed[count++] = silent[i].statement;
    for (size_t i = 0; i < count; i++) {
        bool exists = false;
        for (int s = 0; s < statements_count; s++)
            exists |= strcmp(statements[s]->name, listed[i]) == 0;
        ck_assert_msg(exists, "there is no statement %s", listed[i]);
    }
}
END_TEST

START_TEST(the_index_of_a_statement_is_its_position)
{
    for (int i = 0; i < statements_count; i++)
        ck_assert_int_eq(statements[i]->index, i);
}
END_TEST

int main(void)
{
    static const TTest *const *const tests[] = {
        &no_statement_shows_or_changes_rows_of_another_owner,
        &every_statement_shows_or_changes_rows_of_its_owner,
        &a_statement_that_forgets_its_owner_is_detected,
        &a_statement_on_an_owned_table_takes_the_owner_first,
        &exceptions_name_existing_statements,
        &the_index_of_a_statement_is_its_position,
    };
    return database_tests("statements", tests, sizeof tests / sizeof *tests, setup, teardown);
}
