/* Fuzzes the parser of notes: no input breaks it, and an accepted note meets the contract of its header. An
 * input is an avoid rule on its first line, the previous note up to a form feed, and the model's answer. */
#include "core/reflect/reflect_note.h"
#include "core/reflect/reflect_prompt.h"
#include "tests/fuzz/fuzz.h"

enum { ALL_SLOTS = (1u << REFLECT_SLOTS) - 1 };

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

/* Headings, bullets, reflect_no_pattern and empty lines: nothing else. */
static void check_lines(const char *text)
{
    size_t bullets = 0;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        HOLDS(strchr(line, '\n'));
        const size_t len = strcspn(line, "\n");
        if (strncmp(line, "- ", 2) == 0) {
            HOLDS(len > 2 && ++bullets <= REFLECT_BULLETS_MAX);
            continue;
        }
        bool known =
            len == 0 || (len == strlen(reflect_no_pattern) && strncmp(line, reflect_no_pattern, len) == 0);
        for (int i = 0; i < REFLECT_SLOTS; i++)
            if (len == strlen(reflect_slot_headings[i]) &&
                strncmp(line, reflect_slot_headings[i], len) == 0) {
                known = true;
                bullets = 0;
            }
        HOLDS(known);
    }
}

static void check_kept(struct arena *arena, const char *text, const char *const *avoid, slot_set suppressed)
{
    const size_t len = strlen(text);
    HOLDS(utf8_check(text, len) == len && utf8_count(text, len) <= NOTE_CHARS_MAX);
    HOLDS(!strpbrk(text, "<\"\r\t\v\f") && (len || suppressed == ALL_SLOTS));
    check_lines(text);
    const struct note_checked again = reflect_note_check(arena, text, avoid, 1, suppressed);
    HOLDS(!len || again.verdict == NOTE_QUOTES_AVOID_RULE || /* removing text may join the words of a rule */
          (again.verdict == NOTE_GOOD && strcmp(again.text, text) == 0));
    for (int i = 0; i < REFLECT_SLOTS; i++)
        HOLDS(count_of(text, reflect_slot_headings[i]) >= !(suppressed >> i & 1));
    const char *segment = reflect_note_segment(arena, text);
    HOLDS(count_of(segment, "<") == (len ? 2 : 0));
}

static void check_without(struct arena *arena, const char *text, slot_set some, slot_set others)
{
    const char *both = reflect_note_without(arena, text, some | others);
    HOLDS(strcmp(reflect_note_without(arena, reflect_note_without(arena, text, some), others), both) == 0);
    HOLDS(strcmp(reflect_note_without(arena, text, 0), text) == 0);
    HOLDS(strlen(both) <= strlen(text));
}

static void check_diff(struct arena *arena, const char *before, const char *after)
{
    struct buf out = { .arena = arena }, same = { .arena = arena }, first = { .arena = arena };
    reflect_note_diff_json(&out, before, after);
    HOLDS(utf8_check(out.data, out.len) == out.len && out.data[out.len - 1] == '}');
    HOLDS(count_of(buf_string(&out), "\"kept\":") >= REFLECT_SLOTS);
    reflect_note_diff_json(&same, after, after);
    HOLDS(count_of(buf_string(&same), "\"added\":[],\"removed\":[]") == REFLECT_SLOTS);
    reflect_note_diff_json(&first, NULL, after);
    HOLDS(count_of(buf_string(&first), "\"removed\":[],\"kept\":0") >= REFLECT_SLOTS);
}

static void check_prompt(struct arena *arena, const char *text, const char *const *avoid, slot_set suppressed)
{
    const struct reflect_trade trade = {
        .symbol = text, .regime = text, .side = text, .entry_reason = text, .exit_reason = text, .size_usd = 1
    };
    const struct reflect_facts facts = { text, avoid, 1, text, &trade, 1, suppressed };
    const struct reflect_prompt p = reflect_prompt(arena, &facts);
    HOLDS(utf8_check(p.user, strlen(p.user)) == strlen(p.user) && count_of(p.user, "<") == 10);
    HOLDS(count_of(strstr(p.user, "\n<trades>\n"), "\n") == 7); /* one trade is one line */
}

/* Cuts the text at the first occurrence of the mark; returns the rest, or "" without one. */
static char *cut_at(char *text, const char *mark)
{
    char *at = text + strcspn(text, mark);
    if (*at)
        *at++ = '\0';
    return at;
}

static void check(struct arena *arena, const char *rule, const char *before, const char *said, size_t sets)
{
    const char *const avoid[] = { rule };
    const slot_set suppressed = (slot_set)sets & ALL_SLOTS, others = (slot_set)(sets >> 2) & ALL_SLOTS;
    const struct note_checked got = reflect_note_check(arena, said, avoid, 1, suppressed);
    HOLDS(got.verdict == NOTE_GOOD ? got.text && !got.detail : !got.text && got.detail);
    HOLDS(!got.detail || utf8_check(got.detail, strlen(got.detail)) == strlen(got.detail));
    if (got.text) {
        check_kept(arena, got.text, avoid, suppressed);
        check_without(arena, got.text, suppressed, others);
        HOLDS(strcmp(reflect_note_without(arena, got.text, suppressed), got.text) == 0);
    }
    check_without(arena, said, suppressed, others);
    check_diff(arena, before, said);
    check_prompt(arena, said, avoid, suppressed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = { 0 };
    char *rule = arena_copy(&arena, data, size);
    if (utf8_check(rule, strlen(rule)) == strlen(rule)) {
        char *said = cut_at(rule, "\n"), *before = strchr(said, '\f') ? said : NULL;
        if (before)
            said = cut_at(before, "\f");
        check(&arena, rule, before, said, size);
    }
    arena_release(&arena);
    return 0;
}
