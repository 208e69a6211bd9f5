/* The story of a trade: what the agent searched, noted, ordered and learned about it, in the order of time,
 * and the answers to why it traded and what it learned. */
#ifndef DAYBOOK_CORE_JOURNAL_STORY_H
#define DAYBOOK_CORE_JOURNAL_STORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buf.h"

enum {
    STORY_TEXT_CHARS = 300, /* of a text in the Markdown; the JSON has all that was read */
    STORY_LIST_MAX = 20,    /* of evidence and of what was learned, in the summary */
};

/* The kinds of entries. What has the same time is in the order of the phases: what leads to a tick, the
 * entry, what happens while the trade is held, the exit, the close of its thesis, what was learned. */
enum story_phase { STORY_BEFORE, STORY_ENTRY, STORY_HELD, STORY_EXIT, STORY_AFTER, STORY_LEARNED };

struct story_kind {
    const char *name;
    enum story_phase phase;
    const char *path; /* of the resource: "/v1/orders/"; NULL: it has no address */
    const char *more; /* behind the id in the address; NULL: nothing */
};

/* NULL: there is no such kind. */
const struct story_kind *story_kind_find(const char *name);

/* A member of the details: a text, the digits of a number, "true" or "false". */
struct story_detail {
    const char *name, *value;
};

/* Texts that are not known are NULL. */
struct story_entry {
    const struct story_kind *kind;
    int64_t at_us;
    int64_t n; /* order of writes; 0: unknown */
    const char *id, *text;
    const char *ref;                    /* the thesis that it refers to */
    const char *data;                   /* details, as a JSON object */
    const struct story_detail *details; /* the same, without what is null or a list */
    size_t detail_count;
    const char *const *evidence;
    size_t evidence_count;
};

struct story_trade {
    const char *id, *deployment_id, *skill_id, *version, *symbol, *side;
    int64_t entry_us, exit_us;
    bool exited;
    const char *entry_reason;
    const char *net_pnl_usd, *fees_usd, *exit_reason; /* NULL while open */
};

/* How many entries of a group were left out; the count ends at 800. */
struct story_omitted {
    const char *name; /* "retrievals" */
    size_t count;
};

struct story {
    struct story_trade trade;
    struct story_entry *entries;
    size_t count;
    const struct story_omitted *omitted;
    size_t omitted_count;
};

/* Where an answer comes from. source NULL: not known. */
struct story_answer {
    const char *source; /* the name of a kind, or "entry_reason" */
    const char *id, *text;
    const char *status; /* of a lesson */
};

enum story_known { STORY_NO, STORY_YES, STORY_UNKNOWN };

struct story_summary {
    /* The last decision or else the last order that leads to the side of the trade, else the thesis, else the
     * ledger's reason. A decision to skip or to close is not why a trade was made. */
    struct story_answer why;
    struct story_answer thesis;  /* open at the entry: the newest one for its side, else the newest */
    struct story_answer outcome; /* the close of a thesis */
    /* Of the theses, decisions and proposals until the entry, without repeats and without what was
     * retracted. */
    const char *evidence[STORY_LIST_MAX];
    size_t evidence_count;
    struct story_answer learned[STORY_LIST_MAX];
    size_t learned_count;
    /* Whether a search came before the last order until the entry, or before the entry if there is no order.
     * Unknown if the journal has nothing about the trade from before its entry: nobody can tell. */
    enum story_known searched_first;
    size_t warnings; /* orders and actions before which no search returned an open thesis */
};

/* Sorts the entries by time, phase, order of writes and id. */
void story_sort(struct story *s);
/* The entries must be sorted. */
struct story_summary story_summarize(const struct story *s);

/* Append the members `summary`, `entries` and `omitted` of a JSON object. */
void story_members(struct buf *out, const struct story *s, const struct story_summary *sum);
/* Appends the story as Markdown for people. Stored text is on one line in double quotes. */
void story_markdown(struct buf *out, const struct story *s, const struct story_summary *sum);

#endif
