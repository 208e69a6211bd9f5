/* Lessons for other resources: storing one, validating some, and listing those for a prompt. */
#ifndef DAYBOOK_HANDLERS_LESSON_H
#define DAYBOOK_HANDLERS_LESSON_H

#include "server/dispatch/query.h"

/* The input of POST /v1/lessons. It must respect the limits of the fields. */
struct lesson_new {
    const char *at, *context, *outcome, *takeaway;
    struct texts tags, evidence;
};

/* Stores the lesson as `proposed`. *row is the response of POST /v1/lessons. Waits; may run in a transaction.
 */
enum err lesson_store(struct call *c, const struct lesson_new *lesson, struct rows **row) must_check;

/* Outcome data of a validation: the struct of a KIND_OBJECT. It must respect the limits of the fields. */
struct lesson_outcome {
    const char *metric, *value, *baseline, *note;
    int64_t sample_size;
};

struct lesson_validation {
    const char *at, *reason;
    struct texts ids;
    struct lesson_outcome *outcome;
    const char *field;                      /* of the request: named if a lesson is unknown */
    const char *agent_name, *model_call_id; /* NULL: unknown */
};

/* Validates all of the lessons or none. Call it in a transaction. */
enum err lesson_validate_all(struct call *c, const struct lesson_validation *v) must_check;

/* The lessons of the <learned_patterns> block, newest first: active at `as_of` and with one of the tags.
 * Waits.
 */
SHARED_COLUMNS(lesson_used, id, takeaway, total);
enum err lesson_list_active(struct call *c, struct texts tags, const char *as_of,
                            struct rows **rows) must_check;

#endif
