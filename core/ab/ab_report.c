/* Collects the input of a report: trades, and the notes that their lessons came from. */
#include "core/ab/ab_report.h"

#include <stdlib.h>
#include <string.h>

#include "core/ab/ab_internal.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/reflect/lessons_hash.h"

/* ---- names ---- */

static bool is_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* A hash whose first bits are well mixed: they are the path in the tree. */
static uint64_t path_of(const char *text)
{
    uint64_t hash = hash_bytes(text ? text : "", text ? strlen(text) + 1 : 0, HASH_SEED);
    return (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
}

static void add_chunk(struct arena *arena, struct ab_names *n)
{
    const size_t count = n->count / AB_CHUNK;
    if (count == n->chunks_cap) {
        struct ab_names_chunk **old = n->chunks;
        n->chunks_cap = count ? count * 2 : 1;
        n->chunks = arena_alloc(arena, n->chunks_cap * sizeof(*n->chunks));
        if (count)
            memcpy(n->chunks, old, count * sizeof(*old));
    }
    n->chunks[count] = arena_alloc(arena, sizeof **n->chunks);
    n->chunks[count]->times = n->timed ? arena_zero(arena, AB_CHUNK * sizeof(struct ab_times)) : NULL;
}

static int32_t add_name(struct arena *arena, struct ab_names *n, const char *text, uint32_t hash)
{
    if (n->count % AB_CHUNK == 0)
        add_chunk(arena, n);
    const int32_t number = (int32_t)n->count++;
    *ab_named(n, number) = (struct ab_named){ text ? arena_text(arena, text) : NULL, hash, { 0 } };
    return number;
}

int32_t ab_report_name(struct arena *arena, struct ab_names *n, const char *text, bool add)
{
    if (n->count && is_same(ab_named(n, n->last)->text, text))
        return n->last;
    uint64_t way = path_of(text);
    const uint32_t hash = (uint32_t)(way >> 16);
    int32_t *end = NULL;
    for (int32_t at = 0; n->count && (!end || (at = *end)); way <<= 2) {
        struct ab_named *named = ab_named(n, at);
        if (named->hash == hash && is_same(named->text, text))
            return n->last = at;
        end = &named->below[way >> 62];
    }
    if (!add)
        return AB_NOTHING;
    n->last = add_name(arena, n, text, hash);
    if (end)
        *end = n->last;
    return n->last;
}

/* ---- trades ---- */

struct ab_report *ab_report_open(const char *skill_id, const char *as_of)
{
    struct ab_report *r = memory_zero(1, sizeof *r);
    r->skill_id = arena_text(&r->arena, skill_id);
    r->as_of = as_of ? arena_text(&r->arena, as_of) : NULL;
    r->json.arena = &r->arena;
    r->lessons.timed = true;
    return r;
}

void ab_report_release(struct ab_report *r)
{
    arena_release(&r->arena);
    arena_release(&r->texts_arena);
    free(r);
}

static void take_times(struct ab_times *t, const struct ab_trade *trade)
{
    const int64_t us = trade->entry_us;
    t->realized_usd += trade->realized_usd;
    t->first_us = t->trades && t->first_us < us ? t->first_us : us;
    t->last_us = t->trades && t->last_us > us ? t->last_us : us;
    t->trades++;
}

void ab_report_trade(struct ab_report *r, const struct ab_trade *t)
{
    if (!r->chunks || r->chunks->count == AB_CHUNK) {
        struct ab_chunk *chunk = arena_alloc(&r->arena, sizeof *chunk);
        chunk->next = r->chunks;
        chunk->count = 0;
        r->chunks = chunk;
    }
    struct ab_row *row = &r->chunks->rows[r->chunks->count++];
    row->revision = ab_report_name(&r->arena, &r->lessons, t->lessons_hash, true);
    row->keys[AB_ALL] = ab_report_name(&r->arena, &r->keys[AB_ALL], NULL, true);
    row->keys[AB_BY_REGIME] = ab_report_name(&r->arena, &r->keys[AB_BY_REGIME], t->regime, true);
    row->keys[AB_BY_SYMBOL] = ab_report_name(&r->arena, &r->keys[AB_BY_SYMBOL], t->symbol, true);
    memcpy(row->values, t->values, sizeof row->values);
    take_times(ab_times(&r->lessons, row->revision), t);
    r->trades++;
}

size_t ab_report_trades(const struct ab_report *r)
{
    return r->trades;
}

/* ---- notes ---- */

static void add_note_id(struct ab_report *r, struct ab_revision *v, const char *id)
{
    if (v->notes < AB_NOTE_IDS_MAX)
        v->note_ids[v->notes] = arena_text(&r->arena, id);
    v->notes++;
}

/* The revision of this hash, or NULL if it is not in the response. */
static struct ab_revision *shown_revision(struct ab_report *r, const char *hash)
{
    const int32_t number = r->shown ? ab_report_name(&r->arena, &r->lessons, hash, false) : AB_NOTHING;
    const int32_t rank = number == AB_NOTHING ? AB_NOTHING : ab_times(&r->lessons, number)->rank;
    return rank == AB_NOTHING ? NULL : &r->revisions[rank];
}

static void explain(struct ab_report *r, struct ab_revision *v, int32_t source, slot_set suppressed)
{
    r->unexplained--;
    v->known = true;
    v->source = source;
    v->suppressed = suppressed;
}

size_t ab_report_hashes(const struct ab_report *r, const char *hashes[AB_REVISIONS_MAX])
{
    size_t count = 0;
    for (size_t rank = 0; rank < r->shown; rank++)
        if (r->revisions[rank].hash)
            hashes[count++] = r->revisions[rank].hash;
    return count;
}

void ab_report_note(struct ab_report *r, const struct ab_note *n)
{
    struct ab_revision *v = shown_revision(r, n->hash);
    if (!v)
        return;
    if (!v->known)
        explain(r, v, AB_NOTHING, n->suppressed);
    add_note_id(r, v, n->id);
}

bool ab_report_unexplained(const struct ab_report *r)
{
    return r->unexplained;
}

void ab_report_text(struct ab_report *r, const struct ab_note *n)
{
    const size_t before = r->tried.count;
    struct ab_text *text = arena_zero(&r->texts_arena, sizeof *text);
    text->source = ab_report_name(&r->arena, &r->tried, n->hash, true);
    text->id = arena_text(&r->texts_arena, n->id);
    text->suppressed = n->suppressed;
    if (r->tried.count > before)
        text->text = arena_text(&r->texts_arena, n->text);
    *(r->last_text ? &r->last_text->next : &r->first_text) = text;
    r->last_text = text;
}

static void try_without(struct ab_report *r, const struct ab_text *t, slot_set left_out)
{
    char hash[LESSONS_HASH_SIZE];
    struct arena arena = { 0 };
    const char *rest = reflect_note_without(&arena, t->text, left_out);
    lessons_hash(rest, strlen(rest), hash);
    struct ab_revision *v = shown_revision(r, hash);
    if (v && !v->known)
        explain(r, v, t->source, t->suppressed | left_out);
    arena_release(&arena);
}

/* Fewer slots first: suppressing a slot that a text does not have changes nothing. */
static void try_text(struct ab_report *r, const struct ab_text *t)
{
    const slot_set all = (1u << REFLECT_SLOTS) - 1;
    for (int slots = 1; slots < REFLECT_SLOTS; slots++)
        for (slot_set left_out = 1; left_out < all && r->unexplained; left_out++)
            if (__builtin_popcount(left_out) == slots && !(left_out & t->suppressed))
                try_without(r, t, left_out);
}

static void recognise(struct ab_report *r)
{
    struct ab_text *t = r->first_text;
    if (t->text)
        try_text(r, t);
    for (size_t rank = 0; rank < r->shown; rank++) {
        struct ab_revision *v = &r->revisions[rank];
        if (v->known && v->source == t->source)
            add_note_id(r, v, t->id);
    }
    if ((r->first_text = t->next))
        return;
    r->last_text = NULL;
    arena_release(&r->texts_arena);
}

/* ---- steps ---- */

void ab_report_compute(struct ab_report *r)
{
    r->computing = true;
}

bool ab_report_step(struct ab_report *r)
{
    if (!r->ordered)
        ab_compute_order(r);
    else if (r->first_text)
        recognise(r);
    else if (r->computing)
        return ab_compute(r);
    return r->ordered && !r->first_text && !r->computing;
}

const struct buf *ab_report_json(const struct ab_report *r)
{
    return &r->json;
}
