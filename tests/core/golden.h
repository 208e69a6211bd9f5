/* Golden files: output is compared with tests/data byte for byte. With GOLDEN=rewrite in the
 * environment of a test program they are rewritten instead; review the diff before you commit it.
 */
#ifndef DAYBOOK_TESTS_CORE_GOLDEN_H
#define DAYBOOK_TESTS_CORE_GOLDEN_H

#include "tests/core/unit.h"

static inline bool golden_rewrites(void)
{
    const char *mode = getenv("GOLDEN");
    return mode && strcmp(mode, "rewrite") == 0;
}

static inline void golden_check(struct arena *arena, const char *name, const char *made)
{
    if (golden_rewrites()) {
        FILE *f = fopen(arena_fmt(arena, "%s/%s", TEST_DATA, name), "wb");
        ck_assert_ptr_nonnull(f);
        ck_assert_uint_eq(fwrite(made, 1, strlen(made), f), strlen(made));
        ck_assert_int_eq(fclose(f), 0);
    }
    ck_assert_str_eq(made, unit_file(arena, name));
}

#endif
