/* Decodes path, query and body into one struct, by a field table. */
#include "server/json/field.h"

#include "server/json/number.h"
#include "server/json/tree.h"
#include "server/json/value.h"

static bool is_list(enum field_kind kind)
{
    return kind == KIND_TEXTS || kind == KIND_TAGS || kind == KIND_UUIDS;
}

static void take_absent(struct decoder *d, const struct field *f, const struct location *at, void *member)
{
    if (f->required)
        value_bad(d, at, FAULT_REQUIRED, "is required");
    else if (f->fallback && f->kind == KIND_TIME)
        *(const char **)member = strcmp(f->fallback, "now") == 0 ? d->in->now : f->fallback;
    else if (f->fallback)
        value_from_text(d, f, at, f->fallback, member);
    else if (f->kind == KIND_INT)
        *(int64_t *)member = FIELD_NO_INT;
}

/* ---- the body ---- */

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    case JSON_NULL:
        return "null";
    default:
        return tree_number(value) ? "a number" : "a text";
    }
}

static void wrong_type(struct decoder *d, const struct location *at, const char *wanted, const json_t *value)
{
    value_bad(d, at, FAULT_WRONG_TYPE, "must be %s, is %s", wanted, type_name(value));
}

/* The same for a number or a boolean, with a hint if it is in quotes by mistake. */
static void wrong_scalar(struct decoder *d, const struct field *f, const struct location *at,
                         const json_t *value)
{
    const char *text = json_is_string(value) && !tree_number(value) ? json_string_value(value) : NULL;
    bool is_quoted = text && (f->kind == KIND_BOOL ? strcmp(text, "true") == 0 || strcmp(text, "false") == 0
                                                   : value_is_number(text) && strlen(text) <= NUMBER_CHARS);
    if (is_quoted)
        value_bad(d, at, FAULT_WRONG_TYPE, "must be %s, is a text: write %s without quotes",
                  value_expected[f->kind], text);
    else
        wrong_type(d, at, value_expected[f->kind], value);
}

static const char *json_text(struct decoder *d, const json_t *value)
{
    if (!json_is_string(value) || tree_number(value))
        return NULL;
    return arena_copy(d->arena, json_string_value(value), json_string_length(value));
}

static void take_object(struct decoder *d, const struct field *table, const struct location *at,
                        const json_t *object, void *out);

static void take_json_texts(struct decoder *d, const struct field *f, const struct location *at,
                            const json_t *list, struct texts *out)
{
    size_t count = json_array_size(list);
    if (!value_count(d, f, at, count))
        return;
    const char **items = arena_alloc(d->arena, count * sizeof *items);
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(list, i);
        struct location item = { .up = at, .index = i };
        items[i] = json_text(d, value);
        if (!items[i])
            wrong_type(d, &item, f->kind == KIND_UUIDS ? "a UUID as text" : "a text", value);
    }
    value_texts(d, f, at, items, count, out);
}

static void take_objects(struct decoder *d, const struct field *f, const struct location *at,
                         const json_t *list, struct objects *out)
{
    size_t count = json_array_size(list);
    if (!value_count(d, f, at, count))
        return;
    char *items = arena_zero(d->arena, count * f->sub_size);
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(list, i);
        struct location item = { .up = at, .index = i };
        if (json_is_object(value))
            take_object(d, f->sub, &item, value, items + i * f->sub_size);
        else
            wrong_type(d, &item, "an object", value);
    }
    *out = (struct objects){ .count = count, .items = items };
}

static void take_numbers(struct decoder *d, const struct field *f, const struct location *at,
                         const json_t *list, struct texts *out)
{
    const struct field each = { .kind = KIND_NUMBER, .above_zero = f->above_zero };
    size_t count = json_array_size(list);
    if (!value_count(d, f, at, count))
        return;
    const char **items = arena_zero(d->arena, count * sizeof *items);
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(list, i);
        struct location item = { .up = at, .index = i };
        const char *lexeme = tree_number(value);
        if (lexeme)
            value_number(d, &each, &item, lexeme, &items[i]);
        else
            wrong_scalar(d, &each, &item, value);
    }
    *out = (struct texts){ .count = count, .items = items };
}

static void take_json(struct decoder *d, const struct field *f, const struct location *at,
                      const json_t *value, void *member);

static bool take_scalar(struct decoder *d, const struct field *f, const struct location *at,
                        const json_t *value, const char **member)
{
    const struct field line = { .kind = KIND_LINE, .min = f->min, .max = f->max };
    struct buf out = { .arena = d->arena };
    const char *text = json_text(d, value);
    if (json_is_boolean(value))
        *member = json_is_true(value) ? "true" : "false";
    else if (tree_number(value))
        *member = arena_text(d->arena, tree_number(value));
    else if (text) {
        value_text(d, &line, at, text, &text);
        buf_json_string(&out, text);
        *member = buf_string(&out);
    }
    return *member != NULL;
}

static void put_tree(struct buf *out, const json_t *value);

static void put_members(struct buf *out, const json_t *object)
{
    bool first = true;
    for (void *i = json_object_iter((json_t *)object); i; i = json_object_iter_next((json_t *)object, i)) {
        if (!first)
            buf_char(out, ',');
        first = false;
        buf_json_string(out, json_object_iter_key(i));
        buf_char(out, ':');
        put_tree(out, json_object_iter_value(i));
    }
}

/* Writes the value without white space. */
static void put_tree(struct buf *out, const json_t *value)
{
    if (json_is_object(value)) {
        buf_char(out, '{');
        put_members(out, value);
        buf_char(out, '}');
    } else if (json_is_array(value)) {
        buf_char(out, '[');
        for (size_t i = 0; i < json_array_size(value); i++) {
            if (i)
                buf_char(out, ',');
            put_tree(out, json_array_get(value, i));
        }
        buf_char(out, ']');
    } else if (tree_number(value)) {
        buf_text(out, tree_number(value));
    } else if (json_is_string(value)) {
        buf_json_text(out, json_string_value(value), json_string_length(value));
    } else {
        buf_text(out, json_is_null(value) ? "null" : json_is_true(value) ? "true" : "false");
    }
}

static void take_any(struct decoder *d, const struct field *f, const struct location *at, const json_t *value,
                     const char **member)
{
    struct buf out = { .arena = d->arena };
    put_tree(&out, value);
    if (out.len > (size_t)f->max)
        value_bad(d, at, FAULT_TOO_LONG, "has %zu bytes as JSON, may have at most %lld", out.len,
                  (long long)f->max);
    else
        *member = buf_string(&out);
}

static void take_map(struct decoder *d, const struct field *f, const struct location *at,
                     const json_t *object, struct objects *out)
{
    size_t count = json_object_size(object);
    if (!value_count(d, f, at, count))
        return;
    char *items = arena_zero(d->arena, count * f->sub_size), *item = items;
    for (void *i = json_object_iter((json_t *)object); i; i = json_object_iter_next((json_t *)object, i)) {
        const char *name = arena_text(d->arena, json_object_iter_key(i));
        struct location here = { .up = at, .name = name };
        value_text(d, &f->sub[0], &here, name, item + f->sub[0].offset);
        take_json(d, &f->sub[1], &here, json_object_iter_value(i), item + f->sub[1].offset);
        item += f->sub_size;
    }
    *out = (struct objects){ .count = count, .items = items };
}

static void take_json(struct decoder *d, const struct field *f, const struct location *at,
                      const json_t *value, void *member)
{
    const char *text;
    bool fits = false;
    switch (f->kind) {
    case KIND_INT:
    case KIND_NUMBER:
        if ((fits = (text = tree_number(value))))
            value_number(d, f, at, text, member);
        break;
    case KIND_BOOL:
        if ((fits = json_is_boolean(value)))
            *(const char **)member = json_is_true(value) ? "true" : "false";
        break;
    case KIND_TEXTS:
    case KIND_TAGS:
    case KIND_UUIDS:
        if ((fits = json_is_array(value)))
            take_json_texts(d, f, at, value, member);
        break;
    case KIND_OBJECT:
        if ((fits = json_is_object(value))) {
            void *sub = arena_zero(d->arena, f->sub_size);
            take_object(d, f->sub, at, value, sub);
            *(void **)member = sub;
        }
        break;
    case KIND_OBJECTS:
        if ((fits = json_is_array(value)))
            take_objects(d, f, at, value, member);
        break;
    case KIND_NUMBERS:
        if ((fits = json_is_array(value)))
            take_numbers(d, f, at, value, member);
        break;
    case KIND_MAP:
        if ((fits = json_is_object(value)))
            take_map(d, f, at, value, member);
        break;
    case KIND_SCALAR:
        fits = take_scalar(d, f, at, value, member);
        break;
    case KIND_JSON:
        fits = true;
        take_any(d, f, at, value, member);
        break;
    default:
        if ((fits = (text = json_text(d, value))))
            value_text(d, f, at, text, member);
    }
    if (!fits && (f->kind == KIND_INT || f->kind == KIND_NUMBER || f->kind == KIND_BOOL))
        wrong_scalar(d, f, at, value);
    else if (!fits)
        wrong_type(d, at, value_expected[f->kind], value);
}

static const struct field *find_from(const struct field *table, enum field_from from, const char *name)
{
    for (const struct field *f = table; f->name; f++)
        if (f->from == from && strcmp(f->name, name) == 0)
            return f;
    return NULL;
}

/* `at` is NULL for the body itself; `object` is NULL if there is no body. */
static void take_object(struct decoder *d, const struct field *table, const struct location *at,
                        const json_t *object, void *out)
{
    size_t known = 0;
    for (const struct field *f = table; f->name; f++) {
        if (f->from != FROM_BODY)
            continue;
        struct location here = { .up = at, .name = f->name };
        void *member = (char *)out + f->offset;
        const json_t *value = json_object_get(object, f->name);
        known += value != NULL;
        if (value && !json_is_null(value))
            take_json(d, f, &here, value, member);
        else
            take_absent(d, f, &here, member);
    }
    if (known == json_object_size(object))
        return;
    for (void *i = json_object_iter((json_t *)object); i; i = json_object_iter_next((json_t *)object, i)) {
        const char *name = json_object_iter_key(i);
        struct location here = { .up = at, .name = name };
        if (!find_from(table, FROM_BODY, name))
            value_bad(d, &here, FAULT_UNKNOWN_FIELD, "is not a field of this %s%s",
                      at ? "object" : problem_about(d->p), value_suggest_name(d, table, FROM_BODY, name));
    }
}

/* Lists the names of the body's own members that are null. */
static void take_nulls(struct decoder *d, const struct field *table, const json_t *body, void *out)
{
    const struct field *f = table;
    while (f->name && f->from != BODY_NULLS)
        f++;
    if (!f->name)
        return;
    struct texts nulls = { .items =
                               arena_alloc(d->arena, (json_object_size(body) + 1) * sizeof *nulls.items) };
    for (const struct field *member = table; member->name; member++)
        if (member->from == FROM_BODY && json_is_null(json_object_get(body, member->name)))
            nulls.items[nulls.count++] = member->name;
    *(struct texts *)((char *)out + f->offset) = nulls;
}

static enum err take_body(struct decoder *d, const struct field *table, void *out)
{
    json_t *body = NULL;
    bool required = false;
    for (const struct field *f = table; f->name; f++)
        required |= f->from == FROM_BODY && f->required;
    if (d->in->body_len > 0 || required)
        TRY(tree_read(d->in->body ? d->in->body : "", d->in->body_len, d->in->depth_limit, d->arena, &body,
                      d->p));
    take_object(d, table, NULL, body, out);
    take_nulls(d, table, body, out);
    json_decref(body);
    return OK;
}

/* ---- path and query ---- */

/* All values of that name, in request order. */
static size_t find_values(const struct pairs *pairs, const char *name, const char **values)
{
    size_t count = 0;
    for (size_t i = 0; i < pairs->count; i++)
        if (strcmp(pairs->items[i].name, name) == 0)
            values[count++] = pairs->items[i].value;
    return count;
}

static void take_pairs(struct decoder *d, const struct field *table, enum field_from from,
                       const struct pairs *pairs, void *out)
{
    size_t known = 0;
    const char **values = pairs->count ? arena_alloc(d->arena, pairs->count * sizeof *values) : NULL;
    for (const struct field *f = table; f->name; f++) {
        if (f->from != from)
            continue;
        struct location here = { .name = f->name };
        void *member = (char *)out + f->offset;
        size_t count = find_values(pairs, f->name, values);
        known += count;
        if (count == 0)
            take_absent(d, f, &here, member);
        else if (is_list(f->kind))
            value_split_list(d, f, &here, values, count, member);
        else if (count > 1)
            value_bad(d, &here, FAULT_REPEATED, "is given %zu times", count);
        else
            value_from_text(d, f, &here, values[0], member);
    }
    if (from != FROM_QUERY || known == pairs->count)
        return;
    for (size_t i = 0; i < pairs->count; i++) {
        struct location here = { .name = pairs->items[i].name };
        if (!find_from(table, FROM_QUERY, here.name))
            value_bad(d, &here, FAULT_UNKNOWN_FIELD, "is not a parameter of this path%s",
                      value_suggest_name(d, table, FROM_QUERY, here.name));
    }
}

enum err field_decode(const struct field *table, const struct field_input *in, struct arena *arena, void *out,
                      struct problem *p)
{
    static const struct pairs none;
    struct decoder d = { .in = in, .arena = arena, .p = p };
    int before = p->count;
    TRY(take_body(&d, table, out));
    take_pairs(&d, table, FROM_PATH, in->path ? in->path : &none, out);
    take_pairs(&d, table, FROM_QUERY, in->query ? in->query : &none, out);
    return p->count == before ? OK : ERR_INVALID_FIELDS;
}

bool field_has_min(const struct field *f)
{
    return f->min != 0 || f->max != 0;
}

bool field_has_max(const struct field *f)
{
    return f->max >= f->min && field_has_min(f);
}

bool field_is_true(const char *value)
{
    return value && strcmp(value, "true") == 0;
}

const struct field *field_find(const struct field *table, const char *name)
{
    for (const struct field *f = table; f->name; f++)
        if (strcmp(f->name, name) == 0)
            return f;
    return NULL;
}
