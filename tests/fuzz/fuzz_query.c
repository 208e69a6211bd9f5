/* Fuzzes queries: pairs are the same after escaping and decoding again, and decoded fields can be rendered.
 */
#include "server/dispatch/uri.h"
#include "tests/fuzz/fuzz.h"

struct query_in {
    struct fuzz_in all;
    struct cursor_values cursor;
};

static const struct field fields[] = {
    FUZZ_ROWS(FROM_QUERY),
    FIELD(FROM_QUERY, KIND_CURSOR, struct query_in, cursor),
    END_FIELDS,
};

static void put_escaped(struct buf *out, const char *text)
{
    for (; *text; text++)
        buf_fmt(out, "%%%02X", (unsigned)(unsigned char)*text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = { 0 };
    struct problem problem = { .arena = &arena };
    struct uri uri, again;
    const char *target = arena_fmt(&arena, "/x?%s", arena_copy(&arena, data, size));
    enum err e = uri_parse(target, &arena, &uri, &problem);
    if (e != OK) {
        fuzz_check_problem(e, &problem, &arena);
        arena_release(&arena);
        return 0;
    }
    struct buf escaped = { .arena = &arena };
    buf_text(&escaped, "/x?");
    for (size_t i = 0; i < uri.query.count; i++) {
        put_escaped(&escaped, uri.query.items[i].name);
        buf_char(&escaped, '=');
        put_escaped(&escaped, uri.query.items[i].value);
        buf_char(&escaped, '&');
    }
    HOLDS(uri_parse(buf_string(&escaped), &arena, &again, &problem) == OK);
    HOLDS(again.query.count == uri.query.count && uri.query.count <= URI_PAIRS);
    for (size_t i = 0; i < uri.query.count; i++) {
        HOLDS(strcmp(uri.query.items[i].name, again.query.items[i].name) == 0);
        HOLDS(strcmp(uri.query.items[i].value, again.query.items[i].value) == 0);
    }

    struct query_in in = { 0 };
    struct field_input input = { .query = &uri.query, .depth_limit = 8, .now = fuzz_now };
    e = field_decode(fields, &input, &arena, &in, &problem);
    if (e != OK)
        fuzz_check_problem(e, &problem, &arena);
    else
        for (const struct field *f = fields; f->name; f++) {
            const char *name = f->kind == KIND_CURSOR ? "cursor_1" : f->name;
            const char *param = field_param(fields, &in, name, &arena);
            HOLDS(!param || utf8_check(param, strlen(param)) == strlen(param));
        }
    arena_release(&arena);
    return 0;
}
