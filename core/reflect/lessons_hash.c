/* The hash of a lessons text, by which a trade names the lessons it was made under. */
#include "core/reflect/lessons_hash.h"

#include <string.h>

#include "core/base/sha256.h"
#include "core/base/utf8.h"

/* Hashes the words with one space between them, without copying the text. */
static void add_words(struct sha256 *s, const char *text, const char *end)
{
    const char *word = NULL; /* start of the current word */
    bool first = true;
    while (text < end) {
        const char *at = text;
        bool space = utf8_is_space(utf8_next(&text));
        if (!space && !word) {
            word = at;
            if (!first)
                sha256_add(s, " ", 1);
            first = false;
        } else if (space && word) {
            sha256_add(s, word, (size_t)(at - word));
            word = NULL;
        }
    }
    if (word)
        sha256_add(s, word, (size_t)(end - word));
}

static const char hex[] = "0123456789abcdef";

bool lessons_hash_is_valid(const char *text)
{
    return strspn(text, hex) == LESSONS_HASH_SIZE - 1 && text[LESSONS_HASH_SIZE - 1] == '\0';
}

void lessons_hash(const char *text, size_t len, char out[LESSONS_HASH_SIZE])
{
    unsigned char digest[SHA256_BYTES];
    struct sha256 s;
    sha256_start(&s);
    add_words(&s, text, text + len);
    sha256_end(&s, digest);
    for (int i = 0; i < LESSONS_HASH_SIZE / 2; i++) {
        out[2 * i] = hex[digest[i] >> 4];
        out[2 * i + 1] = hex[digest[i] & 15];
    }
    out[LESSONS_HASH_SIZE - 1] = '\0';
}
