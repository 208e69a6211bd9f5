/* Rows of field tables that several resources share. */
#ifndef DAYBOOK_HANDLERS_KIT_FIELDS_H
#define DAYBOOK_HANDLERS_KIT_FIELDS_H

#include "server/json/field.h"

#define LATEST "9999-12-31T23:59:59.999999Z" /* as_of of a read that asks for no instant */

/* When lessons are distilled from the ledger: said by a version of a skill, and by a deployment that differs
 * from it. */
struct reflection_in {
    const char *cadence, *model; /* which a deployment alone has */
    int64_t every_n_trades;
};
extern const char *const reflection_cadences[]; /* in skill.c */
/* clang-format off */
#define REFLECTION_FIELDS \
    FIELD(FROM_BODY, KIND_CHOICE, struct reflection_in, cadence, .choices = reflection_cadences), \
    FIELD(FROM_BODY, KIND_INT, struct reflection_in, every_n_trades, .min = 1, .max = 1000)
/* clang-format on */

#endif
