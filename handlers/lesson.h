/* Lessons as other resources add them and put them into prompts. */
#ifndef DAYBOOK_HANDLERS_LESSON_H
#define DAYBOOK_HANDLERS_LESSON_H

#include "server/dispatch/query.h"

/* What POST /v1/lessons takes, within the limits of its fields. */
struct lesson_new {
    const char *at, *context, *outcome, *takeaway;
    struct texts tags, evidence;
};

/* Stores it as `proposed`; the row is what POST /v1/lessons answers with. For handlers that wait, also inside
 * a transaction. */
enum err lesson_store(struct call *c, const struct lesson_new *lesson, struct rows **row) must_check;

/* The lessons of the <learned_patterns> block, newest first: those in use at that instant that have one of
 * the tags. For handlers that wait. */
SHARED_COLUMNS(lesson_used, id, takeaway, total);
enum err lessons_in_use(struct call *c, struct texts tags, const char *as_of, struct rows **rows) must_check;

#endif
