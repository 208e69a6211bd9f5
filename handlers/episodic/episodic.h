/* Entries of the episodic memory, shared by the handlers that read, store and reuse them. */
#ifndef DAYBOOK_HANDLERS_EPISODIC_EPISODIC_H
#define DAYBOOK_HANDLERS_EPISODIC_EPISODIC_H

#include "core/episodic/rerun.h"
#include "server/dispatch/query.h"

/* A regime tag: its name, and its value as JSON. */
struct regime_in {
    const char *name, *value;
};
extern const struct field regime_fields[]; /* the sub-table of a KIND_MAP */

/* Rows of a body: a regime, and signals (the current regime and two flags, see episodic_rerun_signals). */
#define REGIME_FIELD(type, member) \
    FIELD(FROM_BODY, KIND_MAP, type, member, .max = RERUN_TAGS_MAX, SUB(regime_fields, struct regime_in))
#define SIGNALS_FIELD(type, member) \
    FIELD(FROM_BODY, KIND_MAP, type, member, .max = RERUN_TAGS_MAX + 2, SUB(regime_fields, struct regime_in))

/* A regime for core to compare, from a body or from JSON of the database. */
struct regime_tags episodic_regime_from_body(struct arena *arena, const struct objects *map);
struct regime_tags episodic_regime_from_json(struct arena *arena, const char *json);
/* The regime of a body as a JSON object. */
void episodic_regime_json(struct buf *out, const struct objects *map);

/* Reads the signals in `field`. Faults are in c->problem. */
enum err episodic_rerun_signals(struct call *c, const char *field, const struct objects *map,
                                struct rerun_signals *out) must_check;

/* The row of EPISODE_PRIOR and RESEARCH_PRIOR. All columns are null if there is no prior. */
SHARED_COLUMNS(prior_row, id, question, answer, probability, confidence, regime_tag, _age_days);
/* Whether there is a prior, and whether it can be reused. */
bool episodic_prior_exists(const struct rows *prior);
struct rerun episodic_prior_decide(struct call *c, const struct rows *prior,
                                   const struct rerun_signals *signals);
/* Counts that the prior was reused at `as_of`. `cost_usd` is what that saved, or NULL. Waits. */
enum err episodic_prior_reuse(struct call *c, const struct rows *prior, const char *as_of,
                              const char *cost_usd) must_check;
/* Adds the members "reasons":[…],"regime_keys":{…},"prior":…,"prior_age_days":… to a response. */
void episodic_prior_json(struct buf *out, const struct rows *prior, const struct rerun *r);

/* An entry in a request. */
struct episode_in {
    const char *ticker, *task_type, *question, *answer, *probability, *confidence, *source, *created_at,
        *embedding_model, *observation_type;
    struct texts source_citations, embedding;
    struct objects regime_tag;     /* of struct regime_in */
    int64_t ttl_seconds, ttl_days; /* FIELD_NO_INT: not given */
};
extern const struct field episode_fields[];

/* An entry while it is stored. */
struct episode {
    const struct episode_in *in;
    const char *id, *hash, *model;
    const float *vector; /* of length 1; NULL: the entry is pending */
    size_t dim;
    int64_t ttl_seconds;     /* 0: never expires */
    bool supplied;           /* the caller gave the vector */
    bool known;              /* it was stored before this request */
    const struct rows *rows; /* NULL until it is stored */
    int row;
};

/* Checks the fields that depend on each other, and fills `e`. Faults are in c->problem. */
enum err episodic_check(struct call *c, const struct episode_in *in, struct arena *arena,
                        struct episode *e) must_check;

/* The rule of the write policy for the type of an entry, kept for the next entry of the same type. */
struct episode_rule {
    const char *observation_type; /* computed from the entry; NULL: none was asked for yet */
    const char *default_types;
    bool listed, allowed;
    int64_t ttl_seconds; /* 0: no expiry */
};
/* Asks the write policy if the entry names an observation type, and takes the time to live of the type if it
 * has none of its own. ERR_WRITE_DENIED: the policy does not store it. Waits. `arena` outlives `rule`. */
enum err episodic_allow(struct call *c, struct arena *arena, struct episode_rule *rule,
                        struct episode *e) must_check;

/* Both functions allocate rows and vectors in `arena`. */

/* Finds the entries that are known already, and embeds the others in one call. If the embedder is not
 * available they stay pending, which is no error: server/backfill embeds them later. Waits, so never inside
 * a transaction. */
enum err episodic_prepare(struct call *c, struct arena *arena, struct episode *list, size_t count) must_check;

/* Stores the entries that are not known, inside the caller's transaction. All hashes of the list must be
 * different. Sets `rows` of every entry. */
enum err episodic_store(struct call *c, struct arena *arena, struct episode *list, size_t count) must_check;

const char *episodic_id(const struct episode *e);
const char *episodic_status(const struct episode *e); /* embedding_status */
/* A stored entry as in responses. */
void episodic_json(struct buf *out, const struct episode *e);
void episodic_members(struct buf *out, const struct episode *e); /* without the braces */

/* The text of an entry that is embedded. */
const char *episodic_embed_text(struct arena *arena, const char *question, const char *answer);

#endif
