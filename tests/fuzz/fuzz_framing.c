/* Fuzzes the framing of requests: heads and bodies of any bytes, in pieces of any size. The end that is found
 * does not depend on the pieces. */

#include "server/http/framing.h"
#include "tests/fuzz/fuzz.h"

/* Where the body of a valid head ends, taken in pieces of `step` bytes; -1: it is rejected, or incomplete. */
static long body_end(struct framing f, const char *body, size_t len, size_t step)
{
    size_t at = 0;
    while (at < len && f.state != FRAMING_HEAD) {
        size_t taken, n = len - at < step ? len - at : step;
        if (framing_take_body(&f, body + at, n, &taken).err != OK)
            return -1;
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
    const long whole = body_end(f, bytes + end, size - end, size);
    HOLDS(whole == body_end(f, bytes + end, size - end, 1));
    HOLDS(whole == body_end(f, bytes + end, size - end, 7));
    return 0;
}
