/* Fuzzes the framing of requests: heads and bodies of any bytes, in pieces of any size. The end that is found
 * does not depend on the pieces. */

#include "server/http/framing.h"
#include "tests/fuzz/fuzz.h"

/* Where the body of a valid head ends, taken in pieces of `step` bytes; -1: it is rejected, or incomplete.
 * `out` gets what remains of it. */
static long body_end(struct framing f, const char *body, size_t len, size_t step, struct buf *out)
{
    size_t at = 0;
    while (at < len && f.state != FRAMING_HEAD) {
        size_t taken, kept, n = len - at < step ? len - at : step;
        char *piece = buf_room(out, n);
        memcpy(piece, body + at, n);
        if (framing_take_body(&f, piece, n, &taken, &kept).err != OK)
            return -1;
        HOLDS(kept <= taken && taken <= n);
        out->len += kept;
        at += taken;
    }
    return f.state == FRAMING_HEAD ? (long)at : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    struct framing f = { 0 };
    size_t end, sooner;
    struct framing_verdict v = framing_find_end(bytes, size, &end);
    if (v.err != OK || end <= 2)
        return 0;
    v = framing_find_end(bytes, end - 1, &sooner);
    HOLDS(v.err == OK && sooner == 0);
    if (framing_check_head(&f, bytes, end).err != OK)
        return 0;
    HOLDS(framing_check_start(bytes, end - 1).err == OK);
    struct arena arena = { 0 };
    char *tidy = arena_copy(&arena, bytes, end);
    struct framing same = { 0 };
    framing_tidy_head(tidy, end);
    HOLDS(framing_check_head(&same, tidy, end).err == OK && same.state == f.state && same.left == f.left);

    struct buf whole = { .arena = &arena };
    const long at = body_end(f, bytes + end, size - end, size, &whole);
    for (size_t step = 1; step < 8; step += 6) {
        struct buf out = { .arena = &arena };
        HOLDS(at == body_end(f, bytes + end, size - end, step, &out));
        HOLDS(at < 0 || (out.len == whole.len && (!out.len || memcmp(out.data, whole.data, out.len) == 0)));
    }
    arena_release(&arena);
    return 0;
}
