/* The state of the journal as a section of a prompt: why each position is held, the open theses and the
 * validated lessons, within a token budget. */
#ifndef DAYBOOK_CORE_JOURNAL_STATE_H
#define DAYBOOK_CORE_JOURNAL_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buf.h"

#define STATE_TOKENS 900 /* the default budget, and the most that a context spends on it */

enum { STATE_TEXT_CHARS = 400 }; /* of a text that is shown in full length */

/* What an agent is told about its memory, in the text and beside it. */
extern const char state_policy[];

/* Texts that are not known are NULL. */
struct state_thesis {
    const char *id, *symbol, *side;
    int64_t at_us, changed_us;
    const char *text, *invalidation, *target, *horizon;
};

struct state_decision {
    const char *id, *action, *text; /* id NULL: none */
    int64_t at_us;
};

/* A thesis that was closed while its symbol was held. */
struct state_closed {
    const char *id, *reason; /* id NULL: none */
    int64_t at_us;
};

struct state_position {
    const char *trade_id, *symbol, *side;
    int64_t entry_us;
    const struct state_thesis *theses; /* open ones of its symbol; the first is the rationale */
    size_t thesis_count;
    struct state_closed closed;     /* the last one, if no thesis is open */
    struct state_decision decision; /* the last one on its symbol */
    const char *entry_reason;       /* from the ledger */
};

struct state_lesson {
    const char *id, *takeaway;
    int64_t at_us, validated_us;
};

struct state {
    const struct state_position *positions;
    size_t position_count;
    const struct state_thesis *theses; /* newest change first; those of `positions` may be among them */
    size_t thesis_count;
    const struct state_lesson *lessons; /* newest validation first */
    size_t lesson_count;
    bool more_theses, more_lessons; /* older ones may exist that were not read */
};

/* Where the rationale of a position comes from. */
enum state_source { STATE_THESIS, STATE_CLOSED, STATE_DECISION, STATE_ENTRY_REASON, STATE_NO_RATIONALE };
enum state_source state_source(const struct state_position *p);

/* What fits into the budget, in the order of the text. */
struct state_shown {
    size_t tokens; /* of the text: never more than the budget */
    size_t positions, lessons;
    const struct state_thesis **theses; /* those that are no position's rationale; held symbols first */
    size_t thesis_count;
    size_t positions_omitted, theses_omitted, lessons_omitted;
};

/* Appends a block in <memory_state> tags: a disclaimer, the policy, the held positions with their rationale,
 * the other open theses, the validated lessons, and what was left out. Stored text is on one line in double
 * quotes and can end neither its quotes nor the block.
 *
 *   - BTC long since 2026-06-04T10:00: thesis 0197… of 2026-06-04 "Breakout holds" target "72k"
 *   - ADA long since 2026-06-04T10:30: no open thesis, 0197… was closed 2026-06-04T11:30 "close below 64k"
 *   - ETH long since 2026-06-04T11:00: decision 0197… of 2026-06-04, buy: "Funding reset"
 *   - SOL short since 2026-06-04T12:00: entry reason "fade the spike"
 *   - XRP long since 2026-06-04T12:30: (no rationale recorded)
 *
 * Positions come first, then the other theses of held symbols, then the other theses, which leave half of the
 * remaining budget to the lessons, then the lessons. The texts of positions are shortened before one is left
 * out, and then nothing else is shown. Without anything to show there is no text if `optional`, else a block
 * that says so. A budget in which no item fits gives a block that counts them; one too small for the tags,
 * the policy and that line, no text. */
struct state_shown state_text(struct buf *out, const struct state *s, size_t max_tokens, bool optional);

/* Appends what is shown and the numbers of what is not, as JSON members. */
void state_members(struct buf *out, const struct state *s, const struct state_shown *shown);

#endif
