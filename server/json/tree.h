/* Reads JSON bodies into a json_t tree, for decoding by field tables. The reader (reader.h) parses the text
 * and builds the tree; jansson's own parser is not used.
 *
 * Numbers are stored as strings that start with NUL, which no other string can. A json_t number would turn
 * 0.10 into a double and lose the digits as sent. */
#ifndef DAYBOOK_SERVER_JSON_TREE_H
#define DAYBOOK_SERVER_JSON_TREE_H

#include <jansson.h>

#include "server/problem.h"

/* Trees use core/base/memory.h from now on. Call it before the first tree is read. */
void tree_setup(void);

/* Reads a JSON object, which the caller must release with json_decref. The detail of an error has the
 * position and the reason. */
enum err tree_read(const char *body, size_t len, int depth_limit, struct arena *arena, json_t **object,
                   struct problem *p) must_check;

/* The digits of the number as sent; NULL: not a number. */
const char *tree_number(const json_t *value);

#endif
