/* The JSON reader: the only code that knows the grammar of JSON. It reads one value after the other where the
 * text stands; the caller asks for what it wants and skips the rest.
 *
 *     struct json_reader r = reader_begin(text, len, READER_DEPTH);
 *     if (reader_object(&r))
 *         for (const char *name; (name = reader_name(&r));)
 *             if (strcmp(name, "model") == 0)
 *                 model = reader_text(&r);
 *             else
 *                 reader_skip(&r);
 *     if (!reader_ended(&r))
 *         … not JSON
 *
 * After a fault nothing more is read: every call says no, and reader_ended is false. Bodies of requests,
 * which are decoded by field tables, are held as a tree: see tree.h. */
#ifndef DAYBOOK_SERVER_JSON_READER_H
#define DAYBOOK_SERVER_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { READER_DEPTH = 64 }; /* levels of nesting in documents that have no limit of their own */

enum reader_fault {
    READER_OK,
    READER_UNEXPECTED,  /* something else than `expected` */
    READER_UTF8,        /* a byte that is not valid UTF-8 */
    READER_OPEN_STRING, /* a string without an end; its offset is that of the opening quote */
    READER_ESCAPE,      /* an escape that JSON does not have */
    READER_HEX,         /* \u without four hexadecimal digits */
    READER_SURROGATE,   /* half of a surrogate pair */
    READER_NUL,         /* \u0000 */
    READER_DEPTH_LIMIT,
    READER_NUMBER_LIMIT, /* see number_fits; only with `limit_numbers` */
};

struct json_reader {
    char *start, *at, *end;
    int depth, depth_limit;
    bool first;         /* just after an opening bracket */
    bool limit_numbers; /* refuse numbers that break a limit of the API */
    enum reader_fault fault;
    size_t fault_offset;  /* in bytes, in the text as it was before it was read */
    const char *expected; /* of READER_UNEXPECTED; NULL: the end of the document */
};

/* Starts to read. The text is overwritten: strings are unescaped in place, and what the functions below
 * return points into it. A NUL must follow the `len` bytes. */
struct json_reader reader_begin(char *text, size_t len, int depth_limit);
/* The same of a text from the database, which holds nothing but valid UTF-8: that is not checked again. */
struct json_reader reader_begin_stored(char *text, size_t len);

/* The first character of the next value: { [ " - or a digit, or t, f, n of a word. */
char reader_peek(const struct json_reader *r);

/* True if the next value is an object, whose members are read next; any other value is skipped. The same for
 * a list and its items. */
bool reader_object(struct json_reader *r);
bool reader_list(struct json_reader *r);

/* The name of the next member, whose value must be read or skipped; NULL at the end of the object. */
const char *reader_name(struct json_reader *r);
/* The same where the caller can guess the name, `len` bytes long: if it is right, the name may be that
 * pointer. */
const char *reader_name_guess(struct json_reader *r, const char *guess, size_t len);
/* True if there is another item, which must be read or skipped. */
bool reader_item(struct json_reader *r);

/* The next value if it is of that kind; any other value is skipped, and NULL or false comes back. */
const char *reader_text(struct json_reader *r);
bool reader_number(struct json_reader *r, double *out);
/* A number as it is written: the first without a NUL after it, the second with one. A document that is
 * nothing but a number has no room for a NUL: it is skipped. */
const char *reader_digits(struct json_reader *r, size_t *len);
const char *reader_lexeme(struct json_reader *r);
int64_t reader_count(struct json_reader *r);    /* 0 unless it is a whole number from 0 */
const char *reader_word(struct json_reader *r); /* "true", "false" or "null" */

void reader_skip(struct json_reader *r);

/* True if the whole document was read, and it was valid. */
bool reader_ended(struct json_reader *r);

#endif
