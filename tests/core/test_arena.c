/* The arena and its growing text buffer. */
#include "core/base/arena.h"
#include "core/base/buf.h"
#include "tests/core/unit.h"

#include <stdalign.h>
#include <stdint.h>

static struct arena arena;

START_TEST(pieces_of_all_sizes_are_aligned_and_do_not_overlap)
{
    enum { PIECES = 400 };
    unsigned char *piece[PIECES];
    size_t size[PIECES];
    for (size_t i = 0; i < PIECES; i++) {
        size[i] = i * i % 9001;
        piece[i] = arena_alloc(&arena, size[i]);
        HOLDS((uintptr_t)piece[i] % alignof(max_align_t) == 0);
        memset(piece[i], (int)(i & 255), size[i]);
    }
    for (size_t i = 0; i < PIECES; i++)
        for (size_t k = 0; k < size[i]; k++)
            HOLDS(piece[i][k] == (i & 255));
    arena_release(&arena);
    ck_assert_ptr_null(arena.blocks);
}
END_TEST

START_TEST(copies_are_terminated_and_may_hold_nul)
{
    ck_assert_mem_eq(arena_copy(&arena, "a\0b", 3), "a\0b", 4);
    ck_assert_str_eq(arena_copy(&arena, NULL, 0), "");
    ck_assert_str_eq(arena_text(&arena, "text"), "text");
    ck_assert_str_eq(arena_fmt(&arena, "%05d %s", 42, "x"), "00042 x");
    char *zero = arena_zero(&arena, 5000);
    for (size_t i = 0; i < 5000; i++)
        HOLDS(zero[i] == 0);
    arena_release(&arena);
}
END_TEST

START_TEST(a_buffer_keeps_its_content_as_it_grows)
{
    struct buf b = { .arena = &arena };
    for (int i = 0; i < 5000; i++)
        buf_fmt(&b, "%d,", i);
    const char *at = buf_string(&b);
    ck_assert_uint_eq(strlen(at), b.len);
    for (int i = 0; i < 5000; i++) {
        char *end;
        HOLDS(strtol(at, &end, 10) == i && *end == ',');
        at = end + 1;
    }
    HOLDS(*at == '\0');
    arena_release(&arena);
}
END_TEST

START_TEST(a_format_longer_than_the_small_buffer_is_complete)
{
    for (int len = 250; len < 262; len++) {
        struct buf b = { .arena = &arena };
        buf_fmt(&b, "%0*d", len, 7);
        ck_assert_uint_eq(strlen(buf_string(&b)), (size_t)len);
    }
    arena_release(&arena);
}
END_TEST

START_TEST(integers_are_written_as_printf_does)
{
    static const int64_t values[] = { 0, 1, -1, 9, 10, -10, 1234567890, INT64_MAX, INT64_MIN };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct buf b = { .arena = &arena };
        buf_int(&b, values[i]);
        ck_assert_str_eq(buf_string(&b), arena_fmt(&arena, "%lld", (long long)values[i]));
    }
    arena_release(&arena);
}
END_TEST

START_TEST(json_text_escapes_only_what_it_must)
{
    struct buf b = { .arena = &arena };
    buf_json_text(&b, "q\" b\\ s/ \b\f\n\r\t \x01\x1f\x7f é🚀",
                  strlen("q\" b\\ s/ \b\f\n\r\t \x01\x1f\x7f é🚀"));
    ck_assert_str_eq(buf_string(&b), "\"q\\\" b\\\\ s/ \\u0008\\u000c\\n\\r\\t \\u0001\\u001f\x7f é🚀\"");
    b.len = 0;
    buf_json_text(&b, "", 0);
    buf_json_string(&b, NULL);
    ck_assert_str_eq(buf_string(&b), "\"\"null");
    arena_release(&arena);
}
END_TEST

START_TEST(json_keys_are_separated_by_commas)
{
    struct buf b = { .arena = &arena };
    buf_char(&b, '{');
    buf_json_key(&b, "a");
    buf_json_bool(&b, true);
    buf_json_key(&b, "b");
    buf_json_bool(&b, false);
    buf_char(&b, '}');
    ck_assert_str_eq(buf_string(&b), "{\"a\":true,\"b\":false}");
    arena_release(&arena);
}
END_TEST

static char released[8];

static void note_release(void *what)
{
    strncat(released, what, 1);
}

START_TEST(hooks_run_once_and_the_newest_first)
{
    char first[] = "1", second[] = "2", third[] = "3";
    released[0] = '\0';
    arena_on_release(&arena, note_release, first);
    arena_alloc(&arena, 100000); /* hooks survive the arena's growth */
    arena_on_release(&arena, note_release, second);
    ck_assert_str_eq(released, "");
    arena_run_hooks(&arena);
    ck_assert_str_eq(released, "21");
    arena_on_release(&arena, note_release, third);
    arena_release(&arena);
    ck_assert_str_eq(released, "213");
    arena_release(&arena);
    ck_assert_str_eq(released, "213");
}
END_TEST

UNIT_MAIN("arena", pieces_of_all_sizes_are_aligned_and_do_not_overlap, copies_are_terminated_and_may_hold_nul,
          a_buffer_keeps_its_content_as_it_grows, a_format_longer_than_the_small_buffer_is_complete,
          integers_are_written_as_printf_does, json_text_escapes_only_what_it_must,
          json_keys_are_separated_by_commas, hooks_run_once_and_the_newest_first)
