/* What memories, theses and orders share: fields, the check of references, and the follow-up of a write. */
#ifndef DAYBOOK_HANDLERS_JOURNAL_JOURNAL_H
#define DAYBOOK_HANDLERS_JOURNAL_JOURNAL_H

#include "handlers/kit/fields.h"
#include "server/dispatch/call.h"

/* clang-format off */
/* Rows for the table of a struct whose members have the same names. */
/* Without a fallback: the statement knows the clock of the deployment. */
#define JOURNAL_AT(type)     FIELD(FROM_BODY, KIND_TIME, type, at)
#define JOURNAL_AUTHOR(type) FIELD(FROM_BODY, KIND_LINE, type, agent_name, .min = 1, .max = 200), \
                             FIELD(FROM_BODY, KIND_LINE, type, model_call_id, .min = 1, .max = 200)
#define JOURNAL_NOTES(type)  FIELD(FROM_BODY, KIND_TEXTS, type, evidence, .min = 0, .max = 32, .item_max = 500), \
                             FIELD(FROM_BODY, KIND_TAGS, type, tags, .min = 0, .max = 16, .item_max = 64)
#define JOURNAL_SYMBOL(from, type, ...) FIELD(from, KIND_LINE, type, symbol, .min = 1, .max = 64, __VA_ARGS__)
/* Filters of all lists. */
#define JOURNAL_FILTER(type) \
    FIELD_AS_OF(type), \
    JOURNAL_SYMBOL(FROM_QUERY, type), \
    FIELD(FROM_QUERY, KIND_UUID, type, deployment_id), \
    FIELD(FROM_QUERY, KIND_TIME, type, since), \
    FIELD(FROM_QUERY, KIND_TIME, type, until)
#define JOURNAL_FILTER_AUTHOR(type) \
    FIELD(FROM_QUERY, KIND_LINE, type, agent_name, .min = 1, .max = 200), \
    FIELD(FROM_QUERY, KIND_LINE, type, model_call_id, .min = 1, .max = 200)
/* Filters of memories and theses. */
#define JOURNAL_FILTER_NOTES(type) \
    FIELD(FROM_QUERY, KIND_TAGS, type, tags, .min = 1, .max = 16, .item_max = 64), \
    FIELD(FROM_QUERY, KIND_TAGS, type, tags_all, .min = 1, .max = 16, .item_max = 64), \
    JOURNAL_FILTER_AUTHOR(type)
/* clang-format on */

/* ERR_NOT_FOUND that names the deployment. */
enum err journal_no_deployment(struct call *c, const char *deployment_id) must_check;

/* An entry's reference to a thesis or a decision, as the statement found it. */
struct journal_reference {
    const char *field;         /* "thesis_id" */
    const char *what;          /* "thesis" */
    const char *id;            /* NULL: none given */
    bool known;                /* it existed at the time of the entry */
    const char *symbol;        /* that of the thesis, if the entry has another; else NULL */
    const char *deployment_id; /* the same */
};

/* Reports what contradicts the entry: the reference itself, or its `symbol` or `deployment_id`. */
enum err journal_check_reference(struct call *c, const struct journal_reference *r) must_check;

/* Chooses the journal of a read: of a deployment, or with `journal` ("owner") that of no deployment.
 * *journal_id is NULL if neither is given: all journals of the owner. Both are a fault. */
enum err journal_choose(struct call *c, const char *deployment_id, const char *journal,
                        const char **journal_id) must_check;
/* Seals what was committed to a journal, or to all with NULL, so that a reader finds its own events. Each
 * journal is sealed in a statement of its own: to wait for one of them holds up nobody else. */
enum err journal_seal(struct call *c, const char *journal_id) must_check;

/* The call stored events, and a text without a vector if `text`. */
void journal_stored(struct call *c, bool text);

#endif
