/* Lists of flat objects, [{"name":value,…},…], as this service wrote them and the database gives them back:
 * one pass over the text, in place. Bodies of requests have parse.h. */
#ifndef DAYBOOK_SERVER_JSON_FLAT_H
#define DAYBOOK_SERVER_JSON_FLAT_H

#include <stdbool.h>
#include <stddef.h>

struct flat {
    char *at;
    bool inside; /* of an object, with a member to come */
    bool ended;  /* the list is read to its end */
};

enum flat_kind { FLAT_NULL, FLAT_TEXT, FLAT_NUMBER, FLAT_BOOL };

struct flat_member {
    const char *name;
    enum flat_kind kind;
    const char *
        text; /* of a text unescaped, of a number its digits as they came, of a boolean its word, else NULL */
};

/* Begins to read; the text is overwritten, and what is read points into it. */
struct flat flat_begin(char *text);
/* True: there is an object more, and its members come next. All members of the one before must be read. */
bool flat_object(struct flat *f);
/* True: there is a member more. When the guess of `len` bytes is its name, that is found sooner, and the name
 * is that pointer; NULL: there is no guess. */
bool flat_member(struct flat *f, const char *guess, size_t len, struct flat_member *out);
/* After both have said no: whether that was the end, or the text is not what it should be. */
bool flat_ended(const struct flat *f);

#endif
