/* Texts joined into one by U+001F. */
#include "core/base/list_text.h"

#include <string.h>

#define SEPARATOR '\x1f'

const char **list_text_split(struct arena *arena, const char *joined, size_t *count)
{
    *count = joined != NULL;
    for (const char *p = joined; p && *p; p++)
        *count += *p == SEPARATOR;
    const char **texts = arena_alloc(arena, (*count + 1) * sizeof *texts);
    char *at = joined ? arena_text(arena, joined) : NULL;
    for (size_t i = 0; i < *count; i++) {
        texts[i] = at;
        at += strcspn(at, "\x1f");
        *at++ = '\0'; /* the last one ends with the text's own NUL */
    }
    return texts;
}
