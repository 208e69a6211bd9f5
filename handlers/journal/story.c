/* The story of a trade: everything that is stored about it, in the order of time. */
#include "core/journal/story.h"

#include <string.h>

#include "core/base/json_put.h"
#include "core/base/list_text.h"
#include "core/base/sha256.h"
#include "core/base/time_text.h"
#include "handlers/kit/fields.h"
#include "handlers/ledger/context.h"
#include "handlers/routes.h"
#include "server/dispatch/query.h"
#include "server/json/reader.h"

struct story_in {
    const char *id, *as_of;
};

static const struct field story_fields[] = { FIELD_ID(struct story_in), FIELD_AS_OF(struct story_in),
                                             END_FIELDS };

COLUMNS(told, id, deployment_id, skill_id, version, symbol, side, entry_tick_at, entry_price, entry_size_usd,
        entry_reason, entry_snapshot_id, entry_lessons_hash, exit_tick_at, exit_price, exit_reason,
        exit_snapshot_id, realized_pnl_usd, fees_usd, net_pnl_usd, _since, _entry_action, _entry_engine,
        _exit_action, _exit_engine, _note_id, _note_scope, _note_text, _retrievals, _theses, _memories,
        _orders, _observations, _lessons, _notes);
QUERY(trade_story, TRADE_STORY, story_fields, READS(told), .missing = "trade {id}");

/* ---- reading ---- */

static const struct {
    const char *name;
    const struct column *column;
} groups[] = {
    { "retrievals", &told._retrievals },     { "theses", &told._theses },
    { "memories", &told._memories },         { "orders", &told._orders },
    { "observations", &told._observations }, { "lessons", &told._lessons },
    { "reflection_notes", &told._notes },
};

enum { GROUPS = sizeof groups / sizeof *groups };

enum { DETAILS_MAX = 24 };

struct details {
    struct story_detail list[DETAILS_MAX];
    size_t count;
};

/* The value as text. NULL: null, or a list. */
static const char *take_value(struct json_reader *r)
{
    switch (reader_peek(r)) {
    case '"':
        return reader_text(r);
    case 't':
    case 'f':
        return reader_word(r);
    case 'n':
    case '[':
        reader_skip(r);
        return NULL;
    default:
        return reader_lexeme(r);
    }
}

/* The members of an object, and those of the objects in it. */
static void take_details(struct json_reader *r, struct details *d)
{
    if (!reader_object(r))
        return;
    for (const char *name; (name = reader_name(r));)
        if (reader_peek(r) == '{') {
            take_details(r, d);
        } else {
            const char *value = take_value(r);
            if (value && d->count < DETAILS_MAX)
                d->list[d->count++] = (struct story_detail){ name, value };
        }
}

static void read_details(struct arena *arena, struct story_entry *e)
{
    if (!e->data)
        return;
    char *text = arena_text(arena, e->data);
    struct json_reader r = reader_begin_stored(text, strlen(text));
    struct details d = { .count = 0 };
    take_details(&r, &d);
    struct story_detail *details = arena_alloc(arena, (d.count + 1) * sizeof *details);
    memcpy(details, d.list, d.count * sizeof *details);
    e->details = details;
    e->detail_count = d.count;
}

static bool take_member(struct json_reader *r, const char *name, struct arena *arena, struct story_entry *e)
{
    if (strcmp(name, "n") == 0) {
        e->n = reader_count(r);
        return true;
    }
    const char *text = reader_text(r); /* null is skipped */
    if (strcmp(name, "kind") == 0)
        return text && (e->kind = story_kind_find(text));
    if (strcmp(name, "at") == 0)
        return text && time_text_parse(text, &e->at_us);
    if (strcmp(name, "evidence") == 0) {
        if (text && *text)
            e->evidence = list_text_split(arena, text, &e->evidence_count);
        return true;
    }
    const struct {
        const char *name, **out;
    } texts[] = { { "id", &e->id }, { "text", &e->text }, { "ref", &e->ref }, { "data", &e->data } };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(name, texts[i].name) == 0) {
            *texts[i].out = text;
            return true;
        }
    return false;
}

/* Appends an entry to an array that doubles whenever it is full. */
static void append(struct story *s, struct arena *arena, const struct story_entry *e)
{
    enum { FIRST_ROOM = 64 }; /* a power of two, as all later ones */
    const bool full = s->count == 0 || (s->count >= FIRST_ROOM && (s->count & (s->count - 1)) == 0);
    if (full) {
        struct story_entry *more = arena_alloc(arena, (s->count ? 2 * s->count : FIRST_ROOM) * sizeof *more);
        if (s->count)
            memcpy(more, s->entries, s->count * sizeof *more);
        s->entries = more;
    }
    s->entries[s->count++] = *e;
}

static bool take_entries(struct json_reader *r, struct arena *arena, struct story *s)
{
    if (reader_peek(r) == 'n') {
        reader_skip(r);
        return true;
    }
    if (!reader_list(r))
        return false;
    while (reader_item(r)) {
        struct story_entry e = { 0 };
        if (!reader_object(r))
            return false;
        for (const char *name; (name = reader_name(r));)
            if (!take_member(r, name, arena, &e))
                return false;
        read_details(arena, &e);
        if (e.kind && e.id)
            append(s, arena, &e);
    }
    return true;
}

/* Reads {"omitted":…,"items":[…]}. */
static bool read_group(struct arena *arena, const char *json, struct story *s, struct story_omitted *omitted)
{
    char *text = arena_text(arena, json);
    struct json_reader r = reader_begin_stored(text, strlen(text));
    bool good = reader_object(&r);
    for (const char *name; good && (name = reader_name(&r));)
        if (strcmp(name, "omitted") == 0)
            omitted->count = (size_t)reader_count(&r);
        else
            good = take_entries(&r, arena, s);
    return good && reader_ended(&r);
}

static enum err read_groups(struct call *c, const struct rows *r, struct story *s)
{
    struct story_omitted *omitted = arena_zero(&c->arena, GROUPS * sizeof *omitted);
    s->omitted = omitted;
    s->omitted_count = GROUPS;
    for (size_t i = 0; i < GROUPS; i++) {
        omitted[i].name = groups[i].name;
        if (!read_group(&c->arena, rows_text(r, 0, groups[i].column), s, &omitted[i]))
            return ERR_INTERNAL;
    }
    return OK;
}

/* ---- the trade's own entries ---- */

static void add_entry(struct story *s, const char *kind, int64_t at_us, const char *id, const char *text,
                      struct buf *data)
{
    buf_char(data, '}');
    struct story_entry e = {
        .kind = story_kind_find(kind), .at_us = at_us, .id = id, .text = text, .data = buf_string(data)
    };
    read_details(data->arena, &e);
    append(s, data->arena, &e);
}

static void add_tick(struct story *s, struct call *c, const struct rows *r, bool exit)
{
    struct buf data = { .arena = &c->arena };
    buf_char(&data, '{');
    json_put_raw(&data, "price", rows_text(r, 0, exit ? &told.exit_price : &told.entry_price));
    if (exit)
        json_put_raw(&data, "realized_pnl_usd", rows_text(r, 0, &told.realized_pnl_usd));
    else
        json_put_raw(&data, "size_usd", rows_text(r, 0, &told.entry_size_usd));
    json_put_raw(&data, "proposed_action", rows_text(r, 0, exit ? &told._exit_action : &told._entry_action));
    json_put_raw(&data, "engine", rows_text(r, 0, exit ? &told._exit_engine : &told._entry_engine));
    add_entry(s, exit ? "exit" : "entry", exit ? s->trade.exit_us : s->trade.entry_us,
              rows_text(r, 0, exit ? &told.exit_snapshot_id : &told.entry_snapshot_id),
              exit ? s->trade.exit_reason : s->trade.entry_reason, &data);
}

static void add_lessons(struct story *s, struct call *c, const struct rows *r)
{
    const char *hash = rows_text(r, 0, &told.entry_lessons_hash);
    struct buf data = { .arena = &c->arena };
    if (!hash)
        return;
    buf_char(&data, '{');
    json_put_text(&data, "lessons_hash", hash);
    json_put_text(&data, "scope", rows_text(r, 0, &told._note_scope));
    add_entry(s, "lessons", s->trade.entry_us, rows_text(r, 0, &told._note_id),
              rows_text(r, 0, &told._note_text), &data);
}

/* What the context of the entry said, by its hash: the text can be reproduced. */
static enum err add_context(struct story *s, struct call *c, const struct rows *r)
{
    const char *snapshot = rows_text(r, 0, &told.entry_snapshot_id);
    struct buf text = { .arena = &c->arena }, data = text;
    char hash[SHA256_HEX_SIZE];
    size_t tokens;
    if (!snapshot)
        return OK;
    enum err err = context_of_snapshot(c, snapshot, &text, &tokens);
    if (err == ERR_NOT_FOUND) { /* the trade is older than its snapshots */
        problem_clear(&c->problem);
        return OK;
    }
    TRY(err);
    sha256_hex(buf_string(&text), text.len, hash);
    buf_char(&data, '{');
    json_put_text(&data, "sha256", hash);
    json_put_int(&data, "tokens", (int64_t)tokens);
    add_entry(s, "context", s->trade.entry_us, snapshot, NULL, &data);
    return OK;
}

/* ---- the route ---- */

static enum err read_story(struct call *c, const struct rows *r, struct story *s)
{
    s->trade = (struct story_trade){
        .id = rows_text(r, 0, &told.id),
        .deployment_id = rows_text(r, 0, &told.deployment_id),
        .skill_id = rows_text(r, 0, &told.skill_id),
        .version = rows_text(r, 0, &told.version),
        .symbol = rows_text(r, 0, &told.symbol),
        .side = rows_text(r, 0, &told.side),
        .entry_us = row_time_us(r, 0, &told.entry_tick_at, 0),
        .exit_us = row_time_us(r, 0, &told.exit_tick_at, 0),
        .exited = rows_text(r, 0, &told.exit_tick_at) != NULL,
        .entry_reason = rows_text(r, 0, &told.entry_reason),
        .exit_reason = rows_text(r, 0, &told.exit_reason),
        .net_pnl_usd = rows_text(r, 0, &told.net_pnl_usd),
        .fees_usd = rows_text(r, 0, &told.fees_usd),
    };
    TRY(read_groups(c, r, s));
    add_lessons(s, c, r);
    TRY(add_context(s, c, r));
    add_tick(s, c, r, false);
    if (s->trade.exited)
        add_tick(s, c, r, true);
    story_sort(s);
    return OK;
}

static void put_time(struct buf *out, const char *key, struct call *c, const struct rows *r,
                     const struct column *column)
{
    json_put_text(out, key, rows_text(r, 0, column) ? rows_time(r, 0, column, &c->arena) : NULL);
}

static void put_window(struct buf *out, struct call *c, const struct rows *r)
{
    buf_json_key(out, "window");
    buf_char(out, '{');
    put_time(out, "since", c, r, &told._since);
    put_time(out, "until", c, r, &told.exit_tick_at);
    buf_char(out, '}');
}

static enum err get_story(struct call *c)
{
    struct rows *r;
    struct story story = { .count = 0 };
    TRY(query_one(c, &trade_story, c->in, NULL, &r));
    TRY(read_story(c, r, &story));
    const struct story_summary summary = story_summarize(&story);
    if (call_prefers(c, "text/markdown")) {
        struct buf text = { .arena = &c->arena };
        story_markdown(&text, &story, &summary);
        return call_reply_text(c, 200, "text/markdown; charset=utf-8", buf_string(&text));
    }
    struct buf *out = call_reply_json(c, 200);
    buf_text(out, "{\"trade\":");
    rows_json(out, r, 0);
    put_window(out, c, r);
    story_members(out, &story, &summary);
    buf_char(out, '}');
    return OK;
}

const struct route story_routes[] = {
    { GET, "/v1/trade_history/{id}/story", get_story, INPUT(story_fields, struct story_in),
      .role = ROLE_READER, .waits = true },
    END_ROUTES,
};
