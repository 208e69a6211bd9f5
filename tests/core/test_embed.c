/* The built-in embedder, against vectors computed from the unrounded weights
 * (tests/data/embed/make.mjs). */
#include "core/embed/embed.h"

#include <math.h>

#include "core/base/hash.h"
#include "core/embed/embed_file.h"
#include "core/embed/embed_kernels.h"
#include "tests/core/embed_weights.h"

static struct arena arena;
static struct embedder embedder;

/* "\n", "\t" and "\\" are unescaped. */
static const char *unescaped(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++)
        if (*from == '\\') {
            from++;
            *to++ = *from == 'n' ? '\n' : *from == 't' ? '\t' : *from;
        } else {
            *to++ = *from;
        }
    *to = '\0';
    return text;
}

static void embed(const char *text, float out[EMBED_DIM])
{
    embed_text(&embedder.embed, embedder.scratch, text, out);
}

/* The next text of the file with its normalized vector; NULL at the end. */
static const char *next_reference(char **file, float want[EMBED_DIM])
{
    char *line = unit_line(file), *columns[2];
    if (!line)
        return NULL;
    unit_columns(line, columns, 2);
    double sum = 0;
    for (size_t i = 0; i < EMBED_DIM; i++) {
        want[i] = strtof(columns[1], &columns[1]);
        sum += (double)want[i] * (double)want[i];
    }
    for (size_t i = 0; i < EMBED_DIM; i++)
        want[i] = (float)((double)want[i] / sqrt(sum));
    return unescaped(columns[0]);
}

START_TEST(vectors_are_close_to_those_of_the_unrounded_model)
{
    embedder_open(&embedder);
    char *file = unit_file(&arena, "embed/reference.tsv");
    float want[EMBED_DIM], got[EMBED_DIM];
    int count = 0;
    for (const char *text; (text = next_reference(&file, want)); count++) {
        embed(text, got);
        double cosine = embed_cosine(want, got);
        if (cosine < 0.9995)
            ck_abort_msg("cosine %.6f: %s", cosine, text);
    }
    ck_assert_int_ge(count, 30);
    embedder_close(&embedder);
    arena_release(&arena);
}
END_TEST

START_TEST(every_text_has_a_vector_of_length_one)
{
    static const char *const texts[] = {
        "",           " ", "\n\n",         "\u2603",  "\u2603\u2603\u2603", "\u0301", "...", "\u65e5\u672c",
        "\U0001f680", "a", "''''&&&&----", "\x01\x02"
    };
    embedder_open(&embedder);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        float got[EMBED_DIM];
        embed(texts[i], got);
        ck_assert_double_eq_tol(embed_cosine(got, got), 1, 1e-5);
    }
    embedder_close(&embedder);
}
END_TEST

START_TEST(the_same_text_gives_the_same_bytes)
{
    static const char text[] = "Why did the bank cut its outlook for net interest income?";
    embedder_open(&embedder);
    float one[EMBED_DIM], other[EMBED_DIM], two[EMBED_DIM];
    embed(text, one);
    embed("something else, and longer, that leaves its traces in the room where the work is done", other);
    embed(text, two);
    ck_assert_mem_eq(one, two, sizeof one);
    ck_assert_double_lt(embed_cosine(one, other), 0.9);
    embedder_close(&embedder);
}
END_TEST

START_TEST(all_processors_get_the_same_vectors)
{
    embedder_open(&embedder);
    char *file = unit_file(&arena, "embed/reference.tsv");
    float want[EMBED_DIM], plain[EMBED_DIM], best[EMBED_DIM];
    for (const char *text; (text = next_reference(&file, want));) {
        embedder.embed.kernels = &embed_kernels_any;
        embed(text, plain);
        embedder.embed.kernels = embed_kernels_best();
        embed(text, best);
        for (size_t i = 0; i < EMBED_DIM; i++)
            HOLDS(fabsf(plain[i] - best[i]) <= 1e-5f);
    }
    embedder_close(&embedder);
    arena_release(&arena);
}
END_TEST

START_TEST(white_space_and_compatible_characters_make_no_difference)
{
    static const char *const pairs[][2] = {
        { "gross margin fell", "  gross\n\tmargin\u00a0\u3000fell  " },
        { "gross margin fell", "gross margin f\u00e9ll" },
        { "financial office", "\ufb01nancial o\ufb03ce" },
        { "caf\u00e9 in Z\u00fcrich", "cafe\u0301 in Zu\u0308rich" },
        { "up 2 percent", "up \u00b2 percent" },
    };
    embedder_open(&embedder);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        float one[EMBED_DIM], two[EMBED_DIM];
        embed(pairs[i][0], one);
        embed(pairs[i][1], two);
        if (i == 1) /* control: a different word has a different vector */
            ck_assert_mem_ne(one, two, sizeof one);
        else
            ck_assert_mem_eq(one, two, sizeof one);
    }
    embedder_close(&embedder);
}
END_TEST

/* ---- the kernels ---- */

/* Memory followed by a guard page. */
static void *at_the_edge(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page * page;
    char *all = mmap(NULL, pages + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(all, MAP_FAILED);
    ck_assert_int_eq(mprotect(all + pages, page, PROT_NONE), 0);
    return memset(all + pages - bytes, 1, bytes);
}

static float *numbers_at_the_edge(size_t count)
{
    float *all = at_the_edge(count * sizeof *all);
    for (size_t i = 0; i < count; i++)
        all[i] = (float)(i % 17) / 16 - 0.5f;
    return all;
}

static void try_kernels(const struct embed_kernels *k, size_t rows)
{
    enum { IN = 32, OUT = 48, WIDTH = 256 };
    struct embed_dense d = { at_the_edge(IN * OUT), numbers_at_the_edge(OUT), numbers_at_the_edge(OUT), IN,
                             OUT };
    const float *x = numbers_at_the_edge(rows * IN);
    float *y = numbers_at_the_edge(rows * OUT), *sum = numbers_at_the_edge(rows * OUT);
    k->dense(&d, x, rows, y, EMBED_SET);
    k->dense(&d, x, rows, sum, EMBED_ADD);
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < OUT; o++) {
            float want = 0;
            for (size_t i = 0; i < IN; i++)
                want += x[r * IN + i]; /* each weight is 1 */
            want = want * d.scales[o] + d.bias[o];
            HOLDS(fabsf(y[r * OUT + o] - want) < 1e-5f);
            HOLDS(fabsf(sum[r * OUT + o] - want - ((float)((r * OUT + o) % 17) / 16 - 0.5f)) < 1e-5f);
        }
    k->dense(&d, x, rows, sum, EMBED_RELU);
    for (size_t i = 0; i < rows * OUT; i++)
        HOLDS(fabsf(sum[i] - fmaxf(y[i], 0)) < 1e-6f);

    float *out = numbers_at_the_edge(rows * WIDTH);
    k->norm(numbers_at_the_edge(rows * WIDTH), rows, WIDTH, numbers_at_the_edge(WIDTH),
            numbers_at_the_edge(WIDTH), out);
    k->attend(numbers_at_the_edge(rows * 3 * WIDTH), rows, WIDTH, numbers_at_the_edge(rows), out);
    for (size_t i = 0; i < rows * WIDTH; i++)
        HOLDS(fabsf(out[i]) <= 0.5f); /* a mean of values */
}

START_TEST(kernels_stay_inside_their_rows)
{
    for (size_t rows = 1; rows <= 13; rows++) {
        try_kernels(&embed_kernels_any, rows);
        try_kernels(embed_kernels_best(), rows);
    }
}
END_TEST

/* ---- long texts ---- */

static char *repeated(const char *text, size_t bytes)
{
    char *all = arena_alloc(&arena, bytes + 1);
    for (size_t i = 0; i < bytes; i++)
        all[i] = text[i % strlen(text)];
    all[bytes] = '\0';
    return all;
}

START_TEST(a_long_text_is_cut_at_pieces_words_and_bytes)
{
    embedder_open(&embedder);
    float one[EMBED_DIM], two[EMBED_DIM];
    char *text = repeated("earnings rose again. ", 40000);
    ck_assert_uint_eq(embed_pieces(&embedder.embed, embedder.scratch, text), EMBED_PIECES_MAX);
    ck_assert_uint_eq(embed_text_bytes(text), EMBED_BYTES_MAX);
    embed(text, one);
    text[EMBED_BYTES_MAX] = '\0';
    embed(text, two);
    ck_assert_mem_eq(one, two, sizeof one);

    text = repeated("earnings rose again. ", EMBED_BYTES_MAX - 1000);
    embed(text, one);
    memcpy(text + strlen(text) - 10, "inflation!", 10); /* after the 1,000th word */
    embed(text, two);
    ck_assert_mem_eq(one, two, sizeof one);
    memcpy(text + 2100, "inflation!", 10); /* after the 128th piece, before the 1,000th word */
    embed(text, two);
    ck_assert_mem_ne(one, two, sizeof one);
    ck_assert_double_gt(embed_cosine(one, two), 0.99);

    ck_assert_uint_eq(embed_text_bytes(repeated("\u2603", 3 * 10000)), EMBED_BYTES_MAX - EMBED_BYTES_MAX % 3);
    embedder_close(&embedder);
    arena_release(&arena);
}
END_TEST

/* ---- corrupt weight files ---- */

/* A copy of exactly its own size, so that the sanitizer detects a read past its end. */
static bool opens(const unsigned char *bytes, size_t len)
{
    void *copy;
    ck_assert_int_eq(posix_memalign(&copy, EMBED_ALIGN, len ? len : 1), 0);
    memcpy(copy, bytes, len);
    struct embed e;
    bool opened = embed_open(copy, len, &e);
    free(copy);
    return opened;
}

START_TEST(a_truncated_file_is_refused)
{
    size_t len;
    const unsigned char *bytes = embed_weights_map(&len);
    ck_assert(opens(bytes, len));
    static const size_t lens[] = { 0, 1, 8, 31, 32, 33, 500, 512, 4096, 100000 };
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++)
        ck_assert(!opens(bytes, lens[i]));
    ck_assert(!opens(bytes, len - 1) && !opens(bytes, len - 64));
    ck_assert(!opens(bytes + 1, len - 1));
}
END_TEST

/* Changes one number of a copy. With `sealed` the checksum is recomputed, so that only the range checks can
 * refuse it. */
static bool opens_with(const unsigned char *bytes, size_t len, size_t at, uint32_t value, bool sealed)
{
    unsigned char *copy = arena_alloc(&arena, len + EMBED_ALIGN);
    copy += EMBED_ALIGN - (uintptr_t)copy % EMBED_ALIGN;
    memcpy(copy, bytes, len);
    memcpy(copy + at, &value, sizeof value);
    uint64_t sum = hash_bytes(copy + 32, len - 32, 0);
    if (sealed)
        memcpy(copy + 24, &sum, sizeof sum);
    struct embed e;
    bool opened = embed_open(copy, len, &e);
    arena_release(&arena);
    return opened;
}

static size_t section_at(const unsigned char *bytes, enum embed_section which)
{
    uint32_t offset;
    memcpy(&offset, bytes + 32 + 8 * which, sizeof offset);
    return offset;
}

START_TEST(a_file_with_other_bytes_is_refused)
{
    size_t len;
    const unsigned char *bytes = embed_weights_map(&len);
    for (size_t at = 0; at < len - 4; at += len / 23) {
        uint32_t was;
        memcpy(&was, bytes + at, sizeof was);
        ck_assert(!opens_with(bytes, len, at, was ^ 1, false));
    }
    ck_assert(!opens_with(bytes, len, 8, EMBED_VERSION + 1, true));
    ck_assert(!opens_with(bytes, len, 12, EMBED_SECTIONS - 1, true));
    ck_assert(!opens_with(bytes, len, 16, (uint32_t)len + 64, true));
}
END_TEST

START_TEST(out_of_range_numbers_are_refused_even_with_a_valid_checksum)
{
    size_t len;
    const unsigned char *bytes = embed_weights_map(&len);
    ck_assert(opens_with(bytes, len, 8, EMBED_VERSION, true)); /* control */
    for (size_t i = 0; i < EMBED_SECTIONS; i++) {
        ck_assert(!opens_with(bytes, len, 32 + 8 * i, (uint32_t)(len + 64) / 64 * 64, true));
        ck_assert(!opens_with(bytes, len, 32 + 8 * i, 1, true));
        ck_assert(!opens_with(bytes, len, 36 + 8 * i, UINT32_MAX - 64, true));
    }
    ck_assert(!opens_with(bytes, len, 36 + 8 * SECTION_NODES, 0, true));
    ck_assert(!opens_with(bytes, len, section_at(bytes, SECTION_NODES), UINT32_MAX - 3, true));
    ck_assert(!opens_with(bytes, len, section_at(bytes, SECTION_NODES) + 8, 0xffffffff, true));
    ck_assert(!opens_with(bytes, len, section_at(bytes, SECTION_PIECE_FORMS) + 4, 0xffffff01, true));
    ck_assert(!opens_with(bytes, len, section_at(bytes, SECTION_WORD_FORMS) + 4, 0xffffff01, true));
    ck_assert(!opens_with(bytes, len, section_at(bytes, SECTION_WORD_ENDS) + 400, UINT32_MAX, true));
    ck_assert(
        !opens_with(bytes, len, section_at(bytes, SECTION_WORD_ENDS) + 4 * EMBED_WORDS, UINT32_MAX, true));
}
END_TEST

UNIT_MAIN("embed", vectors_are_close_to_those_of_the_unrounded_model, every_text_has_a_vector_of_length_one,
          the_same_text_gives_the_same_bytes, all_processors_get_the_same_vectors,
          kernels_stay_inside_their_rows, white_space_and_compatible_characters_make_no_difference,
          a_long_text_is_cut_at_pieces_words_and_bytes, a_truncated_file_is_refused,
          a_file_with_other_bytes_is_refused, out_of_range_numbers_are_refused_even_with_a_valid_checksum)
