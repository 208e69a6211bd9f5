/* Writes decoded fields as statement parameters, in PostgreSQL's text format. */
#include "server/json/field.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array_text.h"
#include "core/base/cursor.h"

static const char *array_literal(const struct texts *list, struct arena *arena)
{
    struct buf out = { .arena = arena };
    for (size_t i = 0; i < list->count; i++)
        array_text_add(&out, list->items[i]);
    return array_text_end(&out);
}

static void put_object(struct buf *out, const struct field *table, const void *values);

static void put_value(struct buf *out, const struct field *f, const void *member);

static void put_map(struct buf *out, const struct field *f, const struct objects *map)
{
    buf_char(out, '{');
    for (size_t i = 0; i < map->count; i++) {
        const char *item = (const char *)map->items + i * f->sub_size;
        if (i)
            buf_char(out, ',');
        put_value(out, &f->sub[0], item + f->sub[0].offset);
        buf_char(out, ':');
        put_value(out, &f->sub[1], item + f->sub[1].offset);
    }
    buf_char(out, '}');
}

static void put_numbers(struct buf *out, const struct texts *list)
{
    buf_char(out, '[');
    for (size_t i = 0; i < list->count; i++) {
        if (i)
            buf_char(out, ',');
        buf_text(out, list->items[i]);
    }
    buf_char(out, ']');
}

static void put_objects(struct buf *out, const struct field *f, const struct objects *list)
{
    buf_char(out, '[');
    for (size_t i = 0; i < list->count; i++) {
        if (i)
            buf_char(out, ',');
        put_object(out, f->sub, (const char *)list->items + i * f->sub_size);
    }
    buf_char(out, ']');
}

static void put_texts(struct buf *out, const struct texts *list)
{
    buf_char(out, '[');
    for (size_t i = 0; i < list->count; i++) {
        if (i)
            buf_char(out, ',');
        buf_json_string(out, list->items[i]);
    }
    buf_char(out, ']');
}

/* Writes the value as JSON; null if absent. */
static void put_value(struct buf *out, const struct field *f, const void *member)
{
    const char *text;
    switch (f->kind) {
    case KIND_INT:
        if (*(const int64_t *)member == FIELD_NO_INT)
            buf_text(out, "null");
        else
            buf_fmt(out, "%lld", (long long)*(const int64_t *)member);
        break;
    case KIND_NUMBER:
    case KIND_BOOL:
    case KIND_SCALAR:
    case KIND_JSON:
        text = *(const char *const *)member;
        buf_text(out, text ? text : "null");
        break;
    case KIND_TEXTS:
    case KIND_TAGS:
    case KIND_UUIDS:
        if (((const struct texts *)member)->items)
            put_texts(out, member);
        else
            buf_text(out, "null");
        break;
    case KIND_OBJECT:
        if (*(void *const *)member)
            put_object(out, f->sub, *(void *const *)member);
        else
            buf_text(out, "null");
        break;
    case KIND_OBJECTS:
        if (((const struct objects *)member)->items)
            put_objects(out, f, member);
        else
            buf_text(out, "null");
        break;
    case KIND_MAP:
        if (((const struct objects *)member)->items)
            put_map(out, f, member);
        else
            buf_text(out, "null");
        break;
    case KIND_NUMBERS:
        if (((const struct texts *)member)->items)
            put_numbers(out, member);
        else
            buf_text(out, "null");
        break;
    case KIND_CURSOR:
        buf_text(out, "null"); /* never part of an object */
        break;
    default:
        buf_json_string(out, *(const char *const *)member);
    }
}

static void put_object(struct buf *out, const struct field *table, const void *values)
{
    buf_char(out, '{');
    for (const struct field *f = table; f->name; f++) {
        if (f != table)
            buf_char(out, ',');
        buf_fmt(out, "\"%s\":", f->name);
        put_value(out, f, (const char *)values + f->offset);
    }
    buf_char(out, '}');
}

/* "cursor_1" is the first value of the field "cursor". */
static bool cursor_part(const struct field *f, const char *name, int *part)
{
    size_t len = strlen(f->name);
    if (f->kind != KIND_CURSOR || strncmp(f->name, name, len) != 0 || name[len] != '_')
        return false;
    *part = name[len + 1] - '1';
    return *part >= 0 && *part < CURSOR_VALUES && name[len + 2] == '\0';
}

bool field_ref_find(const struct field *table, const char *name, struct field_ref *ref)
{
    for (const struct field *f = table; f && f->name; f++) {
        *ref = (struct field_ref){ .field = f };
        if ((strcmp(f->name, name) == 0 && f->kind != KIND_CURSOR) || cursor_part(f, name, &ref->part))
            return true;
    }
    return false;
}

const char *field_ref_value(const struct field_ref *ref, const void *values, struct arena *arena)
{
    const struct field *f = ref->field;
    const void *member = (const char *)values + f->offset;
    const struct cursor_values *cursor = member;
    struct buf out = { .arena = arena };
    switch (f->kind) {
    case KIND_INT:
        if (*(const int64_t *)member == FIELD_NO_INT)
            return NULL;
        buf_int(&out, *(const int64_t *)member);
        return buf_string(&out);
    case KIND_TEXTS:
    case KIND_TAGS:
    case KIND_UUIDS:
        return ((const struct texts *)member)->items ? array_literal(member, arena) : NULL;
    case KIND_OBJECT:
        if (!*(void *const *)member)
            return NULL;
        break;
    case KIND_OBJECTS:
    case KIND_MAP:
        if (!((const struct objects *)member)->items)
            return NULL;
        break;
    case KIND_NUMBERS:
        if (!((const struct texts *)member)->items)
            return NULL;
        break;
    case KIND_CURSOR:
        return ref->part < cursor->count ? cursor->value[ref->part] : NULL;
    default:
        return *(const char *const *)member;
    }
    put_value(&out, f, member);
    return buf_string(&out);
}

const char *field_param(const struct field *table, const void *values, const char *name, struct arena *arena)
{
    struct field_ref ref;
    if (!field_ref_find(table, name, &ref)) {
        fprintf(stderr, "daybookd: a field table has no field %s\n", name);
        abort();
    }
    return field_ref_value(&ref, values, arena);
}
