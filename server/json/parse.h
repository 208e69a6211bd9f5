/* JSON bodies: text to json_t, with every fault that a body can have refused by name.
 *
 * jansson would turn 0.10 into a double. So one scan over the body checks the grammar and hands every number
 * on as a string that starts with NUL, which no other string can hold: the decimals stay as they came. */
#ifndef DAYBOOK_SERVER_JSON_PARSE_H
#define DAYBOOK_SERVER_JSON_PARSE_H

#include <jansson.h>
#include <stdbool.h>

#include "server/problem.h"

enum { NUMBER_CHARS = 64, NUMBER_EXPONENT = 308 };

/* The body as a JSON object, which the caller gives back with json_decref. Any other top level is
 * ERR_INVALID_JSON. */
enum err parse_body(const char *body, size_t len, int depth_limit, struct arena *arena, json_t **object,
                    struct problem *p) must_check;

/* The number as it came, or NULL when the value is none. */
const char *parse_number(const json_t *value);

enum parse_number_fault { NUMBER_OK, NUMBER_SYNTAX, NUMBER_RANGE };

/* The length of the JSON number at the start of the `len` bytes of text, with the limits that all numbers
 * have here: at most NUMBER_CHARS characters, an exponent within ±NUMBER_EXPONENT, neither too large nor too
 * small for a double. */
enum parse_number_fault parse_number_scan(const char *text, size_t len, size_t *used);

#endif
