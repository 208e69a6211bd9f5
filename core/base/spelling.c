/* "Did you mean": the known word that is closest to a misspelled one. */
#include "core/base/spelling.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int allowed_mistakes(size_t len)
{
    return len < 4 ? 0 : len < 6 ? 1 : 2;
}

/* entryPrice, Entry-Price and ENTRY_PRICE become entry_price. */
struct spelling spelling_begin(const char *word)
{
    struct spelling s = { .distance = -1 };
    for (const char *c = word; *c; c++) {
        bool begins_part = c > word && isupper((unsigned char)*c) && islower((unsigned char)c[-1]);
        if (s.len + begins_part >= SPELLING_CHARS)
            return s;
        if (begins_part)
            s.word[s.len++] = '_';
        s.word[s.len++] = *c == '-' || *c == ' ' ? '_' : (char)tolower((unsigned char)*c);
    }
    s.distance = allowed_mistakes(s.len);
    return s;
}

/* Insertions, deletions, changes and swaps of neighbours that turn one word into the other. */
static int edit_distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int rows[3][SPELLING_CHARS + 1];
    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = (int)j;
    for (size_t i = 1; i <= a_len; i++) {
        int *row = rows[i % 3];
        const int *last = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        row[0] = (int)i;
        for (size_t j = 1; j <= b_len; j++) {
            row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return rows[a_len % 3][b_len];
}

void spelling_try(struct spelling *s, const char *known)
{
    size_t len = strlen(known);
    int longer = (int)len - (int)s->len;
    if (s->distance < 0 || len == 0 || len > SPELLING_CHARS || longer > s->distance || -longer > s->distance)
        return;
    int distance = edit_distance(s->word, s->len, known, len);
    if (distance > s->distance || distance > allowed_mistakes(len))
        return;
    s->best = known;
    s->distance = distance - 1; /* of two that are equally close, the first */
}
