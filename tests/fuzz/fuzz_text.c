/* Fuzzes the readers of single texts: times, UUIDs and takeaways. */
#include "core/base/time_text.h"
#include "core/base/tokens.h"
#include "core/base/uuid.h"
#include "core/lessons/lesson.h"
#include "tests/fuzz/fuzz.h"

static void check_time(const char *text)
{
    int64_t us, again;
    char out[TIME_TEXT_SIZE];
    if (!time_text_parse(text, &us))
        return;
    HOLDS(us >= TIME_FIRST_US && us <= TIME_LAST_US);
    time_text_full(us, out);
    HOLDS(time_text_parse(out, &again) && again == us);
    time_text_short(us, out);
    HOLDS(time_text_parse(out, &again) && again == us);
}

static void check_uuid(const char *text)
{
    char uuid[UUID_SIZE], again[UUID_SIZE];
    if (uuid_parse(text, uuid))
        HOLDS(strcasecmp(uuid, text) == 0 && uuid_parse(uuid, again) && strcmp(uuid, again) == 0);
}

static void check_takeaway(const char *text, size_t budget, struct arena *arena)
{
    size_t len = strlen(text), half = utf8_cut(text, len, len / 2);
    const char *const pair[] = { arena_copy(arena, text, half), text + half };
    const char *reason = lesson_conflict(pair[0], pair[1], arena);
    HOLDS(!reason == !lesson_conflict(pair[1], pair[0], arena));
    HOLDS(!lesson_conflict(text, text, arena));

    struct buf block = { .arena = arena };
    struct lesson_block made = lesson_block_render(&block, pair, 2, budget);
    HOLDS(made.tokens <= budget && made.count + made.omitted == 2);
    HOLDS(made.tokens == tokens_estimate(block.data, block.len));
    if (!lesson_has_markup(text) && block.len)
        HOLDS(!strstr(strstr(buf_string(&block), "</learned_patterns>") + 1, "</learned_patterns>"));

    struct buf markdown = { .arena = arena };
    lesson_markdown(&markdown, &(struct lesson_text){ .id = text,
                                                      .at = text,
                                                      .takeaway = text,
                                                      .context = text,
                                                      .outcome = text,
                                                      .tags = text,
                                                      .evidence = text,
                                                      .status = text,
                                                      .status_at = text });
    HOLDS(utf8_check(markdown.data, markdown.len) == markdown.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = { 0 };
    const char *text = arena_copy(&arena, data, size);
    size_t len = strlen(text);
    check_time(text);
    check_uuid(text);
    if (utf8_check(text, len) == len)
        check_takeaway(text, size, &arena);
    arena_release(&arena);
    return 0;
}
