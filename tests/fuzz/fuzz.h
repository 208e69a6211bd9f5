/* Shared by the fuzz targets: the entry point, an assertion that is always on, and a table with every kind of
 * field. */
#ifndef DAYBOOK_TESTS_FUZZ_FUZZ_H
#define DAYBOOK_TESTS_FUZZ_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/cursor.h"
#include "core/base/utf8.h"
#include "server/json/field.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HOLDS(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                       \
        }                                                                                  \
    } while (0)

struct fuzz_point {
    const char *symbol, *price;
    int64_t size;
    struct texts notes;
};

struct fuzz_in {
    const char *text, *line, *number, *flag, *time, *uuid, *choice;
    int64_t count, any;
    struct texts texts, tags, uuids;
    struct fuzz_point *point;
    struct objects points;
};

static const char *const fuzz_choices[] = { "live", "paper", "sim", NULL };

static const struct field fuzz_point_fields[] = {
    FIELD(FROM_BODY, KIND_LINE, struct fuzz_point, symbol, .required = true, .min = 1, .max = 8),
    FIELD(FROM_BODY, KIND_NUMBER, struct fuzz_point, price, .min = 0, .max = 1000000),
    FIELD(FROM_BODY, KIND_INT, struct fuzz_point, size),
    FIELD(FROM_BODY, KIND_TEXTS, struct fuzz_point, notes, .max = 3, .item_max = 10),
    END_FIELDS,
};

/* The same rows for a body and for a query, which has no objects. */
#define FUZZ_ROWS(from)                                                                                 \
    FIELD(from, KIND_TEXT, struct fuzz_in, text, .min = 1, .max = 20),                                  \
        FIELD(from, KIND_LINE, struct fuzz_in, line, .max = 20),                                        \
        FIELD(from, KIND_NUMBER, struct fuzz_in, number), FIELD(from, KIND_BOOL, struct fuzz_in, flag), \
        FIELD(from, KIND_TIME, struct fuzz_in, time, .fallback = "now"),                                \
        FIELD(from, KIND_UUID, struct fuzz_in, uuid),                                                   \
        FIELD(from, KIND_CHOICE, struct fuzz_in, choice, .choices = fuzz_choices),                      \
        FIELD(from, KIND_INT, struct fuzz_in, count, .min = 1, .max = 200, .fallback = "50"),           \
        FIELD(from, KIND_INT, struct fuzz_in, any),                                                     \
        FIELD(from, KIND_TEXTS, struct fuzz_in, texts, .item_max = 20),                                 \
        FIELD(from, KIND_TAGS, struct fuzz_in, tags, .min = 1, .max = 4, .item_max = 8),                \
        FIELD(from, KIND_UUIDS, struct fuzz_in, uuids, .max = 4)

static const char fuzz_now[] = "2026-06-04T10:00:00.000000Z";

/* Every error has a detail or invalid fields, and a problem document in valid UTF-8. */
static inline void fuzz_check_problem(enum err e, const struct problem *p, struct arena *arena)
{
    struct buf out = { .arena = arena };
    HOLDS(e == ERR_INVALID_FIELDS ? p->first != NULL : p->detail != NULL);
    HOLDS(problem_status(e) >= 400 && problem_status(e) < 500);
    problem_json(&out, e, p, "request");
    HOLDS(utf8_check(out.data, out.len) == out.len);
}

#endif
