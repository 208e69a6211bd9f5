/* Semantic search: questions phrased differently from the memories that answer them
 * (tests/data/retrieval). */
#include "core/embed/embed.h"

#include "core/base/buf.h"
#include "tests/core/embed_weights.h"

enum { MOST = 400, TOP = 5 };

/* Slightly below the values measured when this was written: 0.735, 0.634 and 48 of 78. */
static const double RECALL_FLOOR = 0.71, MRR_FLOOR = 0.61, NO_WORD_FLOOR = 0.58;

struct memory {
    const char *id;
    float vector[EMBED_DIM];
};

static struct arena arena;
static struct embedder embedder;
static struct memory memories[MOST];
static size_t memory_count;

/* The text of a member; the data has no escapes. */
static const char *member(const char *line, const char *name)
{
    const char *at = strstr(line, arena_fmt(&arena, "\"%s\":", name));
    ck_assert_ptr_nonnull(at);
    at = strchr(at + strlen(name) + 3, '"') + 1;
    return arena_copy(&arena, at, strcspn(at, "\""));
}

static void load_memories(void)
{
    char *file = unit_file(&arena, "retrieval/memories.jsonl");
    for (char *line; (line = unit_line(&file)); memory_count++) {
        ck_assert(!strchr(line, '\\') && memory_count < MOST);
        struct memory *m = &memories[memory_count];
        m->id = member(line, "id");
        embed_text(&embedder.embed, embedder.scratch,
                   arena_fmt(&arena, "%s\n%s", member(line, "question"), member(line, "answer")), m->vector);
    }
}

/* The rank of the memory: 1 is the nearest. */
static size_t place_of(const char *id, const char *query)
{
    float v[EMBED_DIM];
    embed_text(&embedder.embed, embedder.scratch, query, v);
    const struct memory *wanted = NULL;
    for (size_t i = 0; i < memory_count; i++)
        if (strcmp(memories[i].id, id) == 0)
            wanted = &memories[i];
    ck_assert_ptr_nonnull(wanted);
    size_t place = 1;
    for (size_t i = 0; i < memory_count; i++)
        place += embed_cosine(v, memories[i].vector) > embed_cosine(v, wanted->vector);
    return place;
}

START_TEST(questions_in_other_words_find_their_memories)
{
    embedder_open(&embedder);
    load_memories();
    ck_assert_uint_ge(memory_count, 120);
    char *file = unit_file(&arena, "retrieval/queries.jsonl");
    double found = 0, reciprocal = 0, count = 0, no_word_found = 0, no_word = 0;
    for (char *line; (line = unit_line(&file)); count++) {
        size_t place = place_of(member(line, "relevant"), member(line, "query"));
        bool shares = strstr(line, "\"shares_no_word\":false");
        found += place <= TOP;
        reciprocal += 1 / (double)place;
        no_word += !shares;
        no_word_found += !shares && place <= TOP;
    }
    printf("%.0f questions, %zu memories: recall@%d %.3f, MRR %.3f; %.0f of %.0f without a shared word\n",
           count, memory_count, TOP, found / count, reciprocal / count, no_word_found, no_word);
    ck_assert(count >= 70 && no_word >= 10);
    ck_assert_double_ge(found / count, RECALL_FLOOR);
    ck_assert_double_ge(reciprocal / count, MRR_FLOOR);
    ck_assert_double_ge(no_word_found / no_word, NO_WORD_FLOOR);
    embedder_close(&embedder);
    arena_release(&arena);
}
END_TEST

UNIT_MAIN("embed_recall", questions_in_other_words_find_their_memories)
