/* Rows of field tables that several resources share. */
#ifndef DAYBOOK_HANDLERS_FIELDS_H
#define DAYBOOK_HANDLERS_FIELDS_H

#include "server/json/field.h"

#define LATEST "9999-12-31T23:59:59.999999Z" /* as_of of a read that asks for no instant */

/* When lessons are distilled from the ledger: said by a version of a skill, and by a deployment that differs
 * from it. */
struct reflection_in {
    const char *cadence;
    int64_t every_n_trades;
};
extern const struct field reflection_fields[]; /* in skill.c */

#endif
