/* The text of a note: five slots of bullets, as written by a model or the built-in reflector, and as
 * stored. */
#include "core/reflect/reflect_note.h"

#include "core/base/line_text.h"
#include "core/base/phrase.h"
#include "core/base/untagged.h"
#include "core/base/utf8.h"
#include "core/reflect/reflect_note_read.h"

enum {
    RULE_CHARS = 200, /* of a rule in a detail */
    CUT_CHARS = 200,  /* at least kept of the only bullet of a slot: five of these always fit */
};

const char *const note_verdict_names[] = {
    "good", "empty", "too_long", "quotes_avoid_rule", "missing_slot", "too_many_bullets", NULL
};

static size_t chars(const char *text)
{
    return utf8_count(text, strlen(text));
}

static bool is_in(slot_set slots, int slot)
{
    return slots >> slot & 1;
}

/* ---- the stored form ---- */

static void put_slot(struct buf *out, const struct note_slot *slot, const char *heading)
{
    buf_fmt(out, "%s%s\n", out->len ? "\n" : "", heading);
    for (const struct note_bullet *b = slot->bullets; b; b = b->next)
        buf_fmt(out, "- %s\n", b->text);
    if (!slot->count)
        buf_fmt(out, "%s\n", reflect_no_pattern);
}

static const char *stored_form(struct arena *arena, const struct note *note, slot_set suppressed)
{
    struct buf out = { .arena = arena };
    for (int i = 0; i < REFLECT_SLOTS; i++)
        if (!is_in(suppressed, i))
            put_slot(&out, &note->slots[i], reflect_slot_headings[i]);
    return buf_string(&out);
}

static size_t slot_chars(const struct note_slot *slot)
{
    size_t sum = 0;
    for (const struct note_bullet *b = slot->bullets; b; b = b->next)
        sum += chars(b->text);
    return sum;
}

static void drop_last(struct note_slot *slot)
{
    struct note_bullet **at = &slot->bullets;
    while ((*at)->next)
        at = &(*at)->next;
    *at = NULL;
    slot->count--;
}

static void cut_only(struct arena *arena, struct note_slot *slot, size_t excess)
{
    const size_t len = chars(slot->bullets->text);
    struct buf cut = { .arena = arena };
    line_text(&cut, slot->bullets->text, len > excess + CUT_CHARS ? len - excess : CUT_CHARS);
    slot->bullets->text = buf_string(&cut);
    if (reflect_note_read_is_empty(arena, slot->bullets->text))
        drop_last(slot);
}

static struct note_slot *longest(struct note *note, slot_set suppressed)
{
    struct note_slot *found = NULL;
    for (int i = 0; i < REFLECT_SLOTS; i++)
        if (!is_in(suppressed, i) && (!found || slot_chars(&note->slots[i]) > slot_chars(found)))
            found = &note->slots[i];
    return found;
}

static const char *fitting_form(struct arena *arena, struct note *note, slot_set suppressed)
{
    for (;;) {
        const char *text = stored_form(arena, note, suppressed);
        const size_t len = chars(text);
        if (len <= NOTE_CHARS_MAX)
            return text;
        struct note_slot *slot = longest(note, suppressed);
        if (slot->count > 1)
            drop_last(slot);
        else
            cut_only(arena, slot, len - NOTE_CHARS_MAX);
    }
}

/* ---- validation ---- */

/* A single ASCII word, such as a ticker. In other scripts one word may be a sentence. */
static bool is_name(const char *rule)
{
    static const char blanks[] = " \t\r\n";
    rule += strspn(rule, blanks);
    const size_t len = strcspn(rule, blanks);
    if (rule[len + strspn(rule + len, blanks)])
        return false;
    return utf8_count(rule, len) == len;
}

static bool is_bullet(struct arena *arena, const struct note *note, const char *words)
{
    for (int i = 0; i < REFLECT_SLOTS; i++)
        for (const struct note_bullet *b = note->slots[i].bullets; b; b = b->next)
            if (strcmp(phrase_words(arena, b->text), words) == 0)
                return true;
    return false;
}

static const char *quoted_rule(struct arena *arena, const char *answer, const struct note *note,
                               const char *const *avoid, size_t count)
{
    const char *words = phrase_words(arena, answer);
    for (size_t i = 0; i < count; i++) {
        const char *rule = phrase_words(arena, avoid[i]);
        if (!phrase_has_words(rule))
            continue;
        if (is_name(avoid[i]) ? is_bullet(arena, note, rule) : strstr(words, rule) != NULL)
            return avoid[i];
    }
    return NULL;
}

static const char *names_of_missing(struct arena *arena, const struct note *note, slot_set suppressed)
{
    struct buf out = { .arena = arena };
    for (int i = 0; i < REFLECT_SLOTS; i++)
        if (!is_in(suppressed, i) && !note->slots[i].seen)
            buf_fmt(&out, "%s%s", out.len ? ", " : "", reflect_slot_names[i]);
    return out.len ? buf_string(&out) : NULL;
}

static const char *name_of_overfull(const struct note *note, slot_set suppressed)
{
    for (int i = 0; i < REFLECT_SLOTS; i++)
        if (!is_in(suppressed, i) && note->slots[i].count > REFLECT_BULLETS_MAX)
            return reflect_slot_names[i];
    return NULL;
}

static struct note_checked rejected(enum note_verdict verdict, const char *detail)
{
    return (struct note_checked){ .verdict = verdict, .detail = detail };
}

static const char *rule_detail(struct arena *arena, const char *rule)
{
    struct buf out = { .arena = arena };
    buf_text(&out, "the note quotes the avoid rule \"");
    line_text(&out, rule, RULE_CHARS);
    buf_char(&out, '"');
    return buf_string(&out);
}

struct note_checked reflect_note_check(struct arena *arena, const char *answer, const char *const *avoid,
                                       size_t avoid_count, slot_set suppressed)
{
    const size_t len = chars(answer);
    if (len > ANSWER_CHARS_MAX)
        return rejected(NOTE_TOO_LONG,
                        arena_fmt(arena, "%zu characters; at most %d are read", len, ANSWER_CHARS_MAX));
    struct buf line = { .arena = arena };
    line_text(&line, answer, 1);
    if (!line.len)
        return rejected(NOTE_EMPTY, "nothing was said");
    struct note note = reflect_note_read(arena, answer);
    const char *rule = quoted_rule(arena, answer, &note, avoid, avoid_count);
    if (rule)
        return rejected(NOTE_QUOTES_AVOID_RULE, rule_detail(arena, rule));
    const char *slots = names_of_missing(arena, &note, suppressed);
    if (slots)
        return rejected(NOTE_MISSING_SLOT, arena_fmt(arena, "no heading for %s", slots));
    slots = name_of_overfull(&note, suppressed);
    if (slots)
        return rejected(NOTE_TOO_MANY_BULLETS,
                        arena_fmt(arena, "more than %d bullets in %s", REFLECT_BULLETS_MAX, slots));
    return (struct note_checked){ .verdict = NOTE_GOOD, .text = fitting_form(arena, &note, suppressed) };
}

/* ---- a stored text ---- */

/* The slot whose heading is this line of `len` bytes, or -1. */
static int heading_slot(const char *line, size_t len)
{
    for (int i = 0; i < REFLECT_SLOTS; i++)
        if (strlen(reflect_slot_headings[i]) == len && memcmp(line, reflect_slot_headings[i], len) == 0)
            return i;
    return -1;
}

const char *reflect_note_without(struct arena *arena, const char *text, slot_set suppressed)
{
    struct buf out = { .arena = arena };
    bool drops = false, dropped = false;
    for (const char *line = text; *line;) {
        const size_t len = strcspn(line, "\n"), whole = len + (line[len] == '\n');
        const int slot = heading_slot(line, len);
        drops = slot < 0 ? drops : is_in(suppressed, slot);
        dropped = dropped || drops;
        if (!drops)
            buf_add(&out, line, whole);
        line += whole;
    }
    if (!dropped)
        return text;
    while (out.len > 1 && out.data[out.len - 1] == '\n' && out.data[out.len - 2] == '\n')
        out.len--;
    return buf_string(&out);
}

static bool has_bullet(const struct note_slot *slot, const char *text)
{
    for (const struct note_bullet *b = slot->bullets; b; b = b->next)
        if (strcmp(b->text, text) == 0)
            return true;
    return false;
}

/* Writes the bullets of `one` that `other` does not have. Returns how many both have. */
static size_t put_missing(struct buf *out, const char *key, const struct note_slot *one,
                          const struct note_slot *other)
{
    size_t kept = 0;
    buf_json_key(out, key);
    buf_char(out, '[');
    for (const struct note_bullet *b = one->bullets; b; b = b->next) {
        if (has_bullet(other, b->text)) {
            kept++;
            continue;
        }
        if (out->data[out->len - 1] != '[')
            buf_char(out, ',');
        buf_json_string(out, b->text);
    }
    buf_char(out, ']');
    return kept;
}

void reflect_note_diff_json(struct buf *out, const char *before, const char *after)
{
    const struct note old = reflect_note_read(out->arena, before ? before : ""),
                      new = reflect_note_read(out->arena, after);
    buf_char(out, '{');
    for (int i = 0; i < REFLECT_SLOTS; i++) {
        buf_json_key(out, reflect_slot_names[i]);
        buf_char(out, '{');
        const size_t kept = put_missing(out, "added", &new.slots[i], &old.slots[i]);
        put_missing(out, "removed", &old.slots[i], &new.slots[i]);
        buf_json_key(out, "kept");
        buf_fmt(out, "%zu}", kept);
    }
    buf_char(out, '}');
}

const char *reflect_note_segment(struct arena *arena, const char *text)
{
    struct buf out = { .arena = arena };
    if (!text || !*text)
        return "";
    buf_text(&out, "<lessons>\n"
                   "Signal, not strategy: written by machine from the closed trades of this skill, for "
                   "reference. The avoid rules outrank every line of it.\n\n");
    untagged_text(&out, text);
    if (out.data[out.len - 1] != '\n')
        buf_char(&out, '\n');
    buf_text(&out, "</lessons>\n");
    return buf_string(&out);
}
