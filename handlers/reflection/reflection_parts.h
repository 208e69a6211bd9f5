/* What the parts of a reflection share: one attempt, from the state that it begins with to what came of it.
 */
#ifndef DAYBOOK_HANDLERS_REFLECTION_REFLECTION_PARTS_H
#define DAYBOOK_HANDLERS_REFLECTION_REFLECTION_PARTS_H

#include "core/reflect/reflect_prompt.h"
#include "handlers/reflection/reflection.h"

struct builtin; /* reflection_ask.c */

struct reflection {
    const char *id, *as_of, *forced; /* of the deployment; as_of NULL until the state is read, unless given */
    struct texts suppressed;
    slot_set slots; /* the same */
    int64_t max_trades;

    struct rows *state; /* one row of reflection_state; NULL when nobody needs it any more */
    const char *active_note_id, *own_model; /* of it */
    const char **avoid;
    size_t avoid_count;
    struct reflect_prompt prompt; /* that a model is asked with, or */
    struct builtin *builtin;      /* what is built in */
    const char *claim;            /* NULL: it has none */
    int64_t claim_ms;

    const char *reflection_id, *came_of_it, *why, *detail;
    const char *note_id, *window_start, *window_end, *lessons_text, *content_hash, *model_used, *cost_usd;
    int64_t trades_considered, input_tokens, output_tokens;

    struct buf *out; /* where the answer goes, from `start` on */
    size_t start;
};

extern const struct field reflection_params[]; /* as the statements of db/reflections.sql take them */

/* ---- reflection_ask.c ---- */

/* Reads the trades, and makes the prompt of them. */
enum err reflection_prompt(struct call *c, struct reflection *r) must_check;

/* Reads the trades, has the lessons written by the model or what is built in, and checks them: what came of
 * it is in `r`. While it waits it holds the question, and nothing of what that was made of. */
enum err reflection_ask(struct call *c, struct reflection *r) must_check;

/* The model that would be asked; NULL: what is built in does it. */
const char *reflection_model(const struct call *c, const struct reflection *r);

/* ---- reflection_store.c ---- */

/* ERR_REFLECTION_RUNNING: another has it. */
enum err reflection_claim(struct call *c, struct reflection *r) must_check;
/* Gives the claim back, if that is possible; else it ends with its connection. */
void reflection_release(struct call *c, struct reflection *r);

/* Stores what came of it, gives the claim back and appends the answer, all at once. */
enum err reflection_store(struct call *c, struct reflection *r) must_check;

/* The members that an attempt and a dry run have in common, behind those that name it. */
void reflection_put_window(struct buf *out, const struct reflection *r);

#endif
