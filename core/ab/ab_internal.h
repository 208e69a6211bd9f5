/* Shared by the files of a report: ab_report.c collects, ab_compute.c computes, ab_json.c writes. */
#ifndef DAYBOOK_CORE_AB_AB_INTERNAL_H
#define DAYBOOK_CORE_AB_AB_INTERNAL_H

#include "core/ab/ab_report.h"

/* How the trades of a revision are grouped. */
enum ab_dimension { AB_ALL, AB_BY_REGIME, AB_BY_SYMBOL, AB_DIMENSIONS };

enum { AB_CHUNK = 1024, AB_NOTHING = -1 };

/* One for each lessons text. There may be as many texts as trades. */
struct ab_times {
    int64_t first_us, last_us;
    double realized_usd; /* of all trades, before fees */
    uint32_t trades;
    int32_t rank; /* position in the response; AB_NOTHING: not in it */
};

/* A node of a hash tree: a text, and its children by the next two bits of their hash. 0: no child, because
 * the root is never one. */
struct ab_named {
    const char *text;
    uint32_t hash;
    int32_t below[4];
};

/* Gives each distinct text (NULL counts as one) a number, from 0 on. Nodes are in chunks that never move, so
 * adding one allocates at most a chunk. */
struct ab_names {
    struct ab_names_chunk {
        struct ab_named names[AB_CHUNK];
        struct ab_times *times; /* one for each name, if timed */
    } **chunks;
    size_t count, chunks_cap;
    int32_t last; /* found last: most trades have the same names as the one before */
    bool timed;
};

/* The number of the text. If it has none: a new one if `add`, else AB_NOTHING. */
int32_t ab_report_name(struct arena *arena, struct ab_names *n, const char *text, bool add);

static inline struct ab_named *ab_named(const struct ab_names *n, int32_t number)
{
    return &n->chunks[number / AB_CHUNK]->names[number % AB_CHUNK];
}

static inline struct ab_times *ab_times(const struct ab_names *n, int32_t number)
{
    return &n->chunks[number / AB_CHUNK]->times[number % AB_CHUNK];
}

struct ab_row {
    int32_t revision, keys[AB_DIMENSIONS]; /* AB_ALL has one key, 0 */
    double values[AB_METRICS];
};

struct ab_chunk {
    struct ab_chunk *next;
    size_t count;
    struct ab_row rows[AB_CHUNK];
};

/* A revision in the response. */
struct ab_revision {
    const char *hash;
    int64_t first_us, last_us;
    double realized_usd;
    size_t trades;
    bool known;     /* it is the text of a note, or of a note without some of its slots */
    int32_t source; /* in the latter case the text of that note; else AB_NOTHING */
    slot_set suppressed;
    const char *note_ids[AB_NOTE_IDS_MAX];
    size_t notes;
    size_t group[AB_DIMENSIONS], groups[AB_DIMENSIONS],
        omitted[AB_DIMENSIONS]; /* the first group, the number of groups, and of those left out */
};

/* The trades of one revision that have a key in common. */
struct ab_group {
    int32_t rank, key;
    size_t trades;
    int before; /* the group to compare with; AB_NOTHING: none */
    struct ab_measure {
        size_t start, count; /* in the report's values */
        struct ab_summary summary;
        double difference, p, corrected;
    } of[AB_METRICS];
};

/* A key of the current revision. */
struct ab_counted {
    size_t trades;
    const char *name;
    int32_t key;
};

struct ab_groups {
    struct ab_group *items;
    size_t count, cap;
    double *values[AB_METRICS];
    size_t placed[AB_METRICS]; /* how many of them are in a group */
    int32_t *of_key;           /* its group in the current revision */
    int32_t *latest;           /* the last before it that has enough trades */
};

/* A note to try without some of its slots. Text NULL: the same text was tried before. */
struct ab_text {
    struct ab_text *next;
    int32_t source;
    const char *id, *text;
    slot_set suppressed;
};

struct ab_report {
    struct arena arena, texts_arena;
    const char *skill_id, *as_of;

    struct ab_chunk *chunks;
    size_t trades;
    struct ab_names lessons, keys[AB_DIMENSIONS];

    bool ordered;
    int32_t order[AB_REVISIONS_MAX];  /* the latest lessons found so far */
    size_t looked_at, shown, omitted; /* number found, in the response, and left out */
    struct ab_revision *revisions;    /* those shown, by rank */
    size_t kept;                      /* their trades */

    struct ab_names tried;
    struct ab_text *first_text, *last_text;
    size_t unexplained;

    bool computing;
    size_t phase, at; /* of the computation, and in the phase */
    int piece;        /* of the current item */
    size_t piece_at;  /* and in the piece */
    const struct ab_chunk *chunk;
    size_t *next;               /* position of the next row of each revision */
    const struct ab_row **rows; /* revision by revision */
    struct ab_groups groups[AB_DIMENSIONS];
    struct ab_counted *counted, top[AB_KEYS_MAX]; /* all keys of a revision, and those that are shown */
    size_t counted_keys, top_keys;
    struct ab_summing summing;
    struct ab_difference difference;
    uint64_t seed;   /* of the latter */
    double *scratch; /* room for `kept` numbers */
    size_t comparisons;
    struct buf json;
};

static inline bool ab_enough(const struct ab_group *g)
{
    return g->trades >= AB_TRADES_MIN;
}

/* The next step of finding and ordering the revisions of the response. */
void ab_compute_order(struct ab_report *r);
/* The next step of the computation; true: it was the last. */
bool ab_compute(struct ab_report *r);
/* Write the start of the response, one revision, and the end. */
void ab_json_head(struct ab_report *r);
void ab_json_revision(struct ab_report *r, size_t rank);
void ab_json_tail(struct ab_report *r);

#endif
