/* Shared by the unit tests: one suite per program, lines of a data file, and values from text. */
#ifndef DAYBOOK_TESTS_CORE_UNIT_H
#define DAYBOOK_TESTS_CORE_UNIT_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/time_text.h"
#include "core/ledger/trade.h"

static inline int unit_run(const char *name, const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *all = tcase_create(name);
    tcase_set_timeout(all, 120); /* the sanitizers are slow, and the machine may be */
    for (size_t i = 0; i < count; i++)
        tcase_add_test(all, tests[i]);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#define UNIT_MAIN(name, ...)                                        \
    int main(void)                                                  \
    {                                                               \
        const TTest *const tests[] = { __VA_ARGS__ };               \
        return unit_run(name, tests, sizeof tests / sizeof *tests); \
    }

/* An assertion for loops of millions: Check's own records every success, which is slow. */
#define HOLDS(condition)                                   \
    do {                                                   \
        if (!(condition))                                  \
            ck_abort_msg("does not hold: %s", #condition); \
    } while (0)

/* The whole of a file under tests/data, NUL-terminated. */
static inline char *unit_file(struct arena *arena, const char *name)
{
    FILE *f = fopen(arena_fmt(arena, "%s/%s", TEST_DATA, name), "rb");
    if (!f)
        ck_abort_msg("cannot open tests/data/%s", name);
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *text = arena_alloc(arena, (size_t)size + 1);
    ck_assert_uint_eq(fread(text, 1, (size_t)size, f), (size_t)size);
    text[size] = '\0';
    fclose(f);
    return text;
}

/* The next line of a text, cut out of it; NULL at the end. Lines that start with # are comments. */
static inline char *unit_line(char **text)
{
    while (**text) {
        char *line = *text;
        char *end = line + strcspn(line, "\n");
        *text = *end ? end + 1 : end;
        *end = '\0';
        if (*line != '#')
            return line;
    }
    return NULL;
}

/* Cuts a line at its tabs; missing columns are "". */
static inline void unit_columns(char *line, char **columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        columns[i] = line;
        line += strcspn(line, "\t");
        if (*line)
            *line++ = '\0';
    }
}

static inline struct quantity unit_number(const char *text)
{
    struct quantity q;
    ck_assert_msg(quantity_read(text, &q) <= DECIMAL_ROUNDED, "%s", text);
    return q;
}

static inline int64_t unit_time_us(const char *text)
{
    int64_t us;
    ck_assert_msg(time_text_parse(text, &us), "%s", text);
    return us;
}

static inline const char *unit_repeated(struct arena *arena, const char *text, size_t times)
{
    struct buf out = { .arena = arena };
    while (times--)
        buf_text(&out, text);
    return buf_string(&out);
}

#endif
