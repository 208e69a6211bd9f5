/* Opaque cursors: the sort key of the last row of a page, bound to the query that it came from.
 *
 * Text: base64url without padding of
 *     version (1 byte)  scope (8)  count (1)  each value and a NUL  check (4)
 * with all integers big-endian. The check is a hash of everything before it. It catches what was cut, typed
 * wrong or made for another page; it is no signature, and needs none: a cursor can only point to a
 * position in the owner's own rows. */
#include "core/base/cursor.h"

#include "core/base/hash.h"
#include "core/base/utf8.h"

enum { VERSION = 1, HEAD_BYTES = 10, CHECK_BYTES = 4 };

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void put(struct buf *b, uint64_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        buf_char(b, (char)(value >> (8 * i)));
}

static uint64_t get(const unsigned char *from, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | from[i];
    return value;
}

static uint32_t check_of(const void *bytes, size_t len)
{
    uint64_t h = hash_bytes(bytes, len, HASH_SEED);
    return (uint32_t)(h ^ h >> 32);
}

static void base64_encode(struct buf *out, const unsigned char *from, size_t len)
{
    for (size_t i = 0; i < len; i += 3) {
        size_t have = len - i < 3 ? len - i : 3;
        uint32_t group = (uint32_t)from[i] << 16;
        if (have > 1)
            group |= (uint32_t)from[i + 1] << 8;
        if (have > 2)
            group |= from[i + 2];
        for (size_t k = 0; k <= have; k++)
            buf_char(out, alphabet[group >> (18 - 6 * k) & 63]);
    }
}

static int sextet(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '-' ? 62 : c == '_' ? 63 : -1;
}

/* Rejects padding, other alphabets and set bits after the last byte, so that each cursor has one spelling. */
static bool base64_decode(const char *text, size_t len, unsigned char *to, size_t *to_len)
{
    uint32_t group = 0;
    int bits = 0;
    *to_len = 0;
    for (size_t i = 0; i < len; i++) {
        int value = sextet(text[i]);
        if (value < 0)
            return false;
        group = group << 6 | (uint32_t)value;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            to[(*to_len)++] = (unsigned char)(group >> bits);
            group &= (1U << bits) - 1;
        }
    }
    return bits < 6 && group == 0;
}

void cursor_encode(struct buf *out, const struct cursor_values *values, uint64_t scope)
{
    struct buf raw = { .arena = out->arena };
    put(&raw, VERSION, 1);
    put(&raw, scope, 8);
    put(&raw, (uint64_t)values->count, 1);
    for (int i = 0; i < values->count; i++)
        buf_add(&raw, values->value[i], strlen(values->value[i]) + 1);
    put(&raw, check_of(raw.data, raw.len), CHECK_BYTES);
    base64_encode(out, (const unsigned char *)raw.data, raw.len);
}

bool cursor_decode(const char *text, uint64_t scope, struct arena *arena, struct cursor_values *values)
{
    size_t text_len = strlen(text);
    size_t len;
    unsigned char *raw = arena_alloc(arena, text_len + 1);
    if (!base64_decode(text, text_len, raw, &len) || len < HEAD_BYTES + CHECK_BYTES)
        return false;
    len -= CHECK_BYTES;
    if (raw[0] != VERSION || get(raw + 1, 8) != scope || get(raw + len, CHECK_BYTES) != check_of(raw, len))
        return false;

    int count = raw[HEAD_BYTES - 1];
    if (count > CURSOR_VALUES)
        return false;
    struct cursor_values found = { .count = count };
    size_t at = HEAD_BYTES;
    for (int i = 0; i < count; i++) {
        const unsigned char *end = memchr(raw + at, '\0', len - at);
        if (!end)
            return false;
        found.value[i] = (const char *)raw + at;
        size_t value_len = (size_t)(end - (raw + at));
        if (utf8_check(found.value[i], value_len) != value_len)
            return false;
        at += value_len + 1;
    }
    if (at != len)
        return false;
    *values = found;
    return true;
}
