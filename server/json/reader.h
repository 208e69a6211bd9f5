/* The JSON reader: the only JSON parser of the service. It reads values one after the other, in place. The
 * caller reads the values it needs and skips the rest.
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
 * After a fault all calls return NULL or false, and so does reader_ended. Request bodies, which are decoded
 * by field tables, are read into a tree: see tree.h. */
#ifndef DAYBOOK_SERVER_JSON_READER_H
#define DAYBOOK_SERVER_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { READER_DEPTH = 64 }; /* the default nesting limit */

enum reader_fault {
    READER_OK,
    READER_UNEXPECTED,  /* `expected` was not found */
    READER_UTF8,        /* a byte that is not valid UTF-8 */
    READER_OPEN_STRING, /* an unterminated string; the offset is that of the opening quote */
    READER_ESCAPE,      /* an unknown escape */
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
    bool limit_numbers; /* reject numbers beyond the limits of the API */
    enum reader_fault fault;
    size_t fault_offset;  /* in bytes, in the original text */
    const char *expected; /* for READER_UNEXPECTED; NULL: the end of the document */
};

/* Starts to read. Overwrites the text: strings are unescaped in place, and returned strings point into it. A
 * NUL must follow the `len` bytes. */
struct json_reader reader_begin(char *text, size_t len, int depth_limit);
/* The same without the UTF-8 check, for text from the database, which is always valid UTF-8. */
struct json_reader reader_begin_stored(char *text, size_t len);

/* The first character of the next value: { [ " - or a digit, or t, f, n. */
char reader_peek(const struct json_reader *r);

/* Returns true and enters the next value if it is an object or a list. Skips any other value and returns
 * false. */
bool reader_object(struct json_reader *r);
bool reader_list(struct json_reader *r);

/* The name of the next member; NULL: end of the object. The caller must then read or skip the value. */
const char *reader_name(struct json_reader *r);
/* The same, faster if the caller guesses the name right. May return `guess` itself. */
const char *reader_name_guess(struct json_reader *r, const char *guess, size_t len);
/* Whether there is another item. If so, the caller must read or skip it. */
bool reader_item(struct json_reader *r);

/* Read the next value. If it has another type, they skip it and return NULL or false. */
const char *reader_text(struct json_reader *r);
bool reader_number(struct json_reader *r, double *out);
/* The digits of a number: reader_digits is not NUL-terminated, reader_lexeme is. reader_lexeme returns NULL
 * for a document that is only a number, because there is no room for the NUL. */
const char *reader_digits(struct json_reader *r, size_t *len);
const char *reader_lexeme(struct json_reader *r);
int64_t reader_count(struct json_reader *r);    /* 0 unless it is a non-negative whole number */
const char *reader_word(struct json_reader *r); /* "true", "false" or "null" */

void reader_skip(struct json_reader *r);

/* Returns whether the whole document was read without a fault. */
bool reader_ended(struct json_reader *r);

#endif
