/* Bodies that are spooled to a file and read line by line. */
#include "server/http/spool.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "core/base/buf.h"
#include "tests/core/unit.h"
#include "tests/server/stderr.h"

enum { PLENTY = 1 << 30 };

static struct arena arena;
static struct spool spool;

static void keep(const char *bytes, size_t len)
{
    ck_assert_int_eq(spool_open(&spool, PLENTY), OK);
    ck_assert_int_eq(spool_add(&spool, bytes, len), OK);
}

/* The next result other than SPOOL_MORE. */
static enum spool_result next(size_t most, char **line, size_t *len)
{
    enum spool_result result;
    do
        result = spool_step(&spool, most, line, len);
    while (result == SPOOL_MORE);
    HOLDS((*line != NULL) == (result == SPOOL_LINE));
    return result;
}

/* All results as text, such as "1:first|3:third|4!": the fourth line is too long. */
static const char *shown(size_t most)
{
    struct buf out = { .arena = &arena };
    char *line;
    size_t len;
    for (enum spool_result result; (result = next(most, &line, &len)) != SPOOL_END;) {
        ck_assert(result == SPOOL_LINE || result == SPOOL_TOO_LONG);
        buf_fmt(&out, "%s%lld", out.len ? "|" : "", (long long)spool.number);
        buf_char(&out, result == SPOOL_LINE ? ':' : '!');
        if (result == SPOOL_LINE) {
            HOLDS(len && len <= most && line[len] == '\0');
            buf_add(&out, line, len);
        }
    }
    return buf_string(&out);
}

static const struct {
    const char *body, *shown;
} bodies[] = {
    { "", "" },
    { "a", "1:a" },
    { "a\n", "1:a" },
    { "a\r\n", "1:a" },
    { "a\nb", "1:a|2:b" },
    { "a\r\nb\nc\r\n", "1:a|2:b|3:c" },
    { "\n", "" },
    { "\r\n\n\r\n", "" },
    { "\n\na\n\n\nb\n\n", "3:a|6:b" },
    { "a\rb\n", "1:a\rb" },
    { "a\r", "1:a\r" }, /* not a line end, and harmless in JSON */
    { "a\r\r\n", "1:a\r" },
    { " \n\t\n", "1: |2:\t" },
    { "\xff\xc3\n", "1:\xff\xc3" },
    { "12345678\n", "1:12345678" },
    { "12345678\r\n", "1:12345678" },
    { "12345678", "1:12345678" },
    { "123456789\n", "1!" },
    { "123456789\r\nb", "1!|2:b" },
    { "123456789", "1!" },
    { "12345678\r", "1!" },
    { "a\n123456789012345678901234567890\nb\n", "1:a|2!|3:b" },
    { "123456789\n123456789\n\nb\n123456789", "1!|2!|4:b|5!" },
};

START_TEST(lines_are_split_counted_and_returned_unchanged)
{
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        keep(bodies[i].body, strlen(bodies[i].body));
        ck_assert_str_eq(shown(8), bodies[i].shown);
        spool_close(&spool);
    }
    arena_release(&arena);
}
END_TEST

START_TEST(a_line_may_contain_a_nul)
{
    char *line;
    size_t len;
    keep("a\0b\nc", 5);
    ck_assert_int_eq(next(8, &line, &len), SPOOL_LINE);
    ck_assert_uint_eq(len, 3);
    ck_assert_mem_eq(line, "a\0b", 4);
    spool_close(&spool);
}
END_TEST

/* Around the size of a read, so that reads end at every position of a line. */
START_TEST(lines_of_every_length_are_returned)
{
    enum { MOST = 150000, LINES = 60 };
    char *text = arena_alloc(&arena, MOST);
    for (int shift = 0; shift < 3; shift++) {
        ck_assert_int_eq(spool_open(&spool, PLENTY), OK);
        size_t lengths[LINES];
        for (size_t i = 0; i < LINES; i++) {
            lengths[i] = i % 3 == 0 ? 65536 - 4 + i % 9 : i % 3 == 1 ? 1 + i * i % 977 : MOST - (size_t)shift;
            memset(text, 'a' + (int)(i % 26), lengths[i]);
            ck_assert_int_eq(spool_add(&spool, text, lengths[i]), OK);
            ck_assert_int_eq(spool_add(&spool, &"\r\n"[i & 1], 2 - (i & 1)), OK);
        }
        for (size_t i = 0; i < LINES; i++) {
            char *line;
            size_t len;
            ck_assert_int_eq(next(MOST, &line, &len), SPOOL_LINE);
            ck_assert_int_eq(spool.number, (int64_t)i + 1);
            ck_assert_uint_eq(len, lengths[i]);
            for (size_t k = 0; k < len; k++)
                HOLDS(line[k] == 'a' + (int)(i % 26));
        }
        ck_assert_int_eq(next(MOST, &(char *){ 0 }, &(size_t){ 0 }), SPOOL_END);
        ck_assert_int_eq(next(MOST, &(char *){ 0 }, &(size_t){ 0 }), SPOOL_END);
        spool_close(&spool);
    }
    arena_release(&arena);
}
END_TEST

START_TEST(the_time_and_memory_of_a_step_do_not_grow_with_the_body)
{
    enum { PIECE = 1 << 20, PIECES = 64, MOST = 100000 };
    char *piece = arena_zero(&arena, PIECE);
    memset(piece, 'x', PIECE);
    ck_assert_int_eq(spool_open(&spool, PLENTY), OK);
    for (int i = 0; i < PIECES; i++)
        ck_assert_int_eq(spool_add(&spool, piece, PIECE), OK);
    ck_assert_int_eq(spool_add(&spool, "\nlast", 5), OK);
    char *line;
    size_t len;
    ck_assert_int_eq(next(MOST, &line, &len), SPOOL_TOO_LONG);
    ck_assert_int_lt(spool.at, 4 * MOST); /* it is reported as soon as it is known */
    int64_t before = spool.at;
    for (enum spool_result result; (result = spool_step(&spool, MOST, &line, &len)) == SPOOL_MORE;) {
        HOLDS(spool.at - before <= 65536);
        before = spool.at;
    }
    ck_assert_str_eq(line, "last");
    ck_assert_int_eq(spool.number, 2);
    ck_assert_uint_lt(spool.cap, 4 * MOST);
    struct stat st;
    ck_assert_int_eq(fstat(spool.fd, &st), 0);
    ck_assert_int_eq(st.st_size, (off_t)PIECE * PIECES + 5);
    ck_assert_int_lt(st.st_blocks * 512, 8 * PIECE); /* the space of the consumed part is freed */
    spool_close(&spool);
    arena_release(&arena);
}
END_TEST

static int files_in(const char *folder)
{
    DIR *d = opendir(folder);
    ck_assert_ptr_nonnull(d);
    int count = 0;
    for (const struct dirent *e; (e = readdir(d));)
        count += e->d_name[0] != '.';
    closedir(d);
    return count;
}

START_TEST(the_file_has_no_name)
{
    char folder[] = "/tmp/daybook-spool-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("TMPDIR", folder, 1);
    keep("a\n", 2);
    ck_assert_int_eq(files_in(folder), 0);
    struct stat file, in;
    ck_assert_int_eq(fstat(spool.fd, &file), 0);
    ck_assert_int_eq(stat(folder, &in), 0);
    ck_assert_uint_eq(file.st_dev, in.st_dev);
    ck_assert_uint_eq(file.st_nlink, 0);
    ck_assert_uint_eq(file.st_mode & 077, 0);
    spool_close(&spool);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(without_a_folder_a_body_is_rejected_and_the_reason_is_logged)
{
    setenv("TMPDIR", "/nonexistent", 1);
    stderr_begin();
    enum err err = spool_open(&spool, PLENTY);
    const char *said = stderr_end();
    ck_assert_int_eq(err, ERR_INTERNAL);
    ck_assert_ptr_nonnull(strstr(said, "spool_failed"));
    ck_assert_ptr_nonnull(strstr(said, "No such file or directory"));
    spool_close(&spool);
}
END_TEST

START_TEST(without_disk_space_a_body_is_rejected_and_the_reason_is_logged)
{
    static char bytes[4096];
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(spool_open(&spool, PLENTY), OK);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 6000, RLIM_INFINITY }), 0);
    ck_assert_int_eq(spool_add(&spool, bytes, sizeof bytes), OK);
    enum err err = spool_add(&spool, bytes, sizeof bytes);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
    ck_assert_int_eq(err, ERR_INSUFFICIENT_STORAGE);
    ck_assert_int_eq(problem_status(err), 507);
    spool_close(&spool);
}
END_TEST

START_TEST(a_truncated_file_is_an_error)
{
    static char bytes[4096];
    keep(bytes, sizeof bytes);
    ck_assert_int_eq(ftruncate(spool.fd, 100), 0);
    char *line;
    size_t len;
    ck_assert_int_eq(next(8192, &line, &len), SPOOL_FAILED);
    spool_close(&spool);
    ck_assert_int_eq(next(8192, &line, &len), SPOOL_END);
}
END_TEST

START_TEST(all_spools_share_a_limit_and_free_space_when_read_and_closed)
{
    enum { MEGABYTE = 1 << 20, MOST = 8 * MEGABYTE };
    char *block = arena_alloc(&arena, MEGABYTE), *line;
    size_t len;
    struct spool other;
    memset(block, 'x', MEGABYTE);
    block[MEGABYTE - 1] = '\n';
    ck_assert_int_eq(spool_open(&spool, MOST), OK);
    ck_assert_int_eq(spool_open(&other, MOST), OK);
    for (int i = 0; i < 7; i++)
        ck_assert_int_eq(spool_add(&spool, block, MEGABYTE), OK);
    ck_assert_int_eq(spool_add(&other, block, MEGABYTE), OK);
    stderr_begin();
    ck_assert_int_eq(spool_add(&other, block, 1), ERR_INSUFFICIENT_STORAGE);
    ck_assert_ptr_nonnull(strstr(stderr_end(), "spool_full"));
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(next(MEGABYTE, &line, &len), SPOOL_LINE);
    if (spool.reserved < 7 * MEGABYTE) /* if the file system can free a part of a file */
        ck_assert_int_eq(spool_add(&other, block, MEGABYTE), OK);
    spool_close(&spool);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(spool_add(&other, block, MEGABYTE), OK);
    spool_close(&other);
    ck_assert_int_eq(spool_open(&spool, MOST), OK);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(spool_add(&spool, block, MEGABYTE), OK);
    spool_close(&spool);
    arena_release(&arena);
}
END_TEST

UNIT_MAIN("spool", lines_are_split_counted_and_returned_unchanged, a_line_may_contain_a_nul,
          lines_of_every_length_are_returned, the_time_and_memory_of_a_step_do_not_grow_with_the_body,
          the_file_has_no_name, without_a_folder_a_body_is_rejected_and_the_reason_is_logged,
          without_disk_space_a_body_is_rejected_and_the_reason_is_logged, a_truncated_file_is_an_error,
          all_spools_share_a_limit_and_free_space_when_read_and_closed)
