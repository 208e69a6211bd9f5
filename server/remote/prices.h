/* What models cost: the price table of the configuration. */
#ifndef DAYBOOK_SERVER_REMOTE_PRICES_H
#define DAYBOOK_SERVER_REMOTE_PRICES_H

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/base/decimal.h"

enum { PRICE_MOST = 1000000 };

/* In USD for a million tokens. */
struct price {
    const char *model;
    struct decimal in, out;
};

struct prices {
    struct price *items;
    size_t count;
};

/* A number from 0 to `most`, as JSON writes it. */
bool price_amount(const char *text, int64_t most, struct decimal *out);

/* Reads "NAME=INPUT/OUTPUT,NAME=INPUT/OUTPUT". A name may hold whatever a model's may, but no comma. There is
 * room for one more. False: `wrong` is the part that is not of that form, or that names a model again. */
bool prices_read(struct arena *arena, const char *text, struct prices *out, const char **wrong);

/* NULL: there is none of that model. */
const struct price *prices_find(const struct prices *prices, const char *model);

#endif
