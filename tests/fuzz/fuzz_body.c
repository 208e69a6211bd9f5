/* Fuzzes the decoding of bodies: an accepted body renders as JSON that decodes to the same values. */
#include "server/json/tree.h"
#include "tests/fuzz/fuzz.h"

struct outer {
    struct fuzz_in *all;
};

static const struct field all_fields[] = {
    FUZZ_ROWS(FROM_BODY),
    FIELD(FROM_BODY, KIND_OBJECT, struct fuzz_in, point, SUB(fuzz_point_fields, struct fuzz_point)),
    FIELD(FROM_BODY, KIND_OBJECTS, struct fuzz_in, points, .max = 5,
          SUB(fuzz_point_fields, struct fuzz_point)),
    END_FIELDS,
};

static const struct field outer_fields[] = {
    FIELD(FROM_BODY, KIND_OBJECT, struct outer, all, SUB(all_fields, struct fuzz_in)),
    END_FIELDS,
};

static enum err decode(const char *body, size_t len, struct arena *arena, struct outer *out,
                       struct problem *p)
{
    *p = (struct problem){ .arena = arena };
    *out = (struct outer){ 0 };
    struct field_input in = { .body = body, .body_len = len, .depth_limit = 16, .now = fuzz_now };
    return field_decode(outer_fields, &in, arena, out, p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = { 0 };
    struct problem problem;
    struct outer first, second;
    enum err e = decode((const char *)data, size, &arena, &first, &problem);
    if (e != OK) {
        fuzz_check_problem(e, &problem, &arena);
        struct buf document = { .arena = &arena };
        problem_json(&document, e, &problem, "request");
        json_t *json;
        HOLDS(tree_read(document.data, document.len, 8, &arena, &json, &problem) == OK);
        json_decref(json);
    } else if (first.all) {
        const char *rendered = field_param(outer_fields, &first, "all", &arena);
        const char *body = arena_fmt(&arena, "{\"all\":%s}", rendered);
        HOLDS(decode(body, strlen(body), &arena, &second, &problem) == OK);
        HOLDS(strcmp(rendered, field_param(outer_fields, &second, "all", &arena)) == 0);
        for (const struct field *f = all_fields; f->name; f++) {
            const char *param = field_param(all_fields, first.all, f->name, &arena);
            HOLDS(!param || utf8_check(param, strlen(param)) == strlen(param));
        }
    }
    arena_release(&arena);
    return 0;
}
