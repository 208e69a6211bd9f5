/* A process without memory ends with a message that names the size. */
#include "core/base/memory.h"
#include "core/base/arena.h"
#include "tests/core/unit.h"

#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* The sanitizer would end the process with a report of its own. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static volatile size_t too_much = SIZE_MAX / 8; /* volatile: the compiler rejects such a size if it sees it */

static void alloc(void)
{
    memory_alloc(too_much);
}

static void zero(void)
{
    memory_zero(too_much / 2, 2);
}

static void zero_beyond_any_size(void)
{
    memory_zero(too_much, 16);
}

static void resize(void)
{
    memory_resize(memory_alloc(16), too_much);
}

static void arena(void)
{
    arena_alloc(&(struct arena){ 0 }, too_much);
}

static const struct {
    void (*run)(void);
    size_t bytes;
} cases[] = {
    { alloc, SIZE_MAX / 8 },
    { zero, SIZE_MAX / 8 / 2 * 2 },
    { zero_beyond_any_size, SIZE_MAX },
    { resize, SIZE_MAX / 8 },
    { arena, 0 },
};

/* Runs it in a process of its own; `said` gets what that prints on stderr. Returns how it ended. */
static int status_of(void (*run)(void), char *said, size_t size)
{
    int ends[2], status;
    size_t len = 0;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
        dup2(ends[1], STDERR_FILENO);
        run();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t n; (n = read(ends[0], said + len, size - 1 - len)) > 0;)
        len += (size_t)n;
    said[len] = 0;
    close(ends[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

START_TEST(without_memory_the_process_ends_and_names_the_size)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char said[4096], expected[64];
        int status = status_of(cases[i].run, said, sizeof said);
        snprintf(expected, sizeof expected, "daybookd: out of memory: %zu bytes\n", cases[i].bytes);
        if (!cases[i].bytes) /* the arena adds its own bytes */
            expected[strlen("daybookd: out of memory: ")] = 0;
        ck_assert_msg(strstr(said, expected) != NULL, "case %zu said: %s", i, said);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}
END_TEST

START_TEST(memory_is_as_large_and_as_clear_as_asked)
{
    char *zeros = memory_zero(100, 10);
    for (size_t i = 0; i < 1000; i++)
        HOLDS(zeros[i] == 0);
    memset(zeros, 7, 1000);
    zeros = memory_resize(zeros, 2000);
    HOLDS(zeros[999] == 7);
    free(zeros);
    free(memory_zero(0, 8));
    char *text = memory_text("copied");
    ck_assert_str_eq(text, "copied");
    free(text);
}
END_TEST

UNIT_MAIN("memory", without_memory_the_process_ends_and_names_the_size,
          memory_is_as_large_and_as_clear_as_asked)
