/* Computing a report: its groups, their statistics and their comparisons. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/ab/ab_internal.h"

/* ---- the revisions ---- */

enum { LOOKS = 4096 }; /* names or trades per step */

/* By bytes; NULL comes last. */
static int by_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) : (a == NULL) - (b == NULL);
}

static bool is_later(const struct ab_report *r, int32_t a, int32_t b)
{
    const int64_t x = ab_times(&r->lessons, a)->first_us, y = ab_times(&r->lessons, b)->first_us;
    return x != y ? x > y : by_text(ab_named(&r->lessons, a)->text, ab_named(&r->lessons, b)->text) > 0;
}

/* Inserts it among the latest revisions, in order. If there are too many, the earliest is dropped. */
static void take_latest(struct ab_report *r, int32_t number)
{
    if (r->shown == AB_REVISIONS_MAX) {
        r->omitted++;
        if (!is_later(r, number, r->order[0]))
            return;
        memmove(r->order, r->order + 1, --r->shown * sizeof *r->order);
    }
    size_t at = r->shown++;
    for (; at && is_later(r, r->order[at - 1], number); at--)
        r->order[at] = r->order[at - 1];
    r->order[at] = number;
}

static void show(struct ab_report *r)
{
    r->revisions = arena_zero(&r->arena, (r->shown + 1) * sizeof *r->revisions);
    for (size_t rank = 0; rank < r->shown; rank++) {
        struct ab_times *t = ab_times(&r->lessons, r->order[rank]);
        struct ab_revision *v = &r->revisions[rank];
        t->rank = (int32_t)rank;
        v->hash = ab_named(&r->lessons, r->order[rank])->text;
        v->first_us = t->first_us;
        v->last_us = t->last_us;
        v->trades = t->trades;
        v->realized_usd = t->realized_usd;
        v->source = AB_NOTHING;
        r->kept += v->trades;
        r->unexplained += v->hash != NULL;
    }
    r->ordered = true;
}

void ab_compute_order(struct ab_report *r)
{
    for (int i = 0; i < LOOKS && r->looked_at < r->lessons.count; i++) {
        const int32_t number = (int32_t)r->looked_at++;
        ab_times(&r->lessons, number)->rank = AB_NOTHING;
        take_latest(r, number);
    }
    if (r->looked_at == r->lessons.count)
        show(r);
}

/* ---- the groups ---- */

static void *numbers(struct ab_report *r, size_t count, size_t size)
{
    return arena_alloc(&r->arena, (count + 1) * size);
}

static bool make_room(struct ab_report *r)
{
    r->rows = numbers(r, r->kept, sizeof *r->rows);
    r->scratch = numbers(r, r->kept, sizeof *r->scratch);
    size_t most = 0;
    for (int d = 0; d < AB_DIMENSIONS; d++) {
        struct ab_groups *g = &r->groups[d];
        const size_t keys = r->keys[d].count;
        most = keys > most ? keys : most;
        for (int m = 0; m < AB_METRICS; m++)
            g->values[m] = numbers(r, r->kept, sizeof *g->values[m]);
        g->of_key = numbers(r, keys, sizeof *g->of_key);
        g->latest = numbers(r, keys, sizeof *g->latest);
        memset(g->of_key, 0xff, keys * sizeof *g->of_key);
        memset(g->latest, 0xff, keys * sizeof *g->latest);
    }
    r->counted = numbers(r, most < r->kept ? most : r->kept, sizeof *r->counted);
    r->next = numbers(r, r->shown, sizeof *r->next);
    for (size_t rank = 0, at = 0; rank < r->shown; at += r->revisions[rank++].trades)
        r->next[rank] = at;
    r->chunk = r->chunks;
    return true;
}

/* Places the rows of each revision next to each other. */
static bool place_rows(struct ab_report *r)
{
    for (size_t n = 0; n < LOOKS && r->chunk; n += AB_CHUNK, r->chunk = r->chunk->next)
        for (size_t i = 0; i < r->chunk->count; i++) {
            const int32_t rank = ab_times(&r->lessons, r->chunk->rows[i].revision)->rank;
            if (rank != AB_NOTHING)
                r->rows[r->next[rank]++] = &r->chunk->rows[i];
        }
    return !r->chunk;
}

static struct ab_group *group_new(struct ab_report *r, struct ab_groups *g)
{
    if (g->count == g->cap) {
        struct ab_group *old = g->items;
        g->cap = g->cap ? g->cap * 2 : 64;
        g->items = numbers(r, g->cap, sizeof *g->items);
        if (g->count)
            memcpy(g->items, old, g->count * sizeof *old);
    }
    struct ab_group *group = &g->items[g->count++];
    *group = (struct ab_group){ .before = AB_NOTHING };
    for (int m = 0; m < AB_METRICS; m++)
        group->of[m] = (struct ab_measure){ .difference = NAN, .p = NAN, .corrected = NAN };
    return group;
}

/* One revision by one dimension. */
struct part {
    struct ab_revision *revision;
    const struct ab_row *const *rows;
    size_t rank;
    enum ab_dimension d;
    struct ab_groups *groups;
};

/* The end of the next step over `count` items. */
static size_t piece_end(const struct ab_report *r, size_t count)
{
    return count - r->piece_at < LOOKS ? count : r->piece_at + LOOKS;
}

/* Finds the keys of these rows and counts their trades. `of_key` has the index of each key meanwhile. */
static bool count_keys(struct ab_report *r, const struct part *p)
{
    int32_t *number = p->groups->of_key;
    const size_t end = piece_end(r, p->revision->trades);
    if (!r->piece_at)
        r->counted_keys = r->top_keys = 0;
    for (; r->piece_at < end; r->piece_at++) {
        const int32_t key = p->rows[r->piece_at]->keys[p->d];
        if (number[key] == AB_NOTHING) {
            r->counted[r->counted_keys] = (struct ab_counted){ 0, ab_named(&r->keys[p->d], key)->text, key };
            number[key] = (int32_t)r->counted_keys++;
        }
        r->counted[number[key]].trades++;
    }
    return end == p->revision->trades;
}

static bool comes_before(const struct ab_counted *a, const struct ab_counted *b)
{
    return a->trades != b->trades ? a->trades > b->trades : by_text(a->name, b->name) < 0;
}

/* Picks the keys with the most trades. Resets `of_key`. */
static bool pick_keys(struct ab_report *r, const struct part *p)
{
    const size_t end = piece_end(r, r->counted_keys);
    for (; r->piece_at < end; r->piece_at++) {
        const struct ab_counted *one = &r->counted[r->piece_at];
        p->groups->of_key[one->key] = AB_NOTHING;
        if (r->top_keys == AB_KEYS_MAX && !comes_before(one, &r->top[AB_KEYS_MAX - 1]))
            continue;
        size_t at = r->top_keys < AB_KEYS_MAX ? r->top_keys++ : AB_KEYS_MAX - 1;
        for (; at && comes_before(one, &r->top[at - 1]); at--)
            r->top[at] = r->top[at - 1];
        r->top[at] = *one;
    }
    return end == r->counted_keys;
}

static bool make_groups(struct ab_report *r, const struct part *p)
{
    struct ab_groups *g = p->groups;
    p->revision->group[p->d] = g->count;
    p->revision->groups[p->d] = r->top_keys;
    p->revision->omitted[p->d] = r->counted_keys - r->top_keys;
    for (size_t i = 0; i < r->top_keys; i++) {
        struct ab_group *group = group_new(r, g);
        group->rank = (int32_t)p->rank;
        group->key = r->top[i].key;
        group->trades = r->top[i].trades;
        group->before = ab_enough(group) ? g->latest[group->key] : AB_NOTHING;
        for (int m = 0; m < AB_METRICS; m++) {
            group->of[m].start = g->placed[m];
            g->placed[m] += group->trades;
        }
        g->of_key[group->key] = (int32_t)(g->count - 1);
    }
    return true;
}

/* Copies the values into the groups, one group after the other. Unknown values are left out. */
static bool fill_groups(struct ab_report *r, const struct part *p)
{
    struct ab_groups *g = p->groups;
    const size_t end = piece_end(r, p->revision->trades);
    for (; r->piece_at < end; r->piece_at++) {
        const struct ab_row *row = p->rows[r->piece_at];
        const int32_t number = g->of_key[row->keys[p->d]];
        struct ab_group *group = number == AB_NOTHING ? NULL : &g->items[number];
        for (int m = 0; group && m < AB_METRICS; m++)
            if (!isnan(row->values[m]))
                g->values[m][group->of[m].start + group->of[m].count++] = row->values[m];
    }
    return end == p->revision->trades;
}

static bool close_groups(struct ab_report *r, const struct part *p)
{
    (void)r;
    struct ab_groups *g = p->groups;
    for (size_t i = p->revision->group[p->d]; i < g->count; i++) {
        g->of_key[g->items[i].key] = AB_NOTHING;
        if (ab_enough(&g->items[i]))
            g->latest[g->items[i].key] = (int32_t)i;
    }
    return true;
}

static bool group_next(struct ab_report *r)
{
    static bool (*const pieces[])(struct ab_report *r, const struct part *p) = {
        count_keys, pick_keys, make_groups, fill_groups, close_groups,
    };
    const size_t rank = r->at / AB_DIMENSIONS;
    const enum ab_dimension d = (enum ab_dimension)(r->at % AB_DIMENSIONS);
    if (rank == r->shown)
        return true;
    struct ab_revision *v = &r->revisions[rank];
    /* All rows are placed, so `next` is one past the last row of each revision. */
    const struct part p = { v, r->rows + (r->next[rank] - v->trades), rank, d, &r->groups[d] };
    if (!pieces[r->piece](r, &p))
        return false;
    r->piece_at = 0;
    if (++r->piece == sizeof pieces / sizeof *pieces) {
        r->piece = 0;
        r->at++;
    }
    return false;
}

/* ---- their statistics ---- */

/* One metric of one group. */
struct measured {
    const struct ab_groups *groups;
    const struct ab_group *group;
    struct ab_measure *of;
    size_t metric;
    double *values; /* the group's */
};

/* The current measure, of any dimension. False: there are no more. */
static bool measure_at(const struct ab_report *r, struct measured *out)
{
    size_t at = r->at / AB_METRICS;
    const size_t metric = r->at % AB_METRICS;
    for (int d = 0; d < AB_DIMENSIONS; at -= r->groups[d++].count) {
        if (at >= r->groups[d].count)
            continue;
        struct ab_group *group = &r->groups[d].items[at];
        *out = (struct measured){ &r->groups[d], group, &group->of[metric], metric,
                                  r->groups[d].values[metric] + group->of[metric].start };
        return true;
    }
    return false;
}

/* Advances to the next step, or to the next measure when this one is done. False: not finished yet. */
static bool go_on(struct ab_report *r, bool done)
{
    r->piece = done ? 0 : r->piece + 1;
    r->at += done;
    return false;
}

static bool sort_next(struct ab_report *r)
{
    struct measured m;
    if (!measure_at(r, &m))
        return true;
    if (!ab_enough(m.group))
        return go_on(r, true);
    ab_sort_piece(m.values, m.of->count, r->scratch, r->piece);
    return go_on(r, r->piece == AB_SORT_PIECES - 1);
}

static bool summarise_next(struct ab_report *r)
{
    struct measured m;
    if (!measure_at(r, &m))
        return true;
    if (!ab_enough(m.group))
        return go_on(r, true);
    if (!r->piece) {
        ab_summing_begin(&r->summing, m.values, m.of->count, ab_seed(m.values, m.of->count, 0), r->scratch);
        return go_on(r, false);
    }
    const bool done = ab_summing_step(&r->summing);
    m.of->summary = r->summing.out;
    return go_on(r, done);
}

/* A group with enough trades may still have too few known values. */
static bool compare_next(struct ab_report *r)
{
    struct measured m;
    if (!measure_at(r, &m))
        return true;
    const struct ab_measure *before =
        m.group->before == AB_NOTHING ? NULL : &m.groups->items[m.group->before].of[m.metric];
    if (!before || m.of->count < AB_TRADES_MIN || before->count < AB_TRADES_MIN)
        return go_on(r, true);
    const double *others = m.groups->values[m.metric] + before->start;
    if (r->piece == 0) {
        r->seed = ab_seed(m.values, m.of->count, ab_seed(others, before->count, 1));
        return go_on(r, false);
    }
    if (r->piece == 1) {
        m.of->difference = m.of->summary.mean - before->summary.mean;
        ab_difference_begin(&r->difference, others, before->count, m.values, m.of->count, r->seed,
                            r->scratch);
        return go_on(r, false);
    }
    const bool done = ab_difference_step(&r->difference);
    m.of->p = r->difference.p;
    return go_on(r, done);
}

/* Iterates over the measures of all groups; NULL at the end. */
static struct ab_measure *nth_measure(struct ab_report *r, size_t at)
{
    for (int d = 0; d < AB_DIMENSIONS; d++) {
        if (at < AB_METRICS * r->groups[d].count)
            return &r->groups[d].items[at / AB_METRICS].of[at % AB_METRICS];
        at -= AB_METRICS * r->groups[d].count;
    }
    return NULL;
}

/* All p-values of a response are corrected together, because a reader looks at all of them. */
static bool correct_all(struct ab_report *r)
{
    size_t count = 0;
    while (nth_measure(r, count))
        count++;
    double *p = numbers(r, 3 * count, sizeof *p);
    for (size_t i = 0; i < count; i++)
        p[i] = nth_measure(r, i)->p;
    ab_correct(p, count, p + count);
    for (size_t i = 0; i < count; i++) {
        nth_measure(r, i)->corrected = p[i];
        r->comparisons += isnan(p[i]) ? 0 : 1;
    }
    return true;
}

static bool write_next(struct ab_report *r)
{
    if (!r->at)
        ab_json_head(r);
    if (r->at == r->shown) {
        ab_json_tail(r);
        return true;
    }
    ab_json_revision(r, r->at++);
    return false;
}

/* Each is called until it returns true. */
static bool (*const phases[])(struct ab_report *r) = {
    make_room, place_rows, group_next, sort_next, summarise_next, compare_next, correct_all, write_next,
};
enum { PHASES = sizeof phases / sizeof *phases };

bool ab_compute(struct ab_report *r)
{
    if (r->phase < PHASES && phases[r->phase](r)) {
        r->phase++;
        r->at = r->piece_at = 0;
        r->piece = 0;
    }
    return r->phase == PHASES;
}
