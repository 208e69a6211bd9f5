/* Contradictions about one key: which of several statements to show first, and whether a text agrees. */
#ifndef DAYBOOK_CORE_FACTS_CONFLICT_H
#define DAYBOOK_CORE_FACTS_CONFLICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Something that was stated about a key: by a fact, a correction in the session, a memory or a lesson. */
struct conflict_statement {
    const char *kind;       /* "correction", "fact", "note", "lesson" … */
    const char *id;         /* of a memory or a lesson; NULL: the statement is about the key itself */
    const char *scope;      /* of a fact or a correction; else NULL */
    const char *value;      /* JSON: of a fact or a correction; else NULL */
    const char *text;       /* of a memory or a lesson; else NULL */
    const char *source;     /* see fact_sources */
    const char *confidence; /* decimal */
    int64_t at_us;
    bool corrected; /* a correction in the session */
};

/* Sorts the statements: corrections of the session, then what needs no verification, then the rest; in each
 * group the newer first, and at the same time the better sourced. */
void conflict_sort(struct conflict_statement *list, size_t count);

/* Whether a text contains a value, as a word or a number of its own, in any case of ASCII letters. */
bool conflict_text_has(const char *text, const char *value);

#endif
