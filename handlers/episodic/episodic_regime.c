/* Regimes and signals in request bodies: reads them for core/episodic/rerun. */
#include <string.h>

#include "core/base/json_put.h"
#include "handlers/episodic/episodic.h"
#include "server/json/reader.h"

/* clang-format off */
#define R(kind, member, ...) FIELD(FROM_BODY, kind, struct regime_in, member, __VA_ARGS__)
const struct field regime_fields[] = {
    R(KIND_NAME, name),
    R(KIND_SCALAR, value, .required = true, .min = 1, .max = 64),
    END_FIELDS,
};
/* clang-format on */

/* The first character of a value determines its kind: text, boolean or number. */
static struct regime_tag read_tag(struct json_reader *r, const char *name)
{
    switch (reader_peek(r)) {
    case '"':
        return (struct regime_tag){ name, REGIME_TAG_TEXT, reader_text(r) };
    case 't':
    case 'f':
        return (struct regime_tag){ name, REGIME_TAG_BOOL, reader_word(r) };
    default: /* null and other kinds give no value */
        return (struct regime_tag){ name, REGIME_TAG_NUMBER, reader_lexeme(r) };
    }
}

struct regime_tags episodic_regime_from_json(struct arena *arena, const char *json)
{
    struct regime_tag *items = arena_alloc(arena, RERUN_TAGS_MAX * sizeof *items);
    size_t count = 0;
    struct json_reader r = reader_begin_stored(arena_text(arena, json), strlen(json));
    if (reader_object(&r))
        for (const char *name; (name = reader_name(&r));) {
            struct regime_tag tag = read_tag(&r, name);
            if (tag.text && count < RERUN_TAGS_MAX)
                items[count++] = tag;
        }
    return (struct regime_tags){ count, items };
}

void episodic_regime_json(struct buf *out, const struct objects *map)
{
    const struct regime_in *items = map->items;
    buf_char(out, '{');
    for (size_t i = 0; i < map->count; i++)
        json_put_raw(out, items[i].name, items[i].value);
    buf_char(out, '}');
}

struct regime_tags episodic_regime_from_body(struct arena *arena, const struct objects *map)
{
    struct buf out = { .arena = arena };
    episodic_regime_json(&out, map);
    return episodic_regime_from_json(arena, buf_string(&out));
}

/* ---- signals ---- */

/* The signals that are not regime tags. */
static const struct {
    const char *name;
    size_t offset;
} flags[] = {
    { "new_filing_since", offsetof(struct rerun_signals, new_filing) },
    { "guidance_update_since", offsetof(struct rerun_signals, guidance_update) },
};
enum { FLAGS = sizeof flags / sizeof *flags };

static enum err take_flag(struct call *c, const char *field, const struct regime_in *signal, bool *flag)
{
    *flag = field_is_true(signal->value);
    if (*flag || strcmp(signal->value, "false") == 0)
        return OK;
    return problem_field(&c->problem, arena_fmt(&c->arena, "%s.%s", field, signal->name), FAULT_WRONG_TYPE,
                         "must be true or false");
}

enum err episodic_rerun_signals(struct call *c, const char *field, const struct objects *map,
                                struct rerun_signals *out)
{
    const struct regime_in *given = map->items;
    struct regime_in *rest = arena_alloc(&c->arena, (map->count + 1) * sizeof *rest);
    struct objects regime = { .items = rest };
    enum err err = OK;
    *out = (struct rerun_signals){ 0 };
    for (size_t i = 0; i < map->count; i++) {
        size_t f = 0;
        while (f < FLAGS && strcmp(flags[f].name, given[i].name) != 0)
            f++;
        if (f == FLAGS)
            rest[regime.count++] = given[i];
        else if (take_flag(c, field, &given[i], (bool *)((char *)out + flags[f].offset)) != OK)
            err = ERR_INVALID_FIELDS;
    }
    if (regime.count > RERUN_TAGS_MAX)
        err =
            problem_field(&c->problem, field, FAULT_TOO_MANY, "has more than %d regime tags", RERUN_TAGS_MAX);
    out->regime = episodic_regime_from_body(&c->arena, &regime);
    return err;
}
