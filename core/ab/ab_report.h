/* The trades of a skill, grouped by the lessons text they were made under, and the comparison of each text
 * with the one before. Computed in steps. */
#ifndef DAYBOOK_CORE_AB_AB_REPORT_H
#define DAYBOOK_CORE_AB_AB_REPORT_H

#include <stdbool.h>

#include "core/ab/ab.h"
#include "core/base/buf.h"
#include "core/reflect/reflect_note.h"

enum {
    AB_REVISIONS_MAX = 200, /* in the response: the latest */
    AB_KEYS_MAX = 50,       /* symbols of a revision: those with the most trades */
    AB_NOTE_IDS_MAX = 20,   /* of a revision: the oldest */
};

/* What is measured. */
enum ab_metric { AB_NET_USD, AB_RETURN_PCT, AB_METRICS };

/* A closed trade. Only read during the call. */
struct ab_trade {
    const char *lessons_hash, *regime, *symbol; /* NULL: none */
    double values[AB_METRICS];                  /* NAN: not known */
    double realized_usd;                        /* the PnL before fees */
    int64_t entry_us;
};

/* A note of the skill. Only read during the call. */
struct ab_note {
    const char *hash, *id, *text;
    slot_set suppressed;
};

struct ab_report;

/* `as_of` NULL: not given. Both texts are copied. */
struct ab_report *ab_report_open(const char *skill_id, const char *as_of);
void ab_report_release(struct ab_report *r);

/* Does the next step, which takes a few milliseconds at most. True: nothing is left to do until more is
 * added.
 */
bool ab_report_step(struct ab_report *r);

/* First add all trades, in any order. Then run steps, which find the revisions. */
void ab_report_trade(struct ab_report *r, const struct ab_trade *t);
size_t ab_report_trades(const struct ab_report *r);

/* Then read the notes of these hashes, which are those in the response. Returns their number. */
size_t ab_report_hashes(const struct ab_report *r, const char *hashes[AB_REVISIONS_MAX]);
/* Add these notes, oldest first, without their texts. */
void ab_report_note(struct ab_report *r, const struct ab_note *n);
/* True: some trades have lessons that match no note. They may be a note with suppressed slots. To find out,
 * add the notes again with their texts, a few at a time, and run steps. */
bool ab_report_unexplained(const struct ab_report *r);
void ab_report_text(struct ab_report *r, const struct ab_note *n);

/* At last, make the following steps compute the report and write the response. */
void ab_report_compute(struct ab_report *r);
const struct buf *ab_report_json(const struct ab_report *r);

#endif
