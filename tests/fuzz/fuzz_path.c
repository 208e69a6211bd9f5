/* Fuzzes request targets: segments are valid text, and are the same after escaping and decoding again. */
#include "server/dispatch/uri.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = { 0 };
    struct problem problem = { .arena = &arena };
    struct uri uri, again;
    enum err e = uri_parse(arena_copy(&arena, data, size), &arena, &uri, &problem);
    if (e != OK) {
        fuzz_check_problem(e, &problem, &arena);
        arena_release(&arena);
        return 0;
    }
    HOLDS(uri.segments <= URI_SEGMENTS);
    HOLDS(uri.path[0] == '/' || strcmp(uri.path, "*") == 0);
    struct buf escaped = { .arena = &arena };
    for (size_t i = 0; i < uri.segments; i++) {
        HOLDS(utf8_check(uri.segment[i], strlen(uri.segment[i])) == strlen(uri.segment[i]));
        buf_char(&escaped, '/');
        for (const char *c = uri.segment[i]; *c; c++)
            buf_fmt(&escaped, "%%%02x", (unsigned)(unsigned char)*c);
    }
    if (escaped.len < 2) /* the root, or one empty segment, which only "//" can spell */
        buf_text(&escaped, "/");
    HOLDS(uri_parse(buf_string(&escaped), &arena, &again, &problem) == OK);
    HOLDS(again.query.count == 0);
    for (size_t i = 0; i < uri.segments; i++)
        HOLDS(strcmp(uri.segment[i], again.segment[i]) == 0);
    arena_release(&arena);
    return 0;
}
