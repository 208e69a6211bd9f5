/* The problem of a request: one error from errors.def, its detail and all bad fields. */
#ifndef DAYBOOK_SERVER_PROBLEM_H
#define DAYBOOK_SERVER_PROBLEM_H

#include "core/base/buf.h"

enum err {
    OK = 0,
#define X(name, status, title) ERR_##name,
#include "server/errors.def"
#undef X
    ERR_COUNT,
};

enum fault {
#define FAULT(name) FAULT_##name,
#include "server/errors.def"
#undef FAULT
    FAULT_COUNT,
};

struct bad_field {
    struct bad_field *next;
    const char *field, *detail;
    enum fault fault;
};

struct problem {
    struct arena *arena;
    const char *about;  /* the name of the faulty input; NULL: "body" */
    const char *detail; /* NULL: the title is enough */
    struct bad_field *first, *last;
    int count;
};

static inline const char *problem_about(const struct problem *p)
{
    return p->about ? p->about : "body";
}

#define must_check __attribute__((warn_unused_result))

/* Returns from the calling function if a step fails. */
#define TRY(step)                  \
    do {                           \
        enum err try_err = (step); \
        if (try_err != OK)         \
            return try_err;        \
    } while (0)

/* Makes the problem empty. Its texts are allocated in `arena` from now on. */
void problem_begin(struct problem *p, struct arena *arena);
/* Makes the problem empty, in the same arena: for an error that was dealt with, or before another try. */
void problem_clear(struct problem *p);

/* Bytes of the texts that are not UTF-8 become question marks. */

/* Sets the detail and returns `e`, so that `return problem_set(p, ERR_…, "…")` reads as one step. */
enum err problem_set(struct problem *p, enum err e, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds a bad field and returns ERR_INVALID_FIELDS. Fields after the first 100 are only counted. Copies
 * `field`. */
enum err problem_field(struct problem *p, const char *field, enum fault fault, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

int problem_status(enum err e);
const char *problem_title(enum err e);
const char *problem_code(enum err e);         /* "not_found" */
const char *problem_fault_code(enum fault f); /* "too_long" */

/* The whole application/problem+json document. */
void problem_json(struct buf *out, enum err e, const struct problem *p, const char *request_id);

#endif
