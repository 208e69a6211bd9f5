/* Field tables: the fields of a request's path, query and body, decoded into one struct.
 *
 * A route has one table and one struct. Each row has a field's name, source, type, limits and offset.
 * Statements take the decoded values by the same names (db/statement.h). */
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
    COMPUTED,   /* never in a request: set by the handler, for a statement */
    BODY_NULLS, /* a KIND_TEXTS row: the names of the body's members that are null, for a PATCH that clears
                   them */
};

/* Each kind with its member type. An optional field that is absent or null and has no fallback is decoded as
 * NULL, an integer as FIELD_NO_INT, a list or a cursor as all zero. A max of 0 means no upper limit. A text
 * with a min of 1 or more must contain a visible character. */
enum field_kind {
    KIND_TEXT,    /* const char *: min..max characters, no control characters but \t and \n */
    KIND_LINE,    /* const char *: the same, in one line */
    KIND_INT,     /* int64_t: min..max, both 0 for any */
    KIND_NUMBER,  /* const char *: the digits as sent; min..max, both 0 for any */
    KIND_BOOL,    /* const char *: "true" or "false" */
    KIND_TIME,    /* const char *: RFC 3339, stored as UTC "2026-06-04T10:00:00.000000Z" */
    KIND_UUID,    /* const char *: lower case */
    KIND_NAME,    /* const char *: 1 to 64 ASCII letters, digits and _.-, starting with a letter or digit */
    KIND_KEY,     /* const char *: 1 to max ASCII letters, digits and _ . : / - */
    KIND_CHOICE,  /* const char *: one of `choices` */
    KIND_TEXTS,   /* struct texts: min..max lines of 1..item_max characters, no duplicates */
    KIND_TAGS,    /* struct texts: the same, without commas and tabs, or of `choices`; in a query "a,b" */
    KIND_NUMBERS, /* struct texts: min..max numbers, the digits as sent; body only */
    KIND_UUIDS,   /* struct texts: min..max UUIDs, no duplicates; in a query "a,b" */
    KIND_OBJECT,  /* struct x *: a struct described by `sub`; body only */
    KIND_OBJECTS, /* struct objects: min..max of them; body only */
    KIND_MAP,     /* struct objects: an object with arbitrary names, min..max of them; `sub` has two rows, the
                   * first for the name, the second for the value; body only */
    KIND_SCALAR,  /* const char *: a text (as KIND_LINE), a number or a boolean, stored as JSON; body only */
    KIND_JSON,    /* const char *: any JSON value but null, of at most max bytes without white space, with the
                   * digits of numbers as sent; body only */
    KIND_CURSOR,  /* struct cursor_values; `sub`, if given, has a row for each of its values */
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
    bool above_zero; /* for a number, or each number of a list */
    int64_t min, max;
    int64_t item_max;
    const char *const *choices; /* NULL-terminated */
    const char *fallback; /* the default, decoded like a query value. For a time, the full form, or "now" for
                             field_input.now */
    const struct field *sub; /* the rows of an object, all FROM_BODY */
    size_t sub_size;
};

/* One row. The last arguments are designated initialisers that depend on the kind:
 *     FIELD(FROM_BODY, KIND_LINE, struct lesson_in, takeaway, .required = true, .min = 1, .max = 300),
 *     FIELD(FROM_BODY, KIND_OBJECT, struct check_in, outcome, SUB(outcome_fields, struct outcome_in)), */
/* clang-format off */
#define FIELD(source, what, type, member, ...) \
    { .name = #member, .from = (source), .kind = (what), .offset = offsetof(type, member), __VA_ARGS__ }
#define SUB(table, type) .sub = (table), .sub_size = sizeof(type)
#define END_FIELDS { .name = NULL }
/* clang-format on */

/* A decoded name and value of a path or a query, in valid UTF-8 (see uri_parse). */
struct pair {
    const char *name, *value;
};
struct pairs {
    size_t count;
    const struct pair *items;
};

struct field_input {
    const struct pairs *path, *query;
    const char *body; /* NULL: no body */
    size_t body_len;
    int depth_limit;
    const char *now;       /* in the format of KIND_TIME, for the fallback "now" */
    uint64_t cursor_scope; /* a cursor must have the same scope: see core/base/cursor.h */
};

/* Decodes and checks all fields. ERR_INVALID_FIELDS: `p` lists every bad field. A body that is not valid JSON
 * has its own errors. `out` must be zeroed. Allocates only in the arena. */
enum err field_decode(const struct field *table, const struct field_input *in, struct arena *arena, void *out,
                      struct problem *p) must_check;

/* Whether `min` and `max` of a row are limits. A max below min is no limit; 0 and 0 means that neither is
 * set. */
bool field_has_min(const struct field *f);
bool field_has_max(const struct field *f);

/* The value of a KIND_BOOL field; false if it is absent. */
bool field_is_true(const char *value);

/* The row of that name, or NULL. */
const struct field *field_find(const struct field *table, const char *name);

/* A parameter of a statement: a field, or a part of a cursor. */
struct field_ref {
    const struct field *field;
    int part; /* part of a cursor, from 0 */
};

/* Returns false if the table (NULL: empty) has no such field. `name` may be "cursor_1" or "cursor_2" for the
 * parts of a KIND_CURSOR field called "cursor". */
bool field_ref_find(const struct field *table, const char *name, struct field_ref *ref);

/* The value of a decoded field in PostgreSQL's text format: arrays as {"a","b"}, objects as JSON with the
 * digits of numbers as sent. NULL: absent. */
const char *field_ref_value(const struct field_ref *ref, const void *values, struct arena *arena);

/* Both in one. Aborts if the table has no such field, because names are checked before the service starts. */
const char *field_param(const struct field *table, const void *values, const char *name, struct arena *arena);

#endif
