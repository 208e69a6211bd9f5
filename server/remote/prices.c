/* The price table of models, from the settings. */
#include "server/remote/prices.h"

#include <string.h>

bool prices_amount(const char *text, int64_t most, struct decimal *out)
{
    return decimal_parse(text, out) == DECIMAL_EXACT && decimal_sign(*out) >= 0 &&
           decimal_compare(*out, decimal_from_int(most)) <= 0;
}

const struct price *prices_find(const struct prices *prices, const char *model)
{
    for (size_t i = 0; i < prices->count; i++)
        if (strcmp(prices->items[i].model, model) == 0)
            return &prices->items[i];
    return NULL;
}

/* Splits the row in place. Model names may contain slashes, and some contain an equals sign. */
static bool read_row(char *row, struct price *out)
{
    char *amounts = strrchr(row, '=');
    char *slash = amounts ? strchr(amounts, '/') : NULL;
    if (!slash || amounts == row)
        return false;
    *amounts++ = *slash++ = '\0';
    out->model = row;
    return prices_amount(amounts, PRICE_MAX, &out->in) && prices_amount(slash, PRICE_MAX, &out->out);
}

bool prices_read(struct arena *arena, const char *text, struct prices *out, const char **wrong)
{
    *out = (struct prices){ arena_alloc(arena, (strlen(text) + 1) * sizeof *out->items), 0 };
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, ",");
        struct price price;
        *wrong = arena_copy(arena, at, len);
        if (!read_row(arena_copy(arena, at, len), &price) || prices_find(out, price.model))
            return false;
        out->items[out->count++] = price;
        at += len + (at[len] == ',');
    }
    return true;
}
