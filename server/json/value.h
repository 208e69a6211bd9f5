/* Checks single values against their row of the field table and stores them. field.c finds the values, this
 * file checks them. Faults are reported with the value's location. */
#ifndef DAYBOOK_SERVER_JSON_VALUE_H
#define DAYBOOK_SERVER_JSON_VALUE_H

#include "server/json/field.h"

struct decoder {
    const struct field_input *in;
    struct arena *arena;
    struct problem *p;
};

/* The location of a value in the input. Formatted ("positions[3].symbol") only to report a fault. */
struct location {
    const struct location *up;
    const char *name; /* NULL: an item of a list */
    size_t index;
};

/* The name of each kind in error details. */
extern const char *const value_expected[];

void value_bad(struct decoder *d, const struct location *at, enum fault fault, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* `; did you mean "limit"?`, or "" if no name of the table from that source is similar, or if the fault will
 * not be shown. */
const char *value_suggest_name(struct decoder *d, const struct field *table, enum field_from from,
                               const char *name);

/* Whether the whole text is a JSON number. */
bool value_is_number(const char *text);

/* For the kinds that are JSON strings. `text` must live as long as the arena. */
void value_text(struct decoder *d, const struct field *f, const struct location *at, const char *text,
                void *member);
/* For KIND_INT and KIND_NUMBER. `lexeme` has passed number_fits. */
void value_number(struct decoder *d, const struct field *f, const struct location *at, const char *lexeme,
                  void *member);
/* For values of a path or a query and for fallbacks, where every kind is given as text. */
void value_from_text(struct decoder *d, const struct field *f, const struct location *at, const char *text,
                     void *member);

/* Reports a list that is too short or too long, and returns false. */
bool value_count(struct decoder *d, const struct field *f, const struct location *at, size_t count);
/* For the texts of a list. An item is NULL if its type was wrong and is already reported. `out` keeps
 * `items`. */
void value_texts(struct decoder *d, const struct field *f, const struct location *at, const char **items,
                 size_t count, struct texts *out);
/* For a list in a query: all values of one name, each split at commas. */
void value_split_list(struct decoder *d, const struct field *f, const struct location *at,
                      const char *const *values, size_t count, struct texts *out);

#endif
