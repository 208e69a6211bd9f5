/* Reads JSON bodies into a json_t tree. */
#include "server/json/tree.h"

#include <stdlib.h>

#include "core/base/memory.h"
#include "core/base/utf8.h"
#include "server/json/number.h"
#include "server/json/reader.h"

enum { MAX_DEPTH = 512, WORD_SHOWN = 32, KEY_SHOWN = 64 };

static const size_t none = SIZE_MAX;

struct builder {
    struct json_reader reader;
    size_t duplicate; /* offset of the first duplicate key, or `none` */
};

/* ---- the tree ---- */

/* The build functions return NULL after a fault of the reader, or if out of memory. */
static json_t *build(struct builder *b);

static json_t *build_object(struct builder *b)
{
    struct json_reader *r = &b->reader;
    json_t *object = json_object(), *value;
    if (!reader_object(r))
        goto failed;
    for (const char *name; (name = reader_name(r));) {
        size_t offset = (size_t)(name - r->start) - 1, members = json_object_size(object);
        if (!(value = build(b)) || json_object_set_new_nocheck(object, name, value) != 0)
            goto failed;
        if (json_object_size(object) == members && offset < b->duplicate)
            b->duplicate = offset;
    }
    if (r->fault == READER_OK)
        return object;
failed:
    json_decref(object);
    return NULL;
}

static json_t *build_list(struct builder *b)
{
    json_t *list = json_array(), *value;
    if (!reader_list(&b->reader))
        goto failed;
    while (reader_item(&b->reader))
        if (!(value = build(b)) || json_array_append_new(list, value) != 0)
            goto failed;
    if (b->reader.fault == READER_OK)
        return list;
failed:
    json_decref(list);
    return NULL;
}

static json_t *build_number(struct json_reader *r)
{
    char marked[1 + NUMBER_CHARS] = { '\0' };
    size_t len;
    const char *digits = reader_digits(r, &len);
    if (!digits)
        return NULL;
    memcpy(marked + 1, digits, len);
    return json_stringn_nocheck(marked, len + 1);
}

static json_t *build_word(struct json_reader *r)
{
    const char *word = reader_word(r);
    if (!word)
        return NULL;
    return *word == 'n' ? json_null() : json_boolean(*word == 't');
}

static json_t *build(struct builder *b)
{
    const char *text;
    switch (reader_peek(&b->reader)) {
    case '{':
        return build_object(b);
    case '[':
        return build_list(b);
    case '"':
        text = reader_text(&b->reader);
        return text ? json_string_nocheck(text) : NULL;
    case '-':
    case '0' ... '9':
        return build_number(&b->reader);
    default:
        return build_word(&b->reader);
    }
}

const char *tree_number(const json_t *value)
{
    if (!json_is_string(value) || json_string_length(value) == 0)
        return NULL;
    const char *text = json_string_value(value);
    return text[0] == '\0' ? text + 1 : NULL;
}

/* ---- faults ---- */

/* The original body; the reader has overwritten its copy. */
struct sent {
    const char *body, *end;
    struct problem *p;
};

/* "line 3, column 14", counted in characters from 1. */
static const char *position(const struct sent *s, const char *at)
{
    int line = 1;
    const char *start = s->body;
    for (const char *c = s->body; c < at; c++)
        if (*c == '\n') {
            line++;
            start = c + 1;
        }
    return arena_fmt(s->p->arena, "line %d, column %zu", line, utf8_count(start, (size_t)(at - start)) + 1);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-' || c == '+';
}

static const char *end_text(const struct sent *s)
{
    return arena_fmt(s->p->arena, "the end of the %s", problem_about(s->p));
}

/* A readable name of what is at that position. */
static const char *found(const struct sent *s, const char *at)
{
    if (at == s->end)
        return end_text(s);
    int len = 0;
    while (len < WORD_SHOWN && at + len < s->end && is_word(at[len]))
        len++;
    if (len > 0)
        return arena_fmt(s->p->arena, "'%.*s'", len, at);
    const char *next = at;
    uint32_t c = utf8_next(&next);
    if (utf8_is_control(c) || utf8_is_space(c) || c == 0xfeff)
        return arena_fmt(s->p->arena, "the character U+%04X", (unsigned)c);
    return arena_fmt(s->p->arena, "'%.*s'", (int)(next - at), at);
}

static enum err unexpected(const struct sent *s, const char *at, const char *expected)
{
    if (at < s->end && *at == '\0')
        return problem_set(s->p, ERR_NULL_CHARACTER, "%s: a NUL character", position(s, at));
    return problem_set(s->p, ERR_INVALID_JSON, "%s: expected %s, found %s", position(s, at),
                       expected ? expected : end_text(s), found(s, at));
}

static enum err fault_error(const struct sent *s, const struct json_reader *r)
{
    const char *at = s->body + r->fault_offset;
    switch (r->fault) {
    case READER_UTF8:
        return problem_set(s->p, ERR_INVALID_UTF8, "the byte at offset %zu of the %s is not valid UTF-8",
                           r->fault_offset, problem_about(s->p));
    case READER_OPEN_STRING:
        return problem_set(s->p, ERR_INVALID_JSON, "the string that starts at %s has no end",
                           position(s, at));
    case READER_ESCAPE:
        return problem_set(s->p, ERR_INVALID_JSON, "%s: not an escape that JSON knows", position(s, at));
    case READER_HEX:
        return problem_set(s->p, ERR_INVALID_JSON, "%s: \\u needs four hexadecimal digits", position(s, at));
    case READER_SURROGATE:
        return problem_set(s->p, ERR_INVALID_JSON, "%s: half of a surrogate pair", position(s, at));
    case READER_NUL:
        return problem_set(s->p, ERR_NULL_CHARACTER, "%s: \\u0000 cannot be stored", position(s, at));
    case READER_DEPTH_LIMIT:
        return problem_set(s->p, ERR_TOO_DEEP, "%s: more than %d levels of nesting", position(s, at),
                           r->depth_limit);
    case READER_NUMBER_LIMIT:
        return problem_set(s->p, ERR_NUMBER_OUT_OF_RANGE,
                           "%s: a number has at most %d characters and must fit a double", position(s, at),
                           NUMBER_CHARS);
    case READER_UNEXPECTED:
        return unexpected(s, at, r->expected);
    case READER_OK:
        break;
    }
    return ERR_INTERNAL; /* out of memory */
}

/* `key` is the opening quote of the duplicate key, which is shown as sent. */
static enum err duplicate_error(const struct sent *s, const char *key)
{
    const char *end = key + 1;
    while (*end != '"')
        end += *end == '\\' ? 2 : 1;
    const size_t len = (size_t)(end - key) - 1;
    return problem_set(s->p, ERR_DUPLICATE_KEY, "%s: the key \"%.*s%s\" is there twice", position(s, key),
                       (int)utf8_cut(key + 1, len, KEY_SHOWN), key + 1, len > KEY_SHOWN ? "…" : "");
}

void tree_setup(void)
{
    json_set_alloc_funcs(memory_alloc, free);
}

enum err tree_read(const char *body, size_t len, int depth_limit, struct arena *arena, json_t **object,
                   struct problem *p)
{
    const struct sent sent = { body, body + len, p };
    struct builder b = { .duplicate = none };
    b.reader =
        reader_begin(arena_copy(arena, body, len), len, depth_limit < MAX_DEPTH ? depth_limit : MAX_DEPTH);
    b.reader.limit_numbers = true;
    *object = NULL;
    if (b.reader.fault == READER_OK && b.reader.at == b.reader.end)
        return problem_set(p, ERR_INVALID_JSON, "the %s is empty: it must be a JSON object",
                           problem_about(p));
    json_t *tree = build(&b);
    enum err err = OK;
    if (!tree || !reader_ended(&b.reader))
        err = fault_error(&sent, &b.reader);
    else if (!json_is_object(tree))
        err = problem_set(p, ERR_INVALID_JSON, "the %s must be a JSON object", problem_about(p));
    else if (b.duplicate != none)
        err = duplicate_error(&sent, body + b.duplicate);
    if (err == OK)
        *object = tree;
    else
        json_decref(tree);
    return err;
}
