/* Fuzzes the parsers of model and embedding responses: no input breaks them, and their results meet the
 * contracts of their headers. */
#include "server/remote/embedder_wire.h"
#include "server/remote/llm_wire.h"
#include "tests/fuzz/fuzz.h"

static void check_llm(const uint8_t *data, size_t size, struct arena *arena)
{
    struct llm_reading r;
    char *body = arena_copy(arena, data, size);
    bool valid = llm_wire_read(body, size, arena, &r);
    HOLDS(r.tokens_in >= 0 && r.tokens_out >= 0 && r.cache_written >= 0 && r.cache_read >= 0);
    HOLDS(r.tokens_in >= r.cache_written + r.cache_read);
    if (r.error)
        HOLDS(strlen(r.error) >= 1 && strlen(r.error) <= 64 && !strpbrk(r.error, " \"\n"));
    if (valid && r.text)
        HOLDS(utf8_check(r.text, strlen(r.text)) == strlen(r.text));
    struct decimal cost = llm_wire_cost(&r, decimal_from_int(3), decimal_from_int(15));
    HOLDS(!decimal_is_valid(cost) || decimal_sign(cost) >= 0);
}

static void check_embeddings(const uint8_t *data, size_t size, struct arena *arena)
{
    enum { COUNT = 3, DIM = 2 };
    float out[COUNT * DIM] = { 0 };
    struct embedder_wire w = { .count = COUNT, .dim = DIM, .out = out };
    embedder_wire_begin(&w, arena_copy(arena, data, size), size, arena);
    while (embedder_wire_next(&w))
        ;
    HOLDS(w.found <= COUNT);
    if (w.fault != EMBEDDINGS_OK)
        return;
    HOLDS(w.found == COUNT);
    for (int i = 0; i < COUNT; i++) {
        float length = out[i * DIM] * out[i * DIM] + out[i * DIM + 1] * out[i * DIM + 1];
        HOLDS(length > 0.999f && length < 1.001f);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = { 0 };
    check_llm(data, size, &arena);
    check_embeddings(data, size, &arena);
    arena_release(&arena);
    return 0;
}
