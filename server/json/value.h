/* Single values of a request, checked by their field's row and stored where the row says; every fault is
 * reported with its place. What field.c knows how to find, this knows how to judge. */
#ifndef DAYBOOK_SERVER_JSON_VALUE_H
#define DAYBOOK_SERVER_JSON_VALUE_H

#include "server/json/field.h"

struct decoder {
    const struct field_input *in;
    struct arena *arena;
    struct problem *p;
};

/* Where a value stands. Becomes text ("positions[3].symbol") only when there is a fault to report. */
struct place {
    const struct place *up;
    const char *name; /* NULL: an item of a list */
    size_t index;
};

/* What each kind is called in a detail. */
extern const char *const value_expected[];

void value_bad(struct decoder *d, const struct place *at, enum fault fault, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* `; did you mean "limit"?`, or "" where nothing is close enough or nobody would see it. The names are those
 * that the table has from there. */
const char *value_name_meant(struct decoder *d, const struct field *table, enum field_from from,
                             const char *name);

/* True if the whole text is a number as JSON writes it. */
bool value_is_number(const char *text);

/* A value of the kinds that are texts in JSON too. `text` lives as long as the arena. */
void value_text(struct decoder *d, const struct field *f, const struct place *at, const char *text,
                void *member);
/* KIND_INT and KIND_NUMBER; `lexeme` has passed number_fits. */
void value_number(struct decoder *d, const struct field *f, const struct place *at, const char *lexeme,
                  void *member);
/* A value of a path or a query, or a fallback: every kind but an object is spelled as text there. */
void value_spelled(struct decoder *d, const struct field *f, const struct place *at, const char *text,
                   void *member);

/* False, and reported, when a list of that many items is too short or too long. */
bool value_count(struct decoder *d, const struct field *f, const struct place *at, size_t count);
/* The texts of a list; NULL for an item that was none and is reported already. The list becomes `items`
 * itself. */
void value_texts(struct decoder *d, const struct field *f, const struct place *at, const char **items,
                 size_t count, struct texts *out);
/* A list from all values of one name in a query, each split at its commas. */
void value_split(struct decoder *d, const struct field *f, const struct place *at, const char *const *values,
                 size_t count, struct texts *out);

#endif
