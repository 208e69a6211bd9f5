/* A number with its original text, so that a number that is passed through keeps every digit. */
#ifndef DAYBOOK_CORE_LEDGER_QUANTITY_H
#define DAYBOOK_CORE_LEDGER_QUANTITY_H

#include <stdbool.h>

#include "core/base/buf.h"
#include "core/base/decimal.h"

struct quantity {
    struct decimal value;
    const char *lexeme; /* NULL: computed, written canonically */
    bool given;         /* false: there is no such number */
};

/* Reads a JSON number; `given` unless it is too large or not a number. Like the database, this expands an
 * exponent and drops the sign of a zero, so that a row reads the same before and after it is stored. */
enum decimal_read quantity_read(const char *lexeme, struct quantity *out);
/* The same for a number from a client: the expanded exponent keeps every digit, even beyond the precision of
 * the arithmetic. */
enum decimal_read quantity_take(struct arena *arena, const char *lexeme, struct quantity *out);
struct quantity quantity_derived(struct decimal value);
/* Writes the lexeme, the canonical text, or null. */
void quantity_json(struct buf *out, struct quantity q);

#endif
