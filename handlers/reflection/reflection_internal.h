/* Shared by the files of a reflection: one attempt, from its initial state to its outcome. */
#ifndef DAYBOOK_HANDLERS_REFLECTION_REFLECTION_INTERNAL_H
#define DAYBOOK_HANDLERS_REFLECTION_REFLECTION_INTERNAL_H

#include "core/reflect/cadence.h"
#include "core/reflect/reflect_prompt.h"
#include "handlers/reflection/reflection.h"

struct job; /* handlers/kit/job.h */

/* The state of the deployment, read by the query reflection_state. */
struct reflection_state {
    struct arena arena; /* of the texts below; released once the trades have been read */
    const char *strategy, *avoid, *lessons;
    struct cadence_state cadence;
    bool any_closed;
};

struct reflection {
    const char *id, *as_of; /* of the deployment; as_of is NULL until the state is read, unless given */
    const char *forced;
    struct texts suppressed;
    slot_set slots;                                 /* the same as a set */
    int64_t max_trades, shown_trades, reason_chars; /* how much is read of the trades */
    int64_t retry_us;                               /* how far back a failure counts */

    struct reflection_state state;
    const char *active_note_id, *own_model;
    const char **avoid;
    size_t avoid_count;
    struct reflect_prompt prompt; /* for a model, or */
    struct job *job;              /* the built-in reflector */
    const char *claim;            /* NULL: none */
    int64_t claim_ms;

    const char *reflection_id, *outcome, *reason, *detail;
    const char *note_id, *window_start, *window_end, *lessons_text, *content_hash, *model_used, *cost_usd;
    int64_t trades_considered, input_tokens, output_tokens;

    struct buf *out; /* takes the response, from `start` on */
    size_t start;
};

extern const struct field reflection_params[]; /* parameters of the statements in db/reflections.sql */

/* ---- reflection_ask.c ---- */

/* Reads the trades and builds the prompt. Releases the state. */
enum err reflection_prompt(struct call *c, struct reflection *r) must_check;

/* Reads the trades, lets a model or the built-in reflector write the lessons, checks them and sets the
 * outcome. Releases the state: while it waits, only the prompt stays in memory. */
enum err reflection_ask(struct call *c, struct reflection *r) must_check;

/* The name of the model to ask; NULL: the built-in reflector. */
const char *reflection_model(const struct call *c, const struct reflection *r);

/* ---- reflection_store.c ---- */

/* ERR_REFLECTION_RUNNING: another attempt has the claim. */
enum err reflection_claim(struct call *c, struct reflection *r) must_check;
/* Releases the claim. If that fails, the claim ends with its database connection, or expires. */
void reflection_release(struct call *c, struct reflection *r, enum err ended);

/* Stores the outcome, releases the claim and appends the response, in one transaction. */
enum err reflection_store(struct call *c, struct reflection *r) must_check;

/* The members that an attempt and a dry run have in common. */
void reflection_put_window(struct buf *out, const struct reflection *r);

#endif
