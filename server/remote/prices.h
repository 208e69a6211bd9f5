/* The price table of models, from the settings. */
#ifndef DAYBOOK_SERVER_REMOTE_PRICES_H
#define DAYBOOK_SERVER_REMOTE_PRICES_H

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/base/decimal.h"

enum { PRICE_MAX = 1000000 };

/* In USD per million tokens. */
struct price {
    const char *model;
    struct decimal in, out;
};

struct prices {
    struct price *items;
    size_t count;
};

/* Parses a JSON number from 0 to `most`. */
bool prices_amount(const char *text, int64_t most, struct decimal *out);

/* Parses "NAME=INPUT/OUTPUT,NAME=INPUT/OUTPUT". A name may contain anything but a comma. Leaves room for one
 * more item. False: *wrong is the invalid part, or a repeated model. */
bool prices_read(struct arena *arena, const char *text, struct prices *out, const char **wrong);

/* NULL: the model has no price. */
const struct price *prices_find(const struct prices *prices, const char *model);

#endif
