/* POST /v1/facts/merge: what a session knows. Stored facts, overridden by what was corrected in the session,
 * with what contradicts them, and related memories beside them. */
#include <stdlib.h>
#include <string.h>

#include "core/base/json_put.h"
#include "core/base/time_text.h"
#include "core/facts/conflict.h"
#include "core/journal/render.h"
#include "handlers/facts/facts.h"
#include "handlers/journal/related.h"
#include "handlers/kit/instant.h"
#include "handlers/kit/policy.h"
#include "handlers/routes.h"
#include "server/json/reader.h"

enum { CORRECTIONS_MAX = 100, FACTS_MAX = 1000, TAGGED_MAX = 1000 };

struct correction_in {
    const char *key, *value, *observation_type;
};

struct merge_in {
    const char *scope, *prefix, *text, *deployment_id, *store, *at, *as_of;
    struct objects corrections; /* of struct correction_in */
    struct texts keys;          /* computed */
    int64_t limit, k, max_tokens;
    int64_t most; /* computed */
};

/* clang-format off */
#define C(kind, member, ...) FIELD(FROM_BODY, kind, struct correction_in, member, __VA_ARGS__)
#define M(from, kind, member, ...) FIELD(from, kind, struct merge_in, member, __VA_ARGS__)
static const struct field correction_fields[] = {
    C(KIND_KEY, key, .required = true, .min = 1, .max = FACT_KEY_MAX),
    C(KIND_JSON, value, .required = true, .min = 1, .max = FACT_VALUE_BYTES),
    C(KIND_NAME, observation_type),
    END_FIELDS,
};
static const struct field merge_fields[] = {
    M(FROM_BODY, KIND_KEY, scope, .min = 1, .max = FACT_SCOPE_MAX, .fallback = FACT_SCOPE),
    M(FROM_BODY, KIND_KEY, prefix, .min = 1, .max = FACT_KEY_MAX),
    M(FROM_BODY, KIND_OBJECTS, corrections, .min = 0, .max = CORRECTIONS_MAX, SUB(correction_fields, struct correction_in)),
    M(FROM_BODY, KIND_TEXT, text, .min = 1, .max = 4000),
    M(FROM_BODY, KIND_UUID, deployment_id),
    M(FROM_BODY, KIND_INT, k, .min = 1, .max = 100, .fallback = "5"),
    M(FROM_BODY, KIND_INT, max_tokens, .min = RENDER_MIN_TOKENS, .max = 20000, .fallback = "800"),
    M(FROM_BODY, KIND_INT, limit, .min = 1, .max = FACTS_MAX, .fallback = "200"),
    M(FROM_BODY, KIND_BOOL, store, .fallback = "false"),
    M(FROM_BODY, KIND_TIME, at),
    M(FROM_BODY, KIND_TIME, as_of, .fallback = LATEST),
    M(COMPUTED, KIND_TEXTS, keys), M(COMPUTED, KIND_INT, most),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(shared, key, scope, value, source, confidence, written_at);
COLUMNS(tagged, id, kind, status, at, text, key);
QUERY(facts_of_keys, FACTS_OF_KEYS, merge_fields, READS(shared));
QUERY(facts_tagged, FACTS_TAGGED, merge_fields, READS(tagged));

/* A key of the session: its stored fact, its correction, or both. */
struct item {
    const char *key;
    int row;                                /* of the stored fact; -1: none */
    const struct correction_in *correction; /* NULL: none */
};

struct merge {
    const struct merge_in *in;
    struct rows *facts, *global, *tagged;
    struct item *items; /* by key */
    size_t item_count;
    int fact_count;
    bool complete;                /* no limit left anything out */
    struct memory_search *search; /* NULL: no text was given */
    int64_t at_us;
};

/* ---- the request ---- */

static enum err check_corrections(struct call *c, const struct objects *list)
{
    const struct correction_in *corrections = list->items;
    enum err err = OK;
    for (size_t i = 0; i < list->count; i++)
        for (size_t before = 0; before < i; before++)
            if (strcmp(corrections[before].key, corrections[i].key) == 0) {
                err = problem_field(&c->problem, arena_fmt(&c->arena, "corrections[%zu].key", i),
                                    FAULT_DUPLICATE_ITEM, "is corrected already, at [%zu]", before);
                break;
            }
    return err;
}

static enum err check(struct call *c, const struct merge_in *in)
{
    TRY(check_corrections(c, &in->corrections));
    TRY(instant_check(c, "at", in->at));
    if (!field_is_true(in->store))
        return OK;
    if (strcmp(in->as_of, LATEST) != 0)
        return problem_field(&c->problem, "as_of", FAULT_NOT_TOGETHER,
                             "is for reading: the past takes no corrections");
    if (c->role < ROLE_RESEARCHER)
        return problem_set(&c->problem, ERR_FORBIDDEN,
                           "to store corrections needs the role %s; the key has the role %s",
                           role_name(ROLE_RESEARCHER), role_name(c->role));
    return OK;
}

/* ---- what is known ---- */

static int compare_items(const void *left, const void *right)
{
    return strcmp(((const struct item *)left)->key, ((const struct item *)right)->key);
}

static struct item *find_item(struct merge *m, const char *key)
{
    for (size_t i = 0; i < m->item_count; i++)
        if (strcmp(m->items[i].key, key) == 0)
            return &m->items[i];
    return NULL;
}

/* A fact beyond the limit may be corrected too: it is then listed with the correction alone. */
static void make_items(struct call *c, struct merge *m)
{
    const struct correction_in *corrections = m->in->corrections.items;
    m->items =
        arena_zero(&c->arena, ((size_t)m->fact_count + m->in->corrections.count + 1) * sizeof *m->items);
    for (int row = 0; row < m->fact_count; row++)
        m->items[m->item_count++] =
            (struct item){ .key = rows_text(m->facts, row, &fact_row.key), .row = row };
    for (size_t i = 0; i < m->in->corrections.count; i++) {
        struct item *item = find_item(m, corrections[i].key);
        if (!item) {
            item = &m->items[m->item_count++];
            *item = (struct item){ .key = corrections[i].key, .row = -1 };
        }
        item->correction = &corrections[i];
    }
    if (m->item_count > 1)
        qsort(m->items, m->item_count, sizeof *m->items, compare_items);
}

static enum err find_facts(struct call *c, struct merge *m)
{
    const struct fact_in filter = {
        .scope = m->in->scope,
        .prefix = m->in->prefix,
        .as_of = m->in->as_of,
        .archived = "false",
        .limit = m->in->limit,
    };
    TRY(fact_find(c, &filter, &m->facts));
    m->complete = rows_count(m->facts) <= m->in->limit;
    m->fact_count = m->complete ? rows_count(m->facts) : (int)m->in->limit;
    make_items(c, m);
    return OK;
}

/* What else is stated about the keys: by facts of the scope `global`, and by memories and lessons. */
static enum err find_statements(struct call *c, struct merge *m)
{
    struct merge_in in = *m->in;
    in.keys.items = arena_alloc(&c->arena, (m->item_count + 1) * sizeof *in.keys.items);
    for (size_t i = 0; i < m->item_count; i++)
        in.keys.items[in.keys.count++] = m->items[i].key;
    in.scope = FACT_SCOPE;
    in.most = TAGGED_MAX + 1;
    TRY(query_rows(c, &facts_of_keys, &in, NULL, &m->global));
    TRY(query_rows(c, &facts_tagged, &in, NULL, &m->tagged));
    m->complete &= rows_count(m->tagged) <= TAGGED_MAX;
    return OK;
}

/* ---- contradictions ---- */

static bool is_same_value(const char *a, const char *b)
{
    struct decimal x, y;
    if (strcmp(a, b) == 0)
        return true;
    return decimal_parse(a, &x) == DECIMAL_EXACT && decimal_parse(b, &y) == DECIMAL_EXACT &&
           decimal_compare(x, y) == 0;
}

/* The text or the digits of a value; NULL for any other, which no text can be compared with. */
static const char *plain_value(struct call *c, const char *json)
{
    if (*json == '-' || (*json >= '0' && *json <= '9'))
        return json;
    if (*json != '"')
        return NULL;
    const size_t len = strlen(json);
    struct json_reader r = reader_begin_stored(arena_copy(&c->arena, json, len), len);
    return reader_text(&r);
}

/* The value that the session goes on with. */
static const char *value_of(const struct merge *m, const struct item *item)
{
    return item->correction ? item->correction->value : rows_text(m->facts, item->row, &fact_row.value);
}

static void add_fact(struct conflict_statement *to, const struct rows *r, int row, const struct column *scope,
                     const struct column *value, const struct column *source, const struct column *confidence,
                     const struct column *at)
{
    *to = (struct conflict_statement){
        .kind = "fact",
        .scope = rows_text(r, row, scope),
        .value = rows_text(r, row, value),
        .source = rows_text(r, row, source),
        .confidence = rows_text(r, row, confidence),
        .at_us = row_time_us(r, row, at, 0),
    };
}

/* Entries of the journal name no source. A lesson that outcome data confirmed counts as verified, and all
 * others as inferred. */
static void add_tagged(struct conflict_statement *to, const struct rows *r, int row)
{
    const bool validated = strcmp(rows_text(r, row, &tagged.status), "validated") == 0;
    const char *source = validated ? "tool_verified" : "agent_inferred";
    *to = (struct conflict_statement){
        .kind = rows_text(r, row, &tagged.kind),
        .id = rows_text(r, row, &tagged.id),
        .text = rows_text(r, row, &tagged.text),
        .source = source,
        .confidence = fact_confidence(source),
        .at_us = row_time_us(r, row, &tagged.at, 0),
    };
}

/* Collects what was stated about the key. Returns the number of statements that contradict its value; the
 * first statement is the value itself. */
static size_t collect(struct call *c, const struct merge *m, const struct item *item,
                      struct conflict_statement *list, size_t *count)
{
    const char *value = value_of(m, item), *plain = plain_value(c, value);
    size_t n = 0;
    if (item->correction)
        list[n++] = (struct conflict_statement){ .kind = "correction",
                                                 .scope = m->in->scope,
                                                 .value = value,
                                                 .source = FACT_SESSION_CORRECTION,
                                                 .confidence = fact_confidence(FACT_SESSION_CORRECTION),
                                                 .at_us = m->at_us,
                                                 .corrected = true };
    if (item->row >= 0 &&
        (!item->correction || !is_same_value(value, rows_text(m->facts, item->row, &fact_row.value))))
        add_fact(&list[n++], m->facts, item->row, &fact_row.scope, &fact_row.value, &fact_row.source,
                 &fact_row.confidence, &fact_row.written_at);
    for (int row = 0; strcmp(m->in->scope, FACT_SCOPE) != 0 && row < rows_count(m->global); row++)
        if (strcmp(rows_text(m->global, row, &shared.key), item->key) == 0 &&
            !is_same_value(value, rows_text(m->global, row, &shared.value)))
            add_fact(&list[n++], m->global, row, &shared.scope, &shared.value, &shared.source,
                     &shared.confidence, &shared.written_at);
    for (int row = 0; plain && row < rows_count(m->tagged); row++)
        if (strcmp(rows_text(m->tagged, row, &tagged.key), item->key) == 0 &&
            !conflict_text_has(rows_text(m->tagged, row, &tagged.text), plain))
            add_tagged(&list[n++], m->tagged, row);
    *count = n;
    return n - 1;
}

static void put_statement(struct buf *out, const struct conflict_statement *s)
{
    buf_char(out, '{');
    json_put_text(out, "kind", s->kind);
    json_put_text(out, "scope", s->scope);
    json_put_text(out, "id", s->id);
    json_put_raw(out, "value", s->value);
    json_put_text(out, "text", s->text);
    json_put_text(out, "source", s->source);
    json_put_raw(out, "confidence", s->confidence);
    json_put_time(out, "at", s->at_us);
    buf_char(out, '}');
}

static void put_conflicts(struct call *c, struct buf *out, const struct merge *m)
{
    const size_t most = (size_t)rows_count(m->tagged) + 3;
    struct conflict_statement *list = arena_alloc(&c->arena, most * sizeof *list);
    bool first = true;
    buf_json_key(out, "conflicts");
    buf_char(out, '[');
    for (size_t i = 0; i < m->item_count; i++) {
        size_t count;
        call_yield(c);
        if (!collect(c, m, &m->items[i], list, &count))
            continue;
        conflict_sort(list, count);
        buf_text(out, first ? "{" : ",{");
        first = false;
        json_put_text(out, "key", m->items[i].key);
        buf_json_key(out, "statements");
        buf_char(out, '[');
        for (size_t s = 0; s < count; s++) {
            if (s)
                buf_char(out, ',');
            put_statement(out, &list[s]);
        }
        buf_text(out, "]}");
    }
    buf_char(out, ']');
}

/* ---- the response ---- */

/* NULL unless the fact is stored and expires. */
static const char *expiry_of(struct call *c, const struct merge *m, const struct item *item)
{
    if (item->correction || !rows_text(m->facts, item->row, &fact_row.expires_at))
        return NULL;
    return rows_time(m->facts, item->row, &fact_row.expires_at, &c->arena);
}

static void put_item(struct call *c, struct buf *out, const struct merge *m, const struct item *item)
{
    const struct rows *r = m->facts;
    const struct correction_in *corrected = item->correction;
    const int row = item->row;
    buf_char(out, '{');
    json_put_text(out, "key", item->key);
    json_put_text(out, "scope", m->in->scope);
    json_put_raw(out, "value", value_of(m, item));
    json_put_text(out, "source", corrected ? FACT_SESSION_CORRECTION : rows_text(r, row, &fact_row.source));
    json_put_raw(out, "confidence",
                 corrected ? fact_confidence(FACT_SESSION_CORRECTION)
                           : rows_text(r, row, &fact_row.confidence));
    json_put_bool(out, "needs_verification", !corrected && row_bool(r, row, &fact_row.needs_verification));
    json_put_bool(out, "stale", !corrected && row_bool(r, row, &fact_row.stale));
    json_put_time(out, "written_at", corrected ? m->at_us : row_time_us(r, row, &fact_row.written_at, 0));
    json_put_text(out, "expires_at", expiry_of(c, m, item));
    json_put_bool(out, "corrected", corrected != NULL);
    buf_char(out, '}');
}

static void put_items(struct call *c, struct buf *out, const struct merge *m)
{
    buf_json_key(out, "facts");
    buf_char(out, '[');
    for (size_t i = 0; i < m->item_count; i++) {
        if (i)
            buf_char(out, ',');
        put_item(c, out, m, &m->items[i]);
    }
    buf_char(out, ']');
}

static enum err put_response(struct call *c, struct buf *out, const struct merge *m)
{
    buf_char(out, '{');
    json_put_text(out, "scope", m->in->scope);
    json_put_bool(out, "complete", m->complete);
    json_put_bool(out, "stored", field_is_true(m->in->store));
    put_items(c, out, m);
    put_conflicts(c, out, m);
    buf_json_key(out, "memories");
    if (m->search)
        TRY(related_put(c, out, m->search));
    else
        buf_text(out, "null");
    buf_char(out, '}');
    return OK;
}

/* ---- the steps ---- */

static enum err store_corrections(struct call *c, const struct merge *m)
{
    const struct correction_in *corrections = m->in->corrections.items;
    for (size_t i = 0; i < m->in->corrections.count; i++) {
        const struct fact_in in = {
            .key = corrections[i].key,
            .scope = m->in->scope,
            .at = m->in->at,
            .value = corrections[i].value,
            .observation_type = corrections[i].observation_type,
            .source = FACT_CORRECTION,
            .confidence = fact_confidence(FACT_CORRECTION),
            .change = "correct",
            .default_types = policy_default_types(&c->arena),
            .ttl_seconds = FIELD_NO_INT,
        };
        struct rows *r;
        TRY(fact_store(c, &in, &r));
    }
    return OK;
}

/* All corrections are stored, or none. */
static enum err merge_tx(struct call *c, void *arg)
{
    const struct merge *m = arg;
    struct buf out = { .arena = &c->arena };
    if (field_is_true(m->in->store))
        TRY(store_corrections(c, m));
    TRY(put_response(c, &out, m));
    buf_add(call_reply_json(c, 200), out.data, out.len);
    return OK;
}

static enum err merge(struct call *c)
{
    struct merge m = { .in = c->in };
    TRY(check(c, m.in));
    if (!time_text_parse(m.in->at ? m.in->at : c->now, &m.at_us))
        return ERR_INTERNAL;
    TRY(find_facts(c, &m));
    TRY(find_statements(c, &m));
    if (m.in->text) {
        const struct related_in in = {
            .text = m.in->text,
            .as_of = strcmp(m.in->as_of, LATEST) == 0 ? NULL : m.in->as_of,
            .deployment_id = m.in->deployment_id,
            .k = m.in->k,
            .max_tokens = m.in->max_tokens,
        };
        TRY(related_find(c, &in, &m.search));
    }
    TRY(query_tx(c, merge_tx, &m));
    if (m.search)
        related_end(c, m.search);
    return OK;
}

const struct route fact_merge_routes[] = {
    { POST, "/v1/facts/merge", merge, INPUT(merge_fields, struct merge_in), .role = ROLE_READER,
      .waits = true, .models = true },
    END_ROUTES,
};
