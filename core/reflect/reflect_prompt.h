/* The prompt that asks a model to distill lessons from a ledger. */
#ifndef DAYBOOK_CORE_REFLECT_REFLECT_PROMPT_H
#define DAYBOOK_CORE_REFLECT_REFLECT_PROMPT_H

#include "core/reflect/reflect_note.h"

enum {
    REFLECT_SHOWN_MAX = 60,      /* newest trades, which the prompt lists one by one */
    REFLECT_STRATEGY_MAX = 6000, /* characters; a cut is marked */
    REFLECT_RULE_MAX = 500,      /* the maximum length of a rule: all rules are shown in full */
    REFLECT_REASON_MAX = 160,    /* characters of a reason in the prompt */
    REFLECT_REASON_READ = 400,   /* characters to read of it: white space is shortened before the cut */
    REFLECT_GROUPS_SHOWN = 12,   /* symbols and regimes with the most trades; the others share one line */
};

struct reflect_facts {
    const char *strategy;
    const char *const *avoid;
    size_t avoid_count;
    const char *lessons;                /* the active note; NULL: none */
    const struct reflect_trade *trades; /* closed ones, the newest exit first */
    size_t count;
    slot_set suppressed;
};

struct reflect_prompt {
    const char *system, *user;
    size_t tokens; /* of both, estimated */
};

/* The system prompt depends only on `suppressed`, so that prompt caches work. All untrusted text (strategy,
 * rules, lessons, symbols, reasons) is inside a block that it cannot close; rules, symbols and reasons are
 * quoted too. The same facts give the same bytes. */
struct reflect_prompt reflect_prompt(struct arena *arena, const struct reflect_facts *facts);

#endif
