/* UUIDs as text. */
#include "core/base/uuid.h"

static const char hex[] = "0123456789abcdef";

static bool is_dash(int at)
{
    return at == 8 || at == 13 || at == 18 || at == 23;
}

bool uuid_parse(const char *text, char out[UUID_SIZE])
{
    for (int i = 0; i < UUID_SIZE - 1; i++) {
        char c = text[i];
        if (c >= 'A' && c <= 'F')
            c = (char)(c - 'A' + 'a');
        bool good = is_dash(i) ? c == '-' : (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        if (!good)
            return false; /* the NUL of a short text ends here too */
        out[i] = c;
    }
    out[UUID_SIZE - 1] = '\0';
    return text[UUID_SIZE - 1] == '\0';
}

void uuid_v7(int64_t unix_ms, const unsigned char random[UUID_RANDOM_BYTES], char out[UUID_SIZE])
{
    unsigned char bytes[16];
    for (int i = 0; i < 6; i++)
        bytes[i] = (unsigned char)((uint64_t)unix_ms >> (40 - 8 * i));
    for (int i = 0; i < UUID_RANDOM_BYTES; i++)
        bytes[6 + i] = random[i];
    bytes[6] = 0x70 | (bytes[6] & 0x0f);
    bytes[8] = 0x80 | (bytes[8] & 0x3f);
    int nibble = 0;
    for (int i = 0; i < UUID_SIZE - 1; i++) {
        if (is_dash(i)) {
            out[i] = '-';
            continue;
        }
        out[i] = hex[nibble % 2 ? bytes[nibble / 2] & 15 : bytes[nibble / 2] >> 4];
        nibble++;
    }
    out[UUID_SIZE - 1] = '\0';
}
