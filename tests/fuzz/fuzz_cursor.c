/* Fuzzes cursors: a cursor that decodes has no other spelling, and encoded values decode to themselves. */
#include "core/base/hash.h"
#include "tests/fuzz/fuzz.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* The bytes with a valid checksum appended, so that the fuzzer gets past that check. */
static const char *forge(const uint8_t *data, size_t size, struct arena *arena)
{
    struct buf raw = { .arena = arena }, out = { .arena = arena };
    buf_add(&raw, data, size);
    uint64_t h = hash_bytes(data, size, HASH_SEED);
    for (int i = 3; i >= 0; i--)
        buf_char(&raw, (char)((uint32_t)(h ^ h >> 32) >> (8 * i)));
    unsigned bits = 0, held = 0;
    for (size_t i = 0; i < raw.len; i++) {
        bits = (bits << 8 | (unsigned char)raw.data[i]) & 0xffff;
        for (held += 8; held >= 6; held -= 6)
            buf_char(&out, alphabet[bits >> (held - 6) & 63]);
    }
    if (held)
        buf_char(&out, alphabet[bits << (6 - held) & 63]);
    return buf_string(&out);
}

static void check_text(const char *text, uint64_t scope, struct arena *arena)
{
    struct cursor_values values;
    if (!cursor_decode(text, scope, arena, &values))
        return;
    HOLDS(values.count >= 0 && values.count <= CURSOR_VALUES);
    struct buf again = { .arena = arena };
    cursor_encode(&again, &values, scope);
    HOLDS(strcmp(buf_string(&again), text) == 0);
    HOLDS(!cursor_decode(text, scope + 1, arena, &values));
}

static void check_values(const char *text, uint64_t scope, struct arena *arena)
{
    size_t len = strlen(text), half = utf8_cut(text, len, len / 2);
    if (utf8_check(text, len) != len)
        return;
    struct cursor_values values = { .count = 2, .value = { arena_copy(arena, text, half), text + half } },
                         back;
    struct buf out = { .arena = arena };
    cursor_encode(&out, &values, scope);
    HOLDS(cursor_decode(buf_string(&out), scope, arena, &back));
    HOLDS(back.count == 2 && strcmp(back.value[0], values.value[0]) == 0 &&
          strcmp(back.value[1], values.value[1]) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = { 0 };
    const char *text = arena_copy(&arena, data, size);
    check_text(text, 0, &arena);
    check_values(text, size, &arena);
    if (size >= 9) { /* a scope taken from the forged bytes */
        uint64_t scope = 0;
        for (size_t i = 1; i < 9; i++)
            scope = scope << 8 | data[i];
        check_text(forge(data, size, &arena), scope, &arena);
    }
    arena_release(&arena);
    return 0;
}
