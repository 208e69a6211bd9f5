/* The framing of HTTP/1.1 requests: where each head and body ends, and which heads are rejected. */
#include "server/http/framing.h"

#include <string.h>
#include <strings.h>

static const struct framing_verdict valid = { OK, NULL };

static struct framing_verdict bad(const char *why)
{
    return (struct framing_verdict){ ERR_BAD_REQUEST, why };
}

/* ---- the head ---- */

struct framing_verdict framing_find_end(const char *bytes, size_t len, size_t *end)
{
    size_t line = 0; /* where the current line starts */
    *end = 0;
    for (const char *lf; (lf = memchr(bytes + line, '\n', len - line));) {
        const size_t at = (size_t)(lf - bytes);
        if (at == line || bytes[at - 1] != '\r')
            return bad("a line of the head ends without CR LF");
        if (at == line + 1) {
            *end = at + 1;
            return valid;
        }
        line = at + 1;
    }
    return valid;
}

/* A part of the head. */
struct part {
    const char *at;
    size_t len;
};

#define PART(text) { text, sizeof text - 1 }

static bool is_token_char(unsigned char c)
{
    static const bool token_chars[256] = {
        ['!'] = true,         ['#' ... '\''] = true, ['*' ... '+'] = true, ['-' ... '.'] = true,
        ['0' ... '9'] = true, ['A' ... 'Z'] = true,  ['^' ... 'z'] = true, /* ^ _ ` and the letters */
        ['|'] = true,         ['~'] = true,
    };
    return token_chars[c];
}

static bool is_token(struct part p)
{
    bool all = p.len;
    for (size_t i = 0; i < p.len; i++)
        all &= is_token_char((unsigned char)p.at[i]);
    return all;
}

static bool is_control(unsigned char c)
{
    return c < ' ' || c == 0x7f;
}

/* Not 0 if one of the eight bytes is a control character. */
static uint64_t controls(const char *eight)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word;
    memcpy(&word, eight, sizeof word);
    const uint64_t del = word ^ ones * 0x7f; /* zero where a byte is 0x7f */
    return (((word - ones * ' ') & ~word) | ((del - ones) & ~del)) & ones << 7;
}

/* Every byte of a target and of a value passes here. */
static bool has_control(struct part p)
{
    uint64_t found = 0;
    for (size_t i = 0; p.len >= 8 && i < p.len - 8; i += 8)
        found |= controls(p.at + i);
    if (p.len >= 8)
        return found | controls(p.at + p.len - 8);
    for (size_t i = 0; i < p.len; i++)
        found |= is_control((unsigned char)p.at[i]);
    return found;
}

/* Visible ASCII and bytes of UTF-8, which are checked when it is decoded. The part has no space. */
static bool is_target(struct part p)
{
    return p.len && !has_control(p);
}

static bool is_value(struct part p)
{
    if (!has_control(p))
        return true;
    for (size_t i = 0; i < p.len; i++)
        if (is_control((unsigned char)p.at[i]) && p.at[i] != '\t')
            return false;
    return true;
}

static bool is_same(struct part p, struct part text)
{
    return p.len == text.len && strncasecmp(p.at, text.at, p.len) == 0;
}

static size_t count_parameters(struct part target)
{
    const char *query = memchr(target.at, '?', target.len);
    size_t count = query != NULL;
    for (const char *end = target.at + target.len;
         query && (query = memchr(query, '&', (size_t)(end - query))); query++)
        count++;
    return count;
}

/* Headers that decide how the request is read and who sent it. Two of one kind are ambiguous. */
enum single {
    HOST,
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    AUTHORIZATION,
    API_KEY,
    CONTENT_TYPE,
    IDEMPOTENCY_KEY,
    SINGLES
};

static const struct {
    struct part name;
    const char *twice;
} singles[SINGLES] = {
    [HOST] = { PART("Host"), "the Host header is given twice" },
    [CONTENT_LENGTH] = { PART("Content-Length"), "the body length is given twice" },
    [TRANSFER_ENCODING] = { PART("Transfer-Encoding"), "the body length is given twice" },
    [AUTHORIZATION] = { PART("Authorization"), "the Authorization header is given twice" },
    [API_KEY] = { PART("X-API-Key"), "the X-API-Key header is given twice" },
    [CONTENT_TYPE] = { PART("Content-Type"), "the Content-Type header is given twice" },
    [IDEMPOTENCY_KEY] = { PART("Idempotency-Key"), "the Idempotency-Key header is given twice" },
};

struct head {
    bool is_1_0;
    size_t headers;
    struct part values[SINGLES]; /* at NULL: not given */
};

/* "GET /path HTTP/1.1" */
static struct framing_verdict check_request_line(struct head *h, struct part line)
{
    const char *space = memchr(line.at, ' ', line.len);
    if (!space || !is_token((struct part){ line.at, (size_t)(space - line.at) }))
        return bad("the request line does not start with a method");
    struct part target = { space + 1, line.len - (size_t)(space + 1 - line.at) };
    const char *version = memchr(target.at, ' ', target.len);
    if (!version)
        return bad("the request line has no HTTP version");
    struct part last = { version + 1, target.len - (size_t)(version + 1 - target.at) };
    target.len = (size_t)(version - target.at);
    h->is_1_0 = last.len == 8 && memcmp(last.at, "HTTP/1.0", 8) == 0;
    if (!h->is_1_0 && !(last.len == 8 && memcmp(last.at, "HTTP/1.1", 8) == 0))
        return bad("the request line must end with HTTP/1.1, after a target without spaces");
    if (!is_target(target))
        return bad("the request target has a space or a control character");
    if (count_parameters(target) > FRAMING_PARAMETERS_MAX)
        return bad("the query has more than 32 parameters");
    return valid;
}

static struct part trim(struct part p)
{
    while (p.len && (p.at[0] == ' ' || p.at[0] == '\t')) {
        p.at++;
        p.len--;
    }
    while (p.len && (p.at[p.len - 1] == ' ' || p.at[p.len - 1] == '\t'))
        p.len--;
    return p;
}

/* "Name: value" */
static struct framing_verdict check_header_line(struct head *h, struct part line)
{
    const char *colon = memchr(line.at, ':', line.len);
    if (line.at[0] == ' ' || line.at[0] == '\t')
        return bad("a header is folded over two lines");
    if (!colon || !is_token((struct part){ line.at, (size_t)(colon - line.at) }))
        return bad("a header has no valid name before its colon");
    struct part name = { line.at, (size_t)(colon - line.at) };
    struct part value = trim((struct part){ colon + 1, line.len - name.len - 1 });
    if (!is_value(value))
        return bad("a header has a control character");
    if (++h->headers > FRAMING_HEADERS_MAX)
        return (struct framing_verdict){ ERR_HEADER_TOO_LARGE, "the limit is 64 headers" };
    for (int i = 0; i < SINGLES; i++)
        if (is_same(name, singles[i].name)) {
            if (h->values[i].at)
                return bad(singles[i].twice);
            h->values[i] = value;
        }
    return valid;
}

static bool read_length(struct part digits, uint64_t *length)
{
    *length = 0;
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.at[i] < '0' || digits.at[i] > '9')
            return false;
        *length = *length * 10 + (uint64_t)(digits.at[i] - '0');
    }
    return digits.len >= 1 && digits.len <= 18;
}

static struct framing_verdict start_body(struct framing *f, const struct head *h)
{
    static const struct part chunked = PART("chunked");
    const struct part length = h->values[CONTENT_LENGTH], encoding = h->values[TRANSFER_ENCODING];
    if (length.at && encoding.at)
        return bad(singles[CONTENT_LENGTH].twice);
    if (length.at && !read_length(length, &f->left))
        return bad("the Content-Length is not a number");
    if (encoding.at && (h->is_1_0 || !is_same(encoding, chunked)))
        return bad("the only Transfer-Encoding is chunked, in HTTP/1.1");
    f->line_bytes = 0;
    f->state = encoding.at ? FRAMING_CHUNK_SIZE : length.at && f->left ? FRAMING_BODY : FRAMING_HEAD;
    if (f->state != FRAMING_BODY)
        f->left = 0;
    return valid;
}

struct framing_verdict framing_check_head(struct framing *f, const char *head, size_t len)
{
    struct head h = { 0 };
    struct framing_verdict v = valid;
    for (size_t line = 0, next; v.err == OK && line < len - 2; line = next) {
        const size_t end = (size_t)((const char *)memchr(head + line, '\n', len - line) - head) - 1;
        next = end + 2;
        v = (line ? check_header_line : check_request_line)(&h, (struct part){ head + line, end - line });
    }
    if (v.err == OK && !h.values[HOST].at && !h.is_1_0)
        v = bad("the Host header is missing");
    return v.err == OK ? start_body(f, &h) : v;
}

struct framing_verdict framing_check_start(const char *head, size_t len)
{
    const char *cr = memchr(head, '\r', len);
    if (len && head[0] != '\r' && !is_token_char((unsigned char)head[0]))
        return bad("the request line does not start with a method");
    return cr && cr > head
               ? check_request_line(&(struct head){ 0 }, (struct part){ head, (size_t)(cr - head) })
               : valid;
}

/* Moves whitespace at the end of the value to its start. */
static void move_space(char *value, size_t len)
{
    size_t space = 0;
    while (space < len && (value[len - space - 1] == ' ' || value[len - space - 1] == '\t'))
        space++;
    memmove(value + space, value, len - space);
    memset(value, ' ', space);
}

void framing_tidy_head(char *head, size_t len)
{
    static const char cookie[] = "Cookie:";
    const char *const end = head + len - 2; /* the empty line */
    for (char *line = (char *)memchr(head, '\n', len) + 1, *next; line < end; line = next) {
        char *const value = (char *)memchr(line, ':', (size_t)(end - line)) + 1;
        next = (char *)memchr(value, '\n', (size_t)(end - value)) + 1;
        if (value - line == sizeof cookie - 1 && strncasecmp(line, cookie, sizeof cookie - 1) == 0)
            *line = 'X';
        move_space(value, (size_t)(next - value) - 2);
    }
}

/* ---- the body ---- */

static int hex_digit(char c)
{
    const int lower = c | 32;
    return c >= '0' && c <= '9' ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static struct framing_verdict end_chunk_line(struct framing *f)
{
    f->state = f->left ? FRAMING_CHUNK : FRAMING_TRAILERS;
    f->line_bytes = 0;
    f->last = '\n';
    return valid;
}

/* "1a2b" or "1a2b;name=value". `last` is ';' inside the extensions. */
static struct framing_verdict take_chunk_size(struct framing *f, char c)
{
    const int digit = hex_digit(c);
    const bool in_size = f->last != ';' && f->last != '\r';
    if (f->line_bytes++ > FRAMING_CHUNK_LINE_MAX)
        return bad("the line of a chunk's size is too long");
    if (c == '\n')
        return f->last == '\r' ? end_chunk_line(f) : bad("the line of a chunk's size ends without CR LF");
    if (f->last == '\r')
        return bad("the line of a chunk's size has a CR");
    if (in_size && digit >= 0 && f->line_bytes <= 15) {
        f->left = f->left << 4 | (uint64_t)digit;
        f->last = c;
        return valid;
    }
    if (f->line_bytes == 1 || (in_size && c != ';' && c != '\r'))
        return bad("a chunk has no valid size");
    if (!in_size && c != '\r' && c != '\t' && is_control((unsigned char)c))
        return bad("the line of a chunk's size has a control character");
    f->last = c == '\r' ? '\r' : ';';
    return valid;
}

/* CR LF after the chunk. */
static struct framing_verdict take_chunk_end(struct framing *f, char c)
{
    if (c != (f->line_bytes ? '\n' : '\r'))
        return bad("a chunk is longer than its size");
    if (f->line_bytes++) {
        *f = (struct framing){ .state = FRAMING_CHUNK_SIZE };
    }
    return valid;
}

/* Nobody reads trailers, but the daemon parses them. `last` is '\n' at the start of a line, 'n' in a name,
 * 'x' in a value, and '\r' or 'r' after the CR of the empty line or of another one. `left` counts them. */
static struct framing_verdict take_trailer(struct framing *f, char c)
{
    const bool is_name = is_token_char((unsigned char)c);
    if (f->line_bytes++ > FRAMING_TRAILER_BYTES_MAX)
        return bad("the trailers are too long");
    if ((c == '\n') != (f->last == '\r' || f->last == 'r'))
        return bad("a line of the trailers ends without CR LF");
    if (f->last == '\r') {
        *f = (struct framing){ .state = FRAMING_HEAD };
    } else if (f->last == 'r') {
        f->last = '\n';
    } else if (c == '\r' && f->last != 'n') {
        f->last = f->last == '\n' ? '\r' : 'r';
    } else if (f->last == 'x') {
        return is_value((struct part){ &c, 1 }) ? valid : bad("a trailer has a control character");
    } else if (f->last == 'n' && c == ':') {
        f->last = 'x';
    } else {
        f->left += f->last == '\n';
        f->last = 'n';
        return !is_name                         ? bad("a trailer has no valid name before its colon")
               : f->left > FRAMING_TRAILERS_MAX ? bad("there are too many trailers")
                                                : valid;
    }
    return valid;
}

static void skip(struct framing *f, size_t len, size_t *taken, enum framing_state then)
{
    const size_t room = len - *taken;
    const size_t n = f->left < room ? (size_t)f->left : room;
    *taken += n;
    f->left -= n;
    if (!f->left) {
        f->state = then;
        f->line_bytes = 0;
    }
}

static bool is_extension(const struct framing *f)
{
    return f->state == FRAMING_CHUNK_SIZE && f->last == ';';
}

struct framing_verdict framing_take_body(struct framing *f, char *bytes, size_t len, size_t *taken,
                                         size_t *kept)
{
    struct framing_verdict v = valid;
    *taken = *kept = 0;
    while (v.err == OK && *taken < len && f->state != FRAMING_HEAD) {
        const size_t from = *taken;
        switch (f->state) {
        case FRAMING_BODY:
            skip(f, len, taken, FRAMING_HEAD);
            break;
        case FRAMING_CHUNK:
            skip(f, len, taken, FRAMING_CHUNK_END);
            break;
        case FRAMING_CHUNK_SIZE:
            v = take_chunk_size(f, bytes[(*taken)++]);
            if (is_extension(f))
                continue;
            break;
        case FRAMING_CHUNK_END:
            v = take_chunk_end(f, bytes[(*taken)++]);
            break;
        default:
            v = take_trailer(f, bytes[(*taken)++]);
        }
        if (*kept != from)
            memmove(bytes + *kept, bytes + from, *taken - from);
        *kept += *taken - from;
    }
    return v;
}
