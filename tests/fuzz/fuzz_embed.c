/* Fuzzes the tokenizers of the built-in embedder: pieces and words. */
#include <math.h>

#include "core/embed/embed_internal.h"
#include "tests/fuzz/fuzz.h"

extern const unsigned char embed_weights[], embed_weights_end[];

static struct embed embed;
static struct embed_scratch scratch;

static void check_pieces(const char *text, const char *end)
{
    size_t count = embed_pieces_cut(&embed, &scratch, text, end);
    HOLDS(count >= 1 && count <= EMBED_PIECES_MAX);
    for (size_t i = 0; i < count; i++) {
        HOLDS(scratch.pieces[i] < EMBED_PIECES);
        HOLDS(i == 0 || scratch.pieces[i] ||
              scratch.pieces[i - 1]); /* a run of unknown pieces counts as one */
    }
}

static void check_words(const char *text, const char *end)
{
    float sum[EMBED_WORD_DIM];
    embed_words(&embed, text, end, sum);
    for (size_t i = 0; i < EMBED_WORD_DIM; i++)
        HOLDS(isfinite(sum[i]) && fabsf(sum[i]) < 100 * EMBED_WORDS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!embed.kernels)
        HOLDS(embed_open(embed_weights, (size_t)(embed_weights_end - embed_weights), &embed));
    if (utf8_check((const char *)data, size) != size || memchr(data, 0, size))
        return 0;
    char *text = malloc(size + 1); /* exactly its size, so that a read past the end is detected */
    HOLDS(text);
    memcpy(text, data, size);
    text[size] = '\0';
    size_t len = embed_text_bytes(text);
    HOLDS(len <= EMBED_BYTES_MAX && len <= size && utf8_check(text, len) == len);
    check_pieces(text, text + len);
    check_words(text, text + len);
    free(text);
    return 0;
}
