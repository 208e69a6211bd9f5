/* Formats a log line as text or JSON. */
#include "server/log_line.h"

#include <string.h>
#include <time.h>

#include "core/base/utf8.h"

/* Reserved for the end of the line. */
enum { CLOSING_BYTES = 16 };

/* The formatted time of the last second, cached because formatting it costs more than the rest of the line.
 */
static _Thread_local struct {
    time_t second;
    char stamp[24];
} last;

static void put(struct log_line *l, const char *bytes, size_t len)
{
    size_t room = l->at < l->end ? (size_t)(l->end - l->at) : 0;
    if (len > room)
        len = room;
    memcpy(l->at, bytes, len);
    l->at += len;
}

static void put_string(struct log_line *l, const char *text)
{
    put(l, text, strlen(text));
}

static void put_number(struct log_line *l, long long value)
{
    char digits[24];
    char *p = digits + sizeof digits;
    unsigned long long left = value < 0 ? 0ULL - (unsigned long long)value : (unsigned long long)value;
    do
        *--p = (char)('0' + left % 10);
    while (left /= 10);
    if (value < 0)
        *--p = '-';
    put(l, p, (size_t)(digits + sizeof digits - p));
}

/* The letter of a short escape such as \n; 0: none. */
static char escape_letter(unsigned char c)
{
    switch (c) {
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    case '"':
    case '\\':
        return (char)c;
    default:
        return 0;
    }
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* The length of the character at `text`; 0 if it is invalid UTF-8 or a C1 control character. */
static size_t character_bytes(const char *text, size_t len)
{
    if (len >= 2 && text[0] == '\xc2' && (unsigned char)text[1] < 0xa0)
        return 0;
    for (size_t n = 1; n <= 4 && n <= len; n++) {
        if (utf8_check(text, n) == n)
            return n;
    }
    return 0;
}

/* Escapes control characters and invalid UTF-8. `quotes`: escape quotes and backslashes too. */
static void put_escaped(struct log_line *l, const char *text, size_t len, bool quotes)
{
    static const char hex[] = "0123456789abcdef";
    size_t i = 0;
    while (i < len && l->end - l->at >= 8) {
        unsigned char c = (unsigned char)text[i];
        if (is_plain(c) || (!quotes && (c == '"' || c == '\\'))) {
            *l->at++ = (char)c;
            i++;
        } else if (c >= 0x80) {
            size_t n = character_bytes(text + i, len - i);
            if (n)
                put(l, text + i, n);
            else
                put_string(l, "\xef\xbf\xbd");
            i += n ? n : 1;
        } else {
            char letter = escape_letter(c);
            char code[6] = { '\\', letter, '0', '0', hex[c >> 4], hex[c & 15] };
            if (!letter)
                code[1] = 'u';
            put(l, code, letter ? 2 : 6);
            i++;
        }
    }
}

static void put_name(struct log_line *l, const char *name, size_t len)
{
    if (l->json) {
        put(l, ",\"", 2);
        put(l, name, len);
        put(l, "\":", 2);
    } else {
        put(l, " ", 1);
        put(l, name, len);
        put(l, "=", 1);
    }
}

static bool needs_quotes(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c <= ' ' || c >= 0x7f || c == '"' || c == '\\')
            return true;
    }
    return len == 0;
}

static void put_value(struct log_line *l, const char *text, size_t len, bool quoted)
{
    if (quoted)
        put(l, "\"", 1);
    put_escaped(l, text, len, true);
    if (quoted)
        *l->at++ = '"'; /* fits in CLOSING_BYTES */
}

/* Omits a field that may not fit, rather than truncating it. */
void log_line_text(struct log_line *l, const char *name, const char *text)
{
    if (!text || l->end - l->at < 256)
        return;
    put_name(l, name, strlen(name));
    const size_t len = strnlen(text, 512);
    put_value(l, text, len, l->json || needs_quotes(text, len));
}

void log_line_number(struct log_line *l, const char *name, long long value)
{
    if (l->end - l->at < 64)
        return;
    put_name(l, name, strlen(name));
    put_number(l, value);
}

static void put_time(struct log_line *l)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != last.second || !last.stamp[0]) {
        struct tm tm;
        gmtime_r(&now.tv_sec, &tm);
        strftime(last.stamp, sizeof last.stamp, "%Y-%m-%dT%H:%M:%S.", &tm);
        last.second = now.tv_sec;
    }
    unsigned ms = (unsigned)(now.tv_nsec / 1000000);
    char rest[4] = { (char)('0' + ms / 100), (char)('0' + ms / 10 % 10), (char)('0' + ms % 10), 'Z' };
    put(l, last.stamp, 20);
    put(l, rest, sizeof rest);
}

void log_line_open(struct log_line *l, char *bytes, size_t size, bool json, const char *level,
                   const char *event)
{
    *l = (struct log_line){ .at = bytes, .end = bytes + size - CLOSING_BYTES, .json = json };
    if (l->json)
        put_string(l, "{\"ts\":\"");
    put_time(l);
    put_string(l, l->json ? "\",\"level\":\"" : " ");
    put_string(l, level);
    put_string(l, l->json ? "\",\"event\":\"" : " ");
    put_string(l, event);
    if (l->json)
        put(l, "\"", 1);
}

size_t log_line_close(struct log_line *l, const char *bytes)
{
    if (l->json)
        *l->at++ = '}';
    *l->at++ = '\n';
    return (size_t)(l->at - bytes);
}

/* ---- details ---- */

/* The length of the name if the text starts with `name=`; otherwise 0. */
static size_t field_name(const char *text)
{
    size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return n && text[n] == '=' ? n : 0;
}

/* The end of the value. A quoted value ends at a quote before the next field or the end of the text. NULL: it
 * is unterminated. */
static const char *value_end(const char *value)
{
    if (*value != '"')
        return value + strcspn(value, " ");
    for (const char *q = strchr(value + 1, '"'); q; q = strchr(q + 1, '"')) {
        if (!q[1] || (q[1] == ' ' && field_name(q + 2)))
            return q + 1;
    }
    return NULL;
}

/* Parses name=value pairs, and writes them as fields unless `l` is NULL. Returns false if the text is not
 * made of pairs. */
static bool detail_fields(struct log_line *l, const char *text)
{
    while (*text) {
        size_t n = field_name(text);
        const char *value = text + n + 1;
        const char *end = n ? value_end(value) : NULL;
        if (!end || (*end && *end != ' '))
            return false;
        if (l && l->end - l->at >= 256) {
            bool quoted = *value == '"';
            size_t len = (size_t)(end - value);
            put_name(l, text, n);
            if (!quoted && len && len <= 15 && strspn(value, "0123456789") >= len &&
                (len == 1 || *value != '0'))
                put(l, value, len);
            else
                put_value(l, quoted ? value + 1 : value, quoted ? len - 2 : len,
                          quoted || l->json || needs_quotes(value, len));
        }
        text = *end ? end + 1 : end;
    }
    return true;
}

void log_line_detail(struct log_line *l, const char *text)
{
    if (!*text || l->end - l->at < 64)
        return;
    if (detail_fields(NULL, text)) {
        detail_fields(l, text);
    } else if (!l->json) {
        put(l, " ", 1);
        put_escaped(l, text, strlen(text), false);
    } else {
        put_name(l, "detail", 6);
        put_value(l, text, strlen(text), true);
    }
}
