/* Documents of other servers: read in place, one value after the other; what nobody asks for is skipped.
 * Bodies of requests, where everything must be known, have parse.h. */
#ifndef DAYBOOK_SERVER_JSON_FOREIGN_H
#define DAYBOOK_SERVER_JSON_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct foreign {
    char *at, *end;
    bool first; /* the bracket before this was opened, and nothing of it read */
    bool bad;   /* a fault was found: nothing more is read */
    int depth;
};

/* Begins to read; the text is overwritten, and what is read points into it. It must have a NUL behind it. */
struct foreign foreign_begin(char *text, size_t len);

/* What the next value begins with: one of { [ " or another character of it. */
char foreign_peek(const struct foreign *f);
/* If the next value is an object, its first member comes next, or none; else it is skipped. The same of a
 * list and its items. */
bool foreign_object(struct foreign *f);
bool foreign_list(struct foreign *f);
/* The name of the next member, whose value must be read or skipped; NULL: the object has ended. */
const char *foreign_name(struct foreign *f);
/* True: there is an item more, which must be read or skipped. */
bool foreign_item(struct foreign *f);

/* The next value, if it is one of these; any other is skipped. */
const char *foreign_text(struct foreign *f);
bool foreign_number(struct foreign *f, double *out);
int64_t foreign_count(struct foreign *f); /* 0 unless it is a whole number from 0 */
void foreign_skip(struct foreign *f);

/* Whether that was all of the document, and nothing was wrong with it. */
bool foreign_ended(const struct foreign *f);

#endif
