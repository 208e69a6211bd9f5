/* Events of the journals: their list, and the check of their chain. */
#include <stdio.h>
#include <string.h>

#include "core/base/json_put.h"
#include "core/journal/journal_names.h"
#include "handlers/journal/journal.h"
#include "handlers/kit/export.h"
#include "handlers/kit/pages.h"
#include "handlers/routes.h"

enum {
    WALK_MOST = 1000, /* events of a journal that are checked in one statement */
    AROUND = 10000,   /* events before and after a broken link that may explain it */
    HASH_SIZE = 65,
    ID_SIZE = 37,
};

struct event_in {
    const char *deployment_id, *journal, *kind, *symbol, *subject_id, *agent_name, *model_call_id;
    const char *since, *until, *as_of, *format;
    const char *journal_id; /* of the deployment, or the owner's own; NULL: all journals */
    int64_t after_seq, max_events, limit;
    struct cursor_values cursor;
};

/* The parameters of the statements that walk a chain. */
struct walk_in {
    const char *journal_id, *before;
    int64_t after_seq, last_seq, seq, most, around;
};

/* clang-format off */
#define E(from, kind, member, ...) FIELD(from, kind, struct event_in, member, __VA_ARGS__)
#define JOURNAL \
    E(FROM_QUERY, KIND_CHOICE, journal, .choices = CHOICES("owner")), \
    E(COMPUTED, KIND_UUID, journal_id)
#define PAGE FIELD_PAGE(struct event_in)
#define AFTER_SEQ E(FROM_QUERY, KIND_INT, after_seq, .min = 0, .max = -1)
#define FILTER \
    JOURNAL, \
    JOURNAL_FILTER(struct event_in), \
    JOURNAL_FILTER_AUTHOR(struct event_in), \
    E(FROM_QUERY, KIND_CHOICE, kind, .choices = journal_names_events), \
    E(FROM_QUERY, KIND_UUID, subject_id), \
    AFTER_SEQ
static const struct field list_fields[] = { FILTER, PAGE, END_FIELDS };
static const struct field export_fields[] = { FILTER, FIELD_EXPORT(struct event_in), END_FIELDS };
static const struct field verify_fields[] = {
    E(FROM_QUERY, KIND_UUID, deployment_id), JOURNAL, AFTER_SEQ,
    E(FROM_QUERY, KIND_INT, max_events, .min = 1, .max = 100000, .fallback = "100000"), PAGE, END_FIELDS,
};
#define W(kind, member) FIELD(COMPUTED, kind, struct walk_in, member)
static const struct field walk_fields[] = {
    W(KIND_UUID, journal_id), W(KIND_LINE, before), W(KIND_INT, after_seq), W(KIND_INT, last_seq), W(KIND_INT, seq), W(KIND_INT, most), W(KIND_INT, around),
    END_FIELDS,
};
/* clang-format on */

COLUMNS(listed, journal_id);
COLUMNS(head, deployment_id, seq, hash, pending, extra_seq, extra_id, extra_hash, extra_fits, after_hash);
COLUMNS(page, seq, id, hash, broken_seq, broken_id, broken_hash, seq_before, before, expected);
COLUMNS(broken, what, inserted_seq, inserted_id, inserted_hash);
QUERY(event_list, MEMORY_EVENT_LIST, list_fields);
QUERY(event_list_of_journal, MEMORY_EVENT_LIST_OF_JOURNAL, list_fields);
QUERY(event_list_of_subject, MEMORY_EVENT_LIST_OF_SUBJECT, list_fields);
QUERY(event_export, MEMORY_EVENT_LIST, export_fields);
QUERY(event_export_of_journal, MEMORY_EVENT_LIST_OF_JOURNAL, export_fields);
QUERY(event_export_of_subject, MEMORY_EVENT_LIST_OF_SUBJECT, export_fields);
QUERY(journal_list, JOURNAL_LIST, verify_fields, READS(listed));
QUERY(journal_head, JOURNAL_HEAD, walk_fields, READS(head), .missing = "deployment {journal_id}");
QUERY(journal_walk, JOURNAL_WALK, walk_fields, READS(page));
QUERY(journal_break, JOURNAL_BREAK, walk_fields, READS(broken));

/* ---- what all routes begin with ---- */

static enum err seal(struct call *c, struct event_in *in)
{
    TRY(journal_choose(c, in->deployment_id, in->journal, &in->journal_id));
    return journal_seal(c, in->journal_id);
}

/* ---- the list ---- */

/* Each of the three has an index in its order. */
struct lists {
    const struct query *all, *of_journal, *of_subject;
};

static const struct query *choose(const struct lists *lists, const struct event_in *in)
{
    return in->subject_id ? lists->of_subject : in->journal_id ? lists->of_journal : lists->all;
}

static enum err list_events(struct call *c)
{
    static const struct lists lists = { &event_list, &event_list_of_journal, &event_list_of_subject };
    struct event_in *in = c->in;
    TRY(seal(c, in));
    return query_reply(c, 200, choose(&lists, in), in);
}

static enum err export_events(struct call *c)
{
    static const struct lists lists = { &event_export, &event_export_of_journal, &event_export_of_subject };
    struct event_in *in = c->in;
    TRY(seal(c, in));
    return export_rows(c, choose(&lists, in));
}

/* ---- the check ---- */

struct broken_link {
    const char *what; /* NULL: the chain is whole */
    int64_t seq;
    const char *id, *expected, *found;
};

/* The journal from the last event that was checked on. */
struct walk {
    struct call *c;
    struct arena *arena;                 /* of the journal */
    struct walk_in at;                   /* .after_seq and .before are of the last event that holds */
    char before[HASH_SIZE], id[ID_SIZE]; /* of that event */
    int64_t checked;                     /* events that hold */
    int64_t left;                        /* events that this request may still check */
    bool partial;                        /* some were left for the next request */
    struct broken_link broken;
};

static void break_at(struct walk *w, const char *what, int64_t seq, const char *id, const char *expected,
                     const char *found)
{
    w->broken = (struct broken_link){ what, seq, id, expected, found };
}

/* Finds out what became of the event whose hash is not what the chain expects. */
static enum err explain_hash(struct walk *w, const struct rows *p)
{
    const int64_t seq = row_int(p, 0, &page.broken_seq, 0);
    const struct walk_in in = { .journal_id = w->at.journal_id,
                                .before = rows_text(p, 0, &page.before),
                                .seq = seq,
                                .last_seq = w->at.last_seq,
                                .around = AROUND };
    struct rows *r;
    TRY(query_rows(w->c, &journal_break, &in, w->arena, &r));
    const char *what = rows_text(r, 0, &broken.what);
    const char *inserted = row_copy(r, 0, &broken.inserted_id, w->arena);
    if (inserted)
        break_at(w, what, row_int(r, 0, &broken.inserted_seq, 0), inserted, NULL,
                 row_copy(r, 0, &broken.inserted_hash, w->arena));
    else
        break_at(w, what, seq, row_copy(p, 0, &page.broken_id, w->arena),
                 row_copy(p, 0, &page.expected, w->arena), row_copy(p, 0, &page.broken_hash, w->arena));
    return OK;
}

static enum err explain(struct walk *w, const struct rows *p)
{
    const int64_t seq = row_int(p, 0, &page.broken_seq, 0), before = row_int(p, 0, &page.seq_before, 0);
    w->checked += before - w->at.after_seq;
    if (seq == before + 1)
        return explain_hash(w, p);
    break_at(w, "missing", before + 1, NULL, NULL, NULL);
    return OK;
}

/* Checks the next events. *more stays true while there are some and the chain holds. */
static enum err walk_page(struct walk *w, bool *more)
{
    struct arena step = { 0 };
    struct rows *p;
    w->at.most = w->left < WALK_MOST ? w->left : WALK_MOST;
    enum err err = query_rows(w->c, &journal_walk, &w->at, &step, &p);
    *more = err == OK && rows_count(p) > 0;
    if (*more && rows_text(p, 0, &page.broken_seq)) {
        err = explain(w, p);
        *more = false;
    } else if (*more) {
        const int64_t seq = row_int(p, 0, &page.seq, 0);
        w->checked += seq - w->at.after_seq;
        w->left -= seq - w->at.after_seq;
        w->at.after_seq = seq;
        snprintf(w->before, sizeof w->before, "%s", rows_text(p, 0, &page.hash));
        snprintf(w->id, sizeof w->id, "%s", rows_text(p, 0, &page.id));
    }
    arena_release(&step);
    return err;
}

/* What the end of the journal says, once all events up to it hold. If the end is the hash of the event behind
 * it, which does not fit there, the last one was inserted before that. */
static void check_end(struct walk *w, const struct rows *h)
{
    const char *end = rows_text(h, 0, &head.hash), *extra = rows_text(h, 0, &head.extra_hash);
    const char *id = *w->id ? w->id : NULL;
    const bool ends_behind = extra && strcmp(extra, end) == 0 && !row_bool(h, 0, &head.extra_fits);
    if (w->at.after_seq < w->at.last_seq)
        break_at(w, "truncated", w->at.after_seq + 1, NULL, end, w->at.before);
    else if (strcmp(w->at.before, end) != 0)
        break_at(w, ends_behind ? "inserted" : "changed", w->at.last_seq, id, end, w->at.before);
    else if (extra)
        break_at(w, "inserted", row_int(h, 0, &head.extra_seq, 0), rows_text(h, 0, &head.extra_id), NULL,
                 extra);
}

static void put_journal(struct buf *out, const struct walk *w, const struct rows *h)
{
    const struct broken_link *b = &w->broken;
    buf_char(out, '{');
    json_put_text(out, "deployment_id", rows_text(h, 0, &head.deployment_id));
    json_put_int(out, "events", w->at.last_seq);
    json_put_int(out, "checked", w->checked);
    json_put_int(out, "pending", row_int(h, 0, &head.pending, 0));
    json_put_raw(out, "ok", b->what ? "false" : w->partial ? NULL : "true");
    json_put_raw(out, "next_after_seq",
                 w->partial ? arena_fmt(w->arena, "%lld", (long long)w->at.after_seq) : NULL);
    json_put_text(out, "head", rows_text(h, 0, &head.hash));
    buf_json_key(out, "first_broken");
    if (b->what) {
        buf_char(out, '{');
        json_put_int(out, "seq", b->seq);
        json_put_text(out, "id", b->id);
        json_put_text(out, "what", b->what);
        json_put_text(out, "expected", b->expected);
        json_put_text(out, "found", b->found);
        buf_char(out, '}');
    } else {
        buf_text(out, "null");
    }
    buf_char(out, '}');
}

/* The walk begins at the start of the journal, or behind the event at after_seq. */
static void start_walk(struct walk *w, const struct rows *h)
{
    const char *hash = rows_text(h, 0, &head.after_hash);
    w->at.last_seq = row_int(h, 0, &head.seq, 0);
    w->at.before = w->before;
    memset(w->before, '0', HASH_SIZE - 1);
    if (hash)
        snprintf(w->before, sizeof w->before, "%s", hash);
    else if (w->at.after_seq)
        break_at(w, w->at.after_seq > w->at.last_seq ? "truncated" : "missing", w->at.after_seq, NULL, NULL,
                 NULL);
}

/* Walks a journal in pages, so that memory does not grow with it. Appends the result. *left counts the events
 * that the request may still check. */
static enum err verify_journal(struct call *c, struct arena *arena, const struct walk_in *from, int64_t *left,
                               struct buf *out)
{
    struct walk w = { .c = c, .arena = arena, .at = *from, .left = *left };
    struct rows *h, *h_now;
    TRY(query_one(c, &journal_head, &w.at, arena, &h));
    start_walk(&w, h);
    for (bool more = true; more && !w.broken.what && w.left;) {
        call_yield(c);
        TRY(walk_page(&w, &more));
    }
    *left = w.left;
    w.partial = !w.broken.what && !w.left && w.at.after_seq < w.at.last_seq;
    if (!w.broken.what && !w.partial)
        check_end(&w, h);
    if (w.broken.what) /* it may have been deleted meanwhile */
        TRY(query_one(c, &journal_head, &w.at, arena, &h_now));
    put_journal(out, &w, h);
    return OK;
}

/* The items of the reply, in the order of the journals listed. */
struct verified {
    struct rows *journals;
    int count;
    struct buf items;
};

static enum err verify_listed(struct call *c, const struct event_in *in, struct verified *v)
{
    TRY(query_rows(c, &journal_list, in, NULL, &v->journals));
    const int listed_count = rows_count(v->journals);
    const int count = listed_count > in->limit ? (int)in->limit : listed_count;
    for (int64_t left = in->max_events; v->count < count && left; v->count++) {
        const struct walk_in from = { .journal_id = rows_text(v->journals, v->count, &listed.journal_id) };
        struct arena arena = { 0 };
        struct buf item = { .arena = &arena };
        enum err err = verify_journal(c, &arena, &from, &left, &item);
        if (err == OK)
            buf_fmt(&v->items, "%s%s", v->items.len ? "," : "", buf_string(&item));
        arena_release(&arena);
        if (err == ERR_NOT_FOUND) /* its deployment was deleted meanwhile */
            problem_clear(&c->problem);
        else
            TRY(err);
    }
    return OK;
}

static void put_cursor(struct call *c, struct buf *out, const struct verified *v)
{
    struct cursor_values values;
    if (!v->journals || rows_count(v->journals) == v->count) {
        buf_text(out, "null");
        return;
    }
    rows_cursor(v->journals, v->count - 1, &c->arena, &values);
    buf_char(out, '"');
    cursor_encode(out, &values, c->cursor_scope);
    buf_char(out, '"');
}

static enum err verify_events(struct call *c)
{
    struct event_in *in = c->in;
    struct verified v = { .items.arena = &c->arena };
    TRY(seal(c, in));
    const struct walk_in from = { .journal_id = in->journal_id,
                                  .after_seq = in->after_seq == FIELD_NO_INT ? 0 : in->after_seq };
    if (!in->journal_id && from.after_seq)
        return problem_field(&c->problem, "after_seq", FAULT_NOT_TOGETHER,
                             "is a place in one journal; name it with deployment_id or journal");
    if (in->journal_id)
        TRY(verify_journal(c, &c->arena, &from, &in->max_events, &v.items));
    else
        TRY(verify_listed(c, in, &v));
    struct buf *out = call_reply_json(c, 200);
    buf_fmt(out, "{\"items\":[%s],\"next_cursor\":", buf_string(&v.items));
    put_cursor(c, out, &v);
    buf_char(out, '}');
    return OK;
}

#define IN(table) INPUT(table, struct event_in)

const struct route event_routes[] = {
    { GET, "/v1/memory_events", list_events, IN(list_fields), .role = ROLE_READER, .waits = true },
    { GET, "/v1/memory_events/export", export_events, IN(export_fields), .role = ROLE_READER, .waits = true },
    { GET, "/v1/memory_events/verify", verify_events, IN(verify_fields), .role = ROLE_READER, .waits = true },
    END_ROUTES,
};
