/* Checks single values against their row of the field table and stores them. */
#include "server/json/value.h"

#include <stdarg.h>
#include <stdlib.h>

#include "core/base/cursor.h"
#include "core/base/spelling.h"
#include "core/base/time_text.h"
#include "core/base/utf8.h"
#include "core/base/uuid.h"
#include "server/json/number.h"

enum { NAME_SHOWN = 64, LOCATIONS_SHOWN = 100, NAME_MAX_CHARS = 64 };

const char *const value_expected[] = {
    [KIND_TEXT] = "a text",
    [KIND_LINE] = "a text",
    [KIND_INT] = "a whole number",
    [KIND_NUMBER] = "a number",
    [KIND_BOOL] = "true or false",
    [KIND_TIME] = "a time as text",
    [KIND_UUID] = "a UUID as text",
    [KIND_NAME] = "a name as text",
    [KIND_KEY] = "a key as text",
    [KIND_CHOICE] = "a text",
    [KIND_TEXTS] = "a list of texts",
    [KIND_TAGS] = "a list of texts",
    [KIND_NUMBERS] = "a list of numbers",
    [KIND_UUIDS] = "a list of UUIDs",
    [KIND_OBJECT] = "an object",
    [KIND_OBJECTS] = "a list of objects",
    [KIND_MAP] = "an object",
    [KIND_SCALAR] = "a text, a number or a boolean",
    [KIND_JSON] = "a JSON value",
    [KIND_CURSOR] = "a cursor as text",
};

static void location_text(struct buf *out, const struct location *at)
{
    if (at->up)
        location_text(out, at->up);
    if (!at->name) {
        buf_fmt(out, "[%zu]", at->index);
        return;
    }
    if (out->len > 0)
        buf_char(out, '.');
    size_t len = strlen(at->name);
    if (len > 0)
        buf_add(out, at->name, utf8_cut(at->name, len, NAME_SHOWN));
    if (len > NAME_SHOWN)
        buf_text(out, "…");
}

void value_bad(struct decoder *d, const struct location *at, enum fault fault, const char *fmt, ...)
{
    if (d->p->count >= LOCATIONS_SHOWN) { /* the problem drops further faults, so do not format them */
        d->p->count++;
        return;
    }
    struct buf location = { .arena = d->arena };
    location_text(&location, at);
    va_list args;
    va_start(args, fmt);
    const char *detail = arena_vfmt(d->arena, fmt, args);
    va_end(args);
    (void)problem_field(d->p, buf_string(&location), fault, "%s", detail);
}

static const char *meant(struct decoder *d, const struct spelling *s)
{
    return s->best ? arena_fmt(d->arena, "; did you mean \"%s\"?", s->best) : "";
}

const char *value_suggest_name(struct decoder *d, const struct field *table, enum field_from from,
                               const char *name)
{
    if (d->p->count >= LOCATIONS_SHOWN)
        return "";
    struct spelling s = spelling_begin(name);
    for (const struct field *f = table; f->name; f++)
        if (f->from == from)
            spelling_try(&s, f->name);
    return meant(d, &s);
}

static const char *range_text(struct decoder *d, const struct field *f)
{
    if (field_has_max(f))
        return arena_fmt(d->arena, "from %lld to %lld", (long long)f->min, (long long)f->max);
    return arena_fmt(d->arena, "at least %lld", (long long)f->min);
}

/* ---- texts ---- */

static bool breaks_line(uint32_t c)
{
    return (c >= '\n' && c <= '\r') || c == 0x85 || c == 0x2028 || c == 0x2029;
}

struct text_rule {
    int64_t min, max; /* characters; max 0: no limit */
    bool one_line, tag;
};

static bool check_text(struct decoder *d, const struct location *at, const char *text, struct text_rule rule)
{
    int64_t count = 0;
    bool visible = false;
    for (const char *next = text; *next; count++) {
        uint32_t c = utf8_next(&next);
        if (c > ' ' && c < 0x7f && !rule.tag) { /* fast path for most characters */
            visible = true;
            continue;
        }
        if (rule.one_line && breaks_line(c)) {
            value_bad(d, at, FAULT_SEVERAL_LINES, "must be one line");
            return false;
        }
        if (utf8_is_control(c) && (rule.tag || (c != '\t' && c != '\n'))) {
            value_bad(d, at, FAULT_CONTROL_CHARACTER, "holds the control character U+%04X", (unsigned)c);
            return false;
        }
        if (rule.tag && c == ',') {
            value_bad(d, at, FAULT_INVALID_CHARACTER, "holds a comma, which separates tags");
            return false;
        }
        visible |= !utf8_is_space(c);
    }
    if (count < rule.min) {
        value_bad(d, at, FAULT_TOO_SHORT, "has %lld characters, must have at least %lld", (long long)count,
                  (long long)rule.min);
        return false;
    }
    if (rule.max > 0 && count > rule.max) {
        value_bad(d, at, FAULT_TOO_LONG, "has %lld characters, may have at most %lld", (long long)count,
                  (long long)rule.max);
        return false;
    }
    if (rule.min > 0 && !visible) {
        value_bad(d, at, FAULT_TOO_SHORT, "holds nothing but white space");
        return false;
    }
    return true;
}

static bool check_uuid(struct decoder *d, const struct location *at, const char *text, const char **out)
{
    char uuid[UUID_SIZE];
    if (!uuid_parse(text, uuid)) {
        value_bad(d, at, FAULT_INVALID_UUID, "is not a UUID such as 01890a5d-ac96-774b-bcce-b302099a8057");
        return false;
    }
    *out = arena_copy(d->arena, uuid, UUID_SIZE - 1);
    return true;
}

/* Describes what a nearly valid time lacks, with the time completed as UTC; NULL for any other text. */
static const char *unfinished_time(struct decoder *d, const char *text)
{
    enum { DATE_CHARS = sizeof "2026-06-04" - 1, LONGEST = 40 };
    static const struct {
        const char *end, *lacks;
    } ends[] = {
        { "Z", "has no time zone" },
        { ":00Z", "has no seconds and no time zone" },
        { "T00:00:00Z", "is a date without a time of day" },
        { "", "has no T between its date and its time" },
    };
    int64_t us;
    size_t len = strlen(text);
    if (len < DATE_CHARS || len > LONGEST)
        return NULL;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char *whole = arena_fmt(d->arena, "%s%s", text, ends[i].end);
        if (whole[DATE_CHARS] == ' ')
            whole[DATE_CHARS] = 'T';
        if (time_text_parse(whole, &us))
            return arena_fmt(d->arena, "%s: write %s", ends[i].lacks, whole);
    }
    return NULL;
}

static void bad_time(struct decoder *d, const struct location *at, const char *text)
{
    const char *unfinished = unfinished_time(d, text);
    size_t len = strlen(text); /* "…T10:00:00 02:00": the query decoded its + as a space */
    bool lost_plus = len >= sizeof "2026-06-04T10:00:00 02:00" - 1 && text[len - 6] == ' ';
    if (unfinished)
        value_bad(d, at, FAULT_INVALID_TIME, "%s", unfinished);
    else
        value_bad(d, at, FAULT_INVALID_TIME, "is not an RFC 3339 time such as 2026-06-04T10:00:00Z%s",
                  lost_plus ? " (in a query, + is written %2B)" : "");
}

static void take_time(struct decoder *d, const struct location *at, const char *text, const char **out)
{
    int64_t us;
    if (!time_text_parse(text, &us)) {
        bad_time(d, at, text);
        return;
    }
    char full[TIME_TEXT_SIZE];
    time_text_full(us, full);
    *out = arena_copy(d->arena, full, TIME_TEXT_SIZE - 1);
}

static void take_name(struct decoder *d, const struct location *at, const char *text, const char **out)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    size_t len = strspn(text, letters);
    if (text[len] || len < 1 || len > NAME_MAX_CHARS || strchr("-._", text[0]))
        value_bad(d, at, FAULT_INVALID_NAME,
                  "must be 1 to %d letters, digits, _ . or - of ASCII, and begin with a letter or a digit",
                  NAME_MAX_CHARS);
    else
        *out = text;
}

/* Clients remove the segments "." and ".." from a path before they send it. */
static void take_key(struct decoder *d, const struct field *f, const struct location *at, const char *text,
                     const char **out)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:/";
    size_t len = strspn(text, letters);
    if (text[len] || len < 1 || len > (size_t)f->max || strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
        value_bad(d, at, FAULT_INVALID_NAME,
                  "must be 1 to %lld letters, digits, _ . : / or - of ASCII, and neither . nor ..",
                  (long long)f->max);
    else
        *out = text;
}

static bool take_choice(struct decoder *d, const struct field *f, const struct location *at, const char *text,
                        const char **out)
{
    for (const char *const *choice = f->choices; *choice; choice++)
        if (strcmp(text, *choice) == 0) {
            *out = *choice;
            return true;
        }
    struct buf list = { .arena = d->arena };
    struct spelling spelling = spelling_begin(text);
    for (const char *const *choice = f->choices; *choice; choice++) {
        buf_fmt(&list, "%s%s", choice == f->choices ? "" : ", ", *choice);
        spelling_try(&spelling, *choice);
    }
    value_bad(d, at, FAULT_NOT_A_CHOICE, "must be one of %s%s", buf_string(&list), meant(d, &spelling));
    return false;
}

/* ---- numbers ---- */

enum whole { WHOLE, NOT_WHOLE, WHOLE_TOO_LARGE };

/* A number is whole by its value, not its notation: 2, 2.0, 20e-1. Decided on the digits, because a double
 * would round. `lexeme` has passed number_fits. */
static enum whole whole_number(const char *lexeme, int64_t *out)
{
    char digits[NUMBER_CHARS];
    long count = 0, point = -1;
    bool negative = *lexeme == '-';
    const char *c = lexeme + negative;
    for (; *c && *c != 'e' && *c != 'E'; c++) {
        if (*c == '.')
            point = count;
        else
            digits[count++] = *c;
    }
    point = (point < 0 ? count : point) + (*c ? strtol(c + 1, NULL, 10) : 0);
    while (count > 0 && digits[count - 1] == '0')
        count--;
    if (count > point)
        return count == 0 ? (*out = 0, WHOLE) : NOT_WHOLE;
    uint64_t limit = (uint64_t)INT64_MAX + negative;
    uint64_t value = 0;
    for (long i = 0; i < point && (value > 0 || i < count); i++) {
        uint64_t digit = i < count ? (uint64_t)(digits[i] - '0') : 0;
        if (value > (limit - digit) / 10)
            return WHOLE_TOO_LARGE;
        value = value * 10 + digit;
    }
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return WHOLE;
}

static void take_int(struct decoder *d, const struct field *f, const struct location *at, const char *lexeme,
                     int64_t *out)
{
    int64_t value = 0;
    enum whole whole = whole_number(lexeme, &value);
    if (whole == NOT_WHOLE)
        value_bad(d, at, FAULT_WRONG_TYPE, "must be a whole number, is %s", lexeme);
    else if (whole == WHOLE_TOO_LARGE || value == FIELD_NO_INT || (field_has_max(f) && value > f->max) ||
             (field_has_min(f) && value < f->min))
        value_bad(d, at, FAULT_OUT_OF_RANGE, "must be %s, is %s",
                  f->min || f->max ? range_text(d, f) : "a whole number of 64 bits", lexeme);
    else
        *out = value;
}

static void take_number(struct decoder *d, const struct field *f, const struct location *at,
                        const char *lexeme, const char **out)
{
    double value = f->min || f->max || f->above_zero ? strtod(lexeme, NULL) : 0;
    if (f->above_zero && value <= 0)
        value_bad(d, at, FAULT_OUT_OF_RANGE, "must be above zero, is %s", lexeme);
    else if ((f->min || f->max) && (value < (double)f->min || (field_has_max(f) && value > (double)f->max)))
        value_bad(d, at, FAULT_OUT_OF_RANGE, "must be %s, is %s", range_text(d, f), lexeme);
    else
        *out = arena_text(d->arena, lexeme);
}

void value_number(struct decoder *d, const struct field *f, const struct location *at, const char *lexeme,
                  void *member)
{
    if (f->kind == KIND_INT)
        take_int(d, f, at, lexeme, member);
    else
        take_number(d, f, at, lexeme, member);
}

bool value_is_number(const char *text)
{
    size_t len = number_len(text);
    return len > 0 && text[len] == '\0';
}

/* ---- cursors ---- */

static bool value_fits(const struct field *row, const char *value)
{
    int64_t number;
    char uuid[UUID_SIZE];
    switch (row->kind) {
    case KIND_TIME:
        return time_text_parse(value, &number);
    case KIND_UUID:
        return uuid_parse(value, uuid);
    case KIND_NUMBER:
        return value_is_number(value) && number_fits(value, strlen(value));
    case KIND_INT:
        return value_is_number(value) && number_fits(value, strlen(value)) &&
               whole_number(value, &number) == WHOLE;
    default:
        return true;
    }
}

static void take_cursor(struct decoder *d, const struct field *f, const struct location *at, const char *text,
                        struct cursor_values *out)
{
    struct cursor_values values;
    bool good = cursor_decode(text, d->in->cursor_scope, d->arena, &values);
    if (good && f->sub) {
        int i = 0;
        for (; f->sub[i].name && i < values.count; i++)
            good &= value_fits(&f->sub[i], values.value[i]);
        good &= !f->sub[i].name && i == values.count;
    }
    if (good)
        *out = values;
    else
        value_bad(d, at, FAULT_INVALID_CURSOR,
                  "is not a next_cursor that a page of this list with these filters gave");
}

/* ---- lists ---- */

bool value_count(struct decoder *d, const struct field *f, const struct location *at, size_t count)
{
    if ((int64_t)count < f->min) {
        value_bad(d, at, FAULT_TOO_FEW, "has %zu items, must have at least %lld", count, (long long)f->min);
        return false;
    }
    if (field_has_max(f) && (int64_t)count > f->max) {
        value_bad(d, at, FAULT_TOO_MANY, "has %zu items, may have at most %lld", count, (long long)f->max);
        return false;
    }
    return true;
}

struct ranked {
    const char *text;
    size_t index;
};

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    int order = strcmp(a->text, b->text);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

/* Finds duplicates by sorting, because a list may be long. */
static void check_twice(struct decoder *d, const struct location *at, struct ranked *items, size_t count)
{
    qsort(items, count, sizeof *items, compare_ranked);
    for (size_t i = 1; i < count; i++)
        if (strcmp(items[i].text, items[i - 1].text) == 0) {
            struct location item = { .up = at, .index = items[i].index };
            value_bad(d, &item, FAULT_DUPLICATE_ITEM, "is in the list already, at [%zu]", items[i - 1].index);
        }
}

static bool check_item(struct decoder *d, const struct field *f, const struct location *at, const char **item)
{
    const struct text_rule rule = {
        .min = 1, .max = f->item_max, .one_line = true, .tag = f->kind == KIND_TAGS
    };
    if (f->kind == KIND_UUIDS)
        return check_uuid(d, at, *item, item);
    return f->choices ? take_choice(d, f, at, *item, item) : check_text(d, at, *item, rule);
}

void value_texts(struct decoder *d, const struct field *f, const struct location *at, const char **items,
                 size_t count, struct texts *out)
{
    struct ranked *good = arena_alloc(d->arena, count * sizeof *good);
    size_t good_count = 0;
    for (size_t i = 0; i < count; i++) {
        struct location item = { .up = at, .index = i };
        if (items[i] && check_item(d, f, &item, &items[i]))
            good[good_count++] = (struct ranked){ items[i], i };
    }
    if (good_count > 1)
        check_twice(d, at, good, good_count);
    *out = (struct texts){ .count = count, .items = items };
}

void value_split_list(struct decoder *d, const struct field *f, const struct location *at,
                      const char *const *values, size_t count, struct texts *out)
{
    size_t total = count;
    for (size_t i = 0; i < count; i++)
        for (const char *c = values[i]; (c = strchr(c, ',')); c++)
            total++;
    if (!value_count(d, f, at, total))
        return;
    const char **items = arena_alloc(d->arena, total * sizeof *items);
    size_t filled = 0;
    for (size_t i = 0; i < count; i++)
        for (const char *start = values[i];; start++) {
            size_t len = strcspn(start, ",");
            items[filled++] = arena_copy(d->arena, start, len);
            start += len;
            if (!*start)
                break;
        }
    value_texts(d, f, at, items, total, out);
}

/* ---- one value ---- */

void value_text(struct decoder *d, const struct field *f, const struct location *at, const char *text,
                void *member)
{
    switch (f->kind) {
    case KIND_TIME:
        take_time(d, at, text, member);
        break;
    case KIND_UUID:
        (void)check_uuid(d, at, text, member);
        break;
    case KIND_NAME:
        take_name(d, at, text, member);
        break;
    case KIND_KEY:
        take_key(d, f, at, text, member);
        break;
    case KIND_CHOICE:
        take_choice(d, f, at, text, member);
        break;
    case KIND_CURSOR:
        take_cursor(d, f, at, text, member);
        break;
    default:
        if (check_text(
                d, at, text,
                (struct text_rule){ f->min, field_has_max(f) ? f->max : 0, f->kind == KIND_LINE, false }))
            *(const char **)member = text;
    }
}

void value_from_text(struct decoder *d, const struct field *f, const struct location *at, const char *text,
                     void *member)
{
    switch (f->kind) {
    case KIND_INT:
    case KIND_NUMBER:
        if (!value_is_number(text))
            value_bad(d, at, FAULT_WRONG_TYPE, "must be %s", value_expected[f->kind]);
        else if (!number_fits(text, strlen(text)))
            value_bad(d, at, FAULT_OUT_OF_RANGE, "has more than %d characters or does not fit a double",
                      NUMBER_CHARS);
        else
            value_number(d, f, at, text, member);
        break;
    case KIND_BOOL:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            value_bad(d, at, FAULT_WRONG_TYPE, "must be true or false");
        else
            *(const char **)member = text;
        break;
    case KIND_TEXTS:
    case KIND_TAGS:
    case KIND_UUIDS:
        value_split_list(d, f, at, &text, 1, member);
        break;
    default:
        value_text(d, f, at, text, member);
    }
}
