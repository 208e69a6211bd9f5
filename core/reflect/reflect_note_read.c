/* Parses a note into slots and bullets, whatever markup it has. */
#include "core/reflect/reflect_note_read.h"

#include <ctype.h>
#include <strings.h>

#include "core/base/line_text.h"
#include "core/base/phrase.h"
#include "core/base/untagged.h"

/* ---- marks ---- */

static const char *skip_any(const char *text, const char *of)
{
    return text + strspn(text, of);
}

/* Returns the text after a bullet mark, or NULL. A minus before a number is not a mark. */
static const char *skip_bullet_mark(const char *text)
{
    static const char *const marks[] = { "•", "◦", "▪", "‣", "·", "– ", "— " };
    if (*text == '-' && (!text[1] || text[1] == ' ' || isalpha((unsigned char)text[1])))
        return text + 1;
    if (*text == '*' && (!text[1] || text[1] == ' '))
        return text + 1;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strncmp(text, marks[i], strlen(marks[i])) == 0)
            return text + strlen(marks[i]);
    return NULL;
}

/* Returns the text after "1." or "12)", or NULL. */
static const char *skip_number_mark(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    if (digits < 1 || digits > 2 || (text[digits] != '.' && text[digits] != ')'))
        return NULL;
    text += digits + 1;
    return !*text || *text == ' ' || *text == '*' ? text : NULL;
}

static bool is_fence(const char *text)
{
    return strncmp(text, "```", 3) == 0 || strncmp(text, "~~~", 3) == 0;
}

/* "## Summary", but not "#1 of all". */
static bool is_any_heading(const char *text)
{
    const char *behind = skip_any(text, "#");
    return behind > text && (!*behind || *behind == ' ');
}

/* Returns the text after the mark of a heading, a quotation or a fence, or NULL. */
static const char *skip_block_mark(const char *text)
{
    if (*text == '>' || is_any_heading(text))
        return text + 1;
    return is_fence(text) ? text + 3 : NULL;
}

static const char *skip_marks(const char *text)
{
    for (const char *next = text; next; next = next ? skip_any(next, " ") : NULL) {
        text = next;
        next = skip_bullet_mark(text);
        if (!next)
            next = skip_number_mark(text);
        if (!next)
            next = skip_block_mark(text);
    }
    return text;
}

/* ---- headings ---- */

struct heading {
    int slot;         /* -1: not a heading */
    const char *rest; /* the rest of its line */
};

/* Returns the text after the name of a slot ("entry_timing", "Entry timing"), or NULL. */
static const char *skip_name(const char *text, const char *name)
{
    for (; *name; name++)
        if (*name == '_') {
            size_t gap = strspn(text, " _-");
            if (!gap)
                return NULL;
            text += gap;
        } else if (tolower((unsigned char)*text++) != *name) {
            return NULL;
        }
    return isalnum((unsigned char)*text) ? NULL : text;
}

/* Whether the text after a name is set off from it: "**Sizing** …", "Sizing: …", "Sizing (…". */
static bool is_set_off(const char *text)
{
    if (*text && strchr("*`:", *text))
        return true;
    text = skip_any(text, " ");
    return *text == '(' || skip_bullet_mark(text);
}

static const char *skip_set_off(const char *text)
{
    text = skip_any(text, "*_`: ");
    const char *behind = skip_bullet_mark(text);
    return skip_any(behind ? behind : text, "*_`: ");
}

/* `inside`: the line before belongs to a bullet that this line may continue. */
static struct heading read_heading(struct arena *arena, const char *line, bool inside)
{
    static const struct heading none = { -1, NULL };
    const bool bullet = skip_bullet_mark(line) != NULL;
    const char *name = skip_any(skip_marks(line), "#*_` ");
    const char *number = skip_number_mark(name);
    name = number ? skip_any(number, " *_`") : name;
    for (int slot = 0; slot < REFLECT_SLOTS; slot++) {
        const char *behind = skip_name(name, reflect_slot_names[slot]);
        if (!behind)
            continue;
        const bool strong = strcspn(line, "#*_`") < (size_t)(name - line);
        if (phrase_has_words(phrase_words(arena, behind))) {
            if (bullet || !is_set_off(behind) || (inside && !strong))
                return none;
            return (struct heading){ slot, skip_set_off(behind) };
        }
        /* "…because of the\nsizing." continues a sentence. */
        if (inside && name == line && islower((unsigned char)*name) && !strchr(behind, ':'))
            return none;
        return (struct heading){ slot, "" };
    }
    return none;
}

static bool is_bare_heading(struct arena *arena, const char *line)
{
    const struct heading h = read_heading(arena, line, false);
    return h.slot >= 0 && !*h.rest;
}

bool reflect_note_read_is_empty(struct arena *arena, const char *bullet)
{
    const char *words = phrase_words(arena, bullet);
    return !phrase_has_words(words) || strcmp(words, phrase_words(arena, reflect_no_pattern)) == 0 ||
           is_bare_heading(arena, bullet);
}

/* ---- lines ---- */

struct reader {
    struct arena *arena;
    struct note note;
    int slot;          /* -1: outside of every slot */
    bool marked;       /* the slot has bullets with marks, so text without a mark is not a bullet */
    bool inside;       /* a bullet, which may continue */
    struct buf bullet; /* the part read so far */
    struct note_bullet **end[REFLECT_SLOTS];
};

static void add_bullet(struct reader *r, const char *text)
{
    struct note_bullet *b = arena_alloc(r->arena, sizeof *b);
    *b = (struct note_bullet){ .text = text };
    *r->end[r->slot] = b;
    r->end[r->slot] = &b->next;
    r->note.slots[r->slot].count++;
}

static void end_bullet(struct reader *r)
{
    if (!r->inside)
        return;
    struct buf text = { .arena = r->arena };
    untagged_text(&text, skip_marks(buf_string(&r->bullet)));
    if (!reflect_note_read_is_empty(r->arena, buf_string(&text)))
        add_bullet(r, text.data);
    r->bullet = (struct buf){ .arena = r->arena };
    r->inside = false;
}

static void begin_bullet(struct reader *r, const char *text)
{
    r->inside = true;
    buf_text(&r->bullet, text);
}

/* An introduction ("What stands out:") before the bullets is not a bullet. */
static void drop_opening(struct reader *r)
{
    struct note_slot *slot = &r->note.slots[r->slot];
    if (slot->count != 1 || slot->bullets->text[strlen(slot->bullets->text) - 1] != ':')
        return;
    slot->bullets = NULL;
    slot->count = 0;
    r->end[r->slot] = &slot->bullets;
}

static void begin_slot(struct reader *r, const struct heading *h)
{
    r->slot = h->slot;
    r->marked = false;
    r->note.slots[h->slot].seen = true;
    if (*h->rest)
        begin_bullet(r, h->rest);
}

/* Whether the line is empty, a rule or a fence. */
static bool is_separator(const char *line)
{
    return !*skip_any(line, "-*_= ") || is_fence(line);
}

/* `line` comes from line_text. */
static void read_line(struct reader *r, const char *line)
{
    const struct heading h = read_heading(r->arena, line, r->inside);
    const bool foreign = is_any_heading(line), marked = skip_bullet_mark(line) || skip_number_mark(line);
    if (is_separator(line) || h.slot >= 0 || foreign || marked)
        end_bullet(r);
    if (is_separator(line))
        return;
    if (h.slot >= 0) {
        begin_slot(r, &h);
    } else if (foreign) {
        r->slot = -1;
    } else if (r->slot < 0) {
        return;
    } else if (r->inside) {
        buf_char(&r->bullet, ' ');
        buf_text(&r->bullet, line);
    } else if (marked || !r->marked) {
        if (marked && !r->marked)
            drop_opening(r);
        r->marked = marked;
        begin_bullet(r, line);
    }
}

struct note reflect_note_read(struct arena *arena, const char *text)
{
    struct reader r = { .arena = arena, .slot = -1, .bullet = { .arena = arena } };
    for (int i = 0; i < REFLECT_SLOTS; i++)
        r.end[i] = &r.note.slots[i].bullets;
    while (*text) {
        size_t len = strcspn(text, "\r\n");
        struct buf line = { .arena = arena };
        line_text(&line, arena_copy(arena, text, len), SIZE_MAX);
        read_line(&r, buf_string(&line));
        text += len;
        text += strncmp(text, "\r\n", 2) == 0 ? 2 : *text != '\0';
    }
    end_bullet(&r);
    return r.note;
}
