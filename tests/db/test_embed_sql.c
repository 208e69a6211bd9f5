/* tools/embed.awk: its output, and its error messages. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EMBED                                                                                          \
    "awk -v what=statements -v source=/dev/null -v header=/dev/null -v text=/dev/stdout -f " TEST_DATA \
    "/../../tools/embed.awk"

enum { MOST_TEXT = 16384 };

/* What the command prints to stdout and stderr. */
static int run(const char *command, char out[MOST_TEXT])
{
    FILE *from = popen(command, "r");
    ck_assert_ptr_nonnull(from);
    out[fread(out, 1, MOST_TEXT - 1, from)] = 0;
    int status = pclose(from);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

START_TEST(quoted_text_comments_casts_and_slices_are_left_alone)
{
    static char made[MOST_TEXT], expected[MOST_TEXT];
    ck_assert_int_eq(run(EMBED " " TEST_DATA "/embed_sql/tricky.sql", made), 0);
    ck_assert_int_eq(run("cat " TEST_DATA "/embed_sql/tricky.expected", expected), 0);
    ck_assert_str_eq(made, expected);
}
END_TEST

START_TEST(invalid_input_is_rejected_with_its_line)
{
    static const struct {
        const char *sql, *said;
    } cases[] = {
        { "select 1\n", ":1: text before the first statement" },
        { "-- name: a :read :one :together\nselect 1\n",
          ":1: only a :write :one statement is marked :together" },
        { "-- name: a :write :one :together\nselect 1\n",
          ":1: a :together statement begins with given as (select ...)" },
        { "-- name: a :write :one :together\nwith given as (\n    select :id\n), x as (select :id)\nselect "
          "1\n",
          ":1: all parameters of a :together statement are in `given`" },
        { "-- name: a :read\nselect 1\n", ":1: statement a needs a lane and a shape" },
        { "-- name: a :read :many\nselect 1\n", ":1: unknown word :many" },
        { "-- name: A :read :one\nselect 1\n", ":1: bad statement name" },
        { "-- name: a :read :one\nselect {columns}\n", ":1: there is no part columns above" },
        /* A part can be used only below its definition, so that none contains itself, and only in its file.
         */
        { "-- part: a\n{b}\n-- part: b\n1\n", ":1: there is no part b above" },
        { "-- part: a\n{a}\n", ":1: there is no part a above" },
        { "-- part: a\n1\n-- name: b :read :one\nselect {other.a}\n", ":3: there is no part other.a above" },
        { "-- name: a :read :one\nselect 'x\n-- name: b :read :one\n",
          ":1: a quote or a comment has no end" },
        { "-- name: a :read :one\nselect /* /* */ 1\n", ":1: a quote or a comment has no end" },
        { "-- part: a\nselect $$ $ $\n-- name: b :read :one\n", ":1: a quote or a comment has no end" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[] = "/tmp/daybook-embed-XXXXXX", command[1024], expected[256];
        static char said[MOST_TEXT];
        int fd = mkstemp(path);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, cases[i].sql, strlen(cases[i].sql)), (ssize_t)strlen(cases[i].sql));
        close(fd);
        snprintf(command, sizeof command, EMBED " %s 2>&1", path);
        snprintf(expected, sizeof expected, "embed.awk: %s%s\n", path, cases[i].said);
        int status = run(command, said);
        unlink(path);
        ck_assert_str_eq(said, expected);
        ck_assert_int_eq(status, 1);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("embed_sql");
    TCase *all = tcase_create("embed_sql");
    tcase_add_test(all, quoted_text_comments_casts_and_slices_are_left_alone);
    tcase_add_test(all, invalid_input_is_rejected_with_its_line);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
