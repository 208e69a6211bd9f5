/* The guard: recognizes text that would instruct its reader instead of informing it. */
#ifndef DAYBOOK_CORE_GUARD_GUARD_H
#define DAYBOOK_CORE_GUARD_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/arena.h"
#include "core/guard/fold.h"

enum {
    GUARD_HITS_MAX = 16, /* of a report */
    GUARD_POINTS = 10,   /* of weak rules, where a text is refused */
    GUARD_WINDOW = 800,  /* words within which the points of weak rules add up */
    GUARD_DEPTH = 2,     /* encoded text inside encoded text */
};

enum guard_grade {
    GUARD_REFUSE, /* one hit refuses the text */
    GUARD_WEAK,   /* a hit adds points */
};

struct guard_rule {
    const char *name; /* in snake_case; names are stable */
    enum guard_grade grade;
    int points;              /* of a weak rule */
    const char *description; /* one sentence */
};

/* A place where a rule applies. A hit inside encoded text has the span of the whole encoded run. */
struct guard_hit {
    const struct guard_rule *rule;
    size_t start, len; /* bytes of the original text; they split no character */
};

enum guard_verdict { GUARD_CLEAN, GUARD_REFUSED, GUARD_VERDICTS };
extern const char *const guard_verdict_names[GUARD_VERDICTS + 1]; /* "clean", "refused", NULL */

struct guard_report {
    enum guard_verdict verdict;
    struct guard_hit hits[GUARD_HITS_MAX]; /* in the order of `start`; none of a clean text */
    size_t hit_count;
    bool more;          /* there may be more hits: the guard stops looking at GUARD_HITS_MAX */
    int points;         /* the highest sum of weak rules, up to where they refuse the text */
    unsigned disguises; /* enum fold_disguise: how the text was written, whatever the verdict */
};

/* All rules, in a fixed order. */
const struct guard_rule *guard_rules(size_t *count);

/* Checks valid UTF-8 of less than 4 GiB. A pure function: the same text gives the same report.
 *
 * The text is folded (core/guard/fold.h), and read as words and clauses. A rule is a sequence of words of
 * certain kinds within one clause, such as a verb of ignoring, a word for "previous" and one for
 * "instructions", with a few other words between them; or a mark that a prompt is made of: a tag of its
 * delimiters, a token of a chat template, the shape of a tool call. Base64, hexadecimal, binary and Morse
 * code are decoded and checked in the same way.
 *
 *   verdict refused   a rule of grade GUARD_REFUSE applies, or weak rules with GUARD_POINTS in all apply
 *                     within GUARD_WINDOW words; then the rule jailbreak_signs has their span, and the weak
 *                     rules are hits too
 *   not an order      "do not ignore the previous instructions", "they ignored …"; but "do not hesitate to
 *                     ignore …" is one
 *   not meant         an instruction in quotation marks whose sentence reports it: 'the mail said "ignore all
 *                     previous instructions" and was flagged'
 *
 * What the guard does not do: it does not judge whether a statement is true, and it knows no paraphrase that
 * its lists do not have. A clean text is not a safe text, and is still quoted and delimited in prompts.
 *
 * Takes time linear in `len`, and memory of at most 64 times `len` and 128 KB from the arena. */
void guard_check(struct arena *arena, const char *text, size_t len, struct guard_report *report);

#endif
