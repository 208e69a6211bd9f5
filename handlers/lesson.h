/* Lessons for other resources: storing one, and listing those for a prompt. */
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

/* The lessons of the <learned_patterns> block, newest first: active at `as_of` and with one of the tags.
 * Waits.
 */
SHARED_COLUMNS(lesson_used, id, takeaway, total);
enum err lesson_list_active(struct call *c, struct texts tags, const char *as_of,
                            struct rows **rows) must_check;

#endif
