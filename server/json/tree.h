/* JSON bodies held as a json_t: for what is decoded by field tables. The reader (reader.h) understands the
 * text and fills the tree, so jansson never sees JSON.
 *
 * A json_t number would turn 0.10 into a double. A number is held as a string that starts with NUL, which no
 * other string can: every digit stays as it was sent. */
#ifndef DAYBOOK_SERVER_JSON_TREE_H
#define DAYBOOK_SERVER_JSON_TREE_H

#include <jansson.h>

#include "server/problem.h"

/* The body as a JSON object, which the caller gives back with json_decref. Anything else is an error whose
 * detail says where and what is wrong. */
enum err tree_read(const char *body, size_t len, int depth_limit, struct arena *arena, json_t **object,
                   struct problem *p) must_check;

/* The number as it was sent, NULL if the value is not a number. */
const char *tree_number(const json_t *value);

#endif
