/* Field tables: what a request may carry in its path, its query and its body, decoded into one struct.
 *
 * A route has one table and one struct. Each row names a field, where it comes from, what it must be and
 * where it goes. Statements take the decoded values by the same names (db/statement.h). */
#ifndef DAYBOOK_SERVER_JSON_FIELD_H
#define DAYBOOK_SERVER_JSON_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "server/problem.h"

enum field_from {
    FROM_PATH,
    FROM_QUERY,
    FROM_BODY,
    COMPUTED, /* never in a request: set by the handler, for a statement */
};

/* The member type of each kind stands behind it. An optional field that is absent (or null) and has no
 * fallback is NULL, an integer FIELD_NO_INT, a list or a cursor all zero. A max of 0 is no upper limit. A
 * text with a min of 1 or more must hold a visible character. */
enum field_kind {
    KIND_TEXT,    /* const char *: min..max characters, no control characters but \t and \n */
    KIND_LINE,    /* const char *: the same, in one line */
    KIND_INT,     /* int64_t: min..max, both 0 for any */
    KIND_NUMBER,  /* const char *: digit for digit as it came; min..max, both 0 for any */
    KIND_BOOL,    /* const char *: "true" or "false" */
    KIND_TIME,    /* const char *: RFC 3339, kept as UTC "2026-06-04T10:00:00.000000Z" */
    KIND_UUID,    /* const char *: lower case */
    KIND_NAME,    /* const char *: 1 to 64 letters, digits and _.- of ASCII, the first a letter or a digit */
    KIND_CHOICE,  /* const char *: one of `choices` */
    KIND_TEXTS,   /* struct texts: min..max lines of 1..item_max characters, none twice */
    KIND_TAGS,    /* struct texts: the same, without commas and tabs; in a query "a,b" */
    KIND_NUMBERS, /* struct texts: min..max numbers, digit for digit; body only */
    KIND_UUIDS,   /* struct texts: min..max UUIDs, none twice; in a query "a,b" */
    KIND_OBJECT,  /* struct x *: a struct described by `sub`; body only */
    KIND_OBJECTS, /* struct objects: min..max of them; body only */
    KIND_MAP, /* struct objects: an object with names of the caller's, min..max of them; `sub` has two rows:
               * the first takes the name, the second the value; body only */
    KIND_SCALAR, /* const char *: a text (as KIND_LINE), a number or a boolean, kept as JSON; body only */
    KIND_CURSOR, /* struct cursor_values; `sub`, where given, says what each of its values must be */
};

#define FIELD_NO_INT INT64_MIN

struct texts {
    size_t count;
    const char **items;
};

struct objects {
    size_t count;
    void *items; /* an array of the sub-table's struct */
};

struct field {
    const char *name;
    enum field_from from;
    enum field_kind kind;
    size_t offset;
    bool required;
    bool above_zero; /* of a number, or of each of a list */
    int64_t min, max;
    int64_t item_max;
    const char *const *choices; /* NULL-terminated */
    const char
        *fallback; /* what an absent field is decoded from; of a time, in full; "now": field_input.now */
    const struct field *sub; /* the rows of an object, all FROM_BODY */
    size_t sub_size;
};

/* One row. The last arguments are designators of what the kind needs:
 *     FIELD(FROM_BODY, KIND_LINE, struct lesson_in, takeaway, .required = true, .min = 1, .max = 300),
 *     FIELD(FROM_BODY, KIND_OBJECT, struct check_in, outcome, SUB(outcome_fields, struct outcome_in)), */
/* clang-format off */
#define FIELD(source, what, type, member, ...) \
    { .name = #member, .from = (source), .kind = (what), .offset = offsetof(type, member), __VA_ARGS__ }
#define SUB(table, type) .sub = (table), .sub_size = sizeof(type)
#define END_FIELDS { .name = NULL }
/* clang-format on */

/* One decoded name and value of a path or a query, valid UTF-8 as uri_parse gives it. */
struct pair {
    const char *name, *value;
};
struct pairs {
    size_t count;
    const struct pair *items;
};

struct field_input {
    const struct pairs *path, *query;
    const char *body; /* NULL: there is none */
    size_t body_len;
    int depth_limit;
    const char *now;       /* as a KIND_TIME is kept, for the fallback "now" */
    uint64_t cursor_scope; /* what a cursor must have been made for: see core/base/cursor.h */
};

/* Decodes and checks everything at once: ERR_INVALID_FIELDS has every bad field in `p`; a body that is not
 * JSON has its own error. `out` must be zeroed. Nothing is allocated outside the arena. */
enum err field_decode(const struct field *table, const struct field_input *in, struct arena *arena, void *out,
                      struct problem *p) must_check;

/* Whether `min` and `max` of a row are limits: a max below min is none, and 0 and 0 are two that are not
 * given. */
bool field_has_min(const struct field *f);
bool field_has_max(const struct field *f);

/* The row of that name, or NULL. */
const struct field *field_find(const struct field *table, const char *name);

/* A field as a statement names it. */
struct field_ref {
    const struct field *field;
    int part; /* of a cursor, from 0 */
};

/* False: the table (NULL: an empty one) has no such field. `name` may be "cursor_1", "cursor_2" for the parts
 * of a KIND_CURSOR field called "cursor". */
bool field_ref_find(const struct field *table, const char *name, struct field_ref *ref);

/* The value of a decoded field as PostgreSQL's text input takes it, NULL for absent: arrays as {"a","b"}, an
 * object as JSON with its numbers as they came. */
const char *field_ref_value(const struct field_ref *ref, const void *values, struct arena *arena);

/* Both in one. A name that is not in the table ends the process: names are checked before the service starts.
 */
const char *field_param(const struct field *table, const void *values, const char *name, struct arena *arena);

#endif
