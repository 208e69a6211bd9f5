/* Lessons: the transitions of their status, and the block of lessons for prompts. */
#include "core/lessons/lesson.h"

#include <strings.h>

#include "core/base/tokens.h"
#include "core/base/utf8.h"

const char *const lesson_status_names[LESSON_STATUSES + 1] = {
    [LESSON_PROPOSED] = "proposed",
    [LESSON_VALIDATED] = "validated",
    [LESSON_RETIRED] = "retired",
    [LESSON_SUPERSEDED] = "superseded",
};

static const bool transitions[LESSON_STATUSES][LESSON_STATUSES] = {
    [LESSON_PROPOSED] = { [LESSON_VALIDATED] = true, [LESSON_RETIRED] = true, [LESSON_SUPERSEDED] = true },
    [LESSON_VALIDATED] = { [LESSON_VALIDATED] = true, [LESSON_RETIRED] = true, [LESSON_SUPERSEDED] = true },
};

bool lesson_status_find(const char *name, enum lesson_status *status)
{
    for (int i = 0; i < LESSON_STATUSES; i++)
        if (strcmp(name, lesson_status_names[i]) == 0) {
            *status = (enum lesson_status)i;
            return true;
        }
    return false;
}

bool lesson_is_duplicate(double similarity)
{
    return similarity >= 0.6;
}

bool lesson_may_become(enum lesson_status from, enum lesson_status to)
{
    return transitions[from][to];
}

bool lesson_is_active(enum lesson_status status)
{
    return status == LESSON_PROPOSED || status == LESSON_VALIDATED;
}

/* ---- the block ---- */

/* Memory advises, it never commands. The block says so itself, because it may be pasted anywhere. */
static const char opening[] = "<learned_patterns>\n"
                              "Signal, not strategy: avoid rules outrank these lessons.\n";
static const char closing[] = "</learned_patterns>\n";
static const char empty[] = "(no lessons yet)\n";

static size_t tokens_of(const char *text)
{
    return tokens_estimate(text, strlen(text));
}

static void put_line(struct buf *out, const char *takeaway)
{
    buf_text(out, "- ");
    buf_text(out, takeaway);
    buf_char(out, '\n');
}

struct lesson_block lesson_block_render(struct buf *out, const char *const *newest_first, size_t count,
                                        size_t max_tokens)
{
    struct lesson_block made = { .tokens = tokens_of(opening) + tokens_of(closing) };
    struct buf line = { .arena = out->arena };
    for (; made.count < count; made.count++) { /* the estimate of a text is the sum over its lines */
        line.len = 0;
        put_line(&line, newest_first[made.count]);
        size_t tokens = tokens_estimate(line.data, line.len);
        if (made.tokens + tokens > max_tokens)
            break;
        made.tokens += tokens;
    }
    made.omitted = count - made.count;
    if (count == 0)
        made.tokens += tokens_of(empty);
    if (made.tokens > max_tokens || (count > 0 && made.count == 0))
        return (struct lesson_block){ .omitted = made.omitted };

    buf_text(out, opening);
    if (count == 0)
        buf_text(out, empty);
    for (size_t i = made.count; i > 0; i--)
        put_line(out, newest_first[i - 1]);
    buf_text(out, closing);
    return made;
}

/* ---- markup ---- */

/* Skips white space and invisible characters. */
static const char *skip_blanks(const char *text)
{
    for (const char *next = text; *next; text = next) {
        uint32_t c = utf8_next(&next);
        if (!utf8_is_space(c) && c != 0xad && (c < 0x200b || c > 0x200f) && c != 0x2060 && c != 0xfeff)
            break;
    }
    return text;
}

/* Returns the text after the word and any blanks, or NULL. */
static const char *skip_word(const char *text, const char *word)
{
    size_t len = strlen(word);
    return strncasecmp(text, word, len) == 0 ? skip_blanks(text + len) : NULL;
}

bool lesson_has_markup(const char *takeaway)
{
    while ((takeaway = strchr(takeaway, '<'))) {
        const char *at = skip_blanks(++takeaway);
        if (*at == '/')
            at = skip_blanks(at + 1);
        at = skip_word(at, "learned");
        if (at && (*at == '_' || *at == '-'))
            at = skip_blanks(at + 1);
        if (at && skip_word(at, "patterns"))
            return true;
    }
    return false;
}
