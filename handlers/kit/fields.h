/* Field table rows that several resources share. */
#ifndef DAYBOOK_HANDLERS_KIT_FIELDS_H
#define DAYBOOK_HANDLERS_KIT_FIELDS_H

#include "core/reflect/cadence.h"
#include "server/json/field.h"

#define LATEST "9999-12-31T23:59:59.999999Z" /* the default of as_of */

/* clang-format off */
/* Rows for the table of a struct whose members have the same names. */
#define FIELD_ID(type)    FIELD(FROM_PATH, KIND_UUID, type, id, .required = true)
#define FIELD_AT(type)    FIELD(FROM_BODY, KIND_TIME, type, at, .fallback = "now")
#define FIELD_AS_OF(type) FIELD(FROM_QUERY, KIND_TIME, type, as_of, .fallback = LATEST)
#define FIELD_PAGE(type)  FIELD(FROM_QUERY, KIND_INT, type, limit, .min = 1, .max = 200, .fallback = "50"), \
                          FIELD(FROM_QUERY, KIND_CURSOR, type, cursor)
/* For a handler that walks all pages itself (handlers/kit/pages.h). */
#define FIELD_PAGES(type) FIELD(COMPUTED, KIND_INT, type, limit), FIELD(COMPUTED, KIND_CURSOR, type, cursor)
/* A number as the text of a .fallback. */
#define TEXT_OF(number)   TEXT_OF_(number)
#define TEXT_OF_(number)  #number
#define CHOICES(...) (const char *const[]){ __VA_ARGS__, NULL }
/* For a route: its fields, and the struct that receives their values. */
#define INPUT(table, type) .fields = (table), .in_size = sizeof(type)
/* clang-format on */

/* When to distill lessons from the ledger. Set by a skill version; a deployment may override it. */
struct reflection_in {
    const char *cadence, *model; /* model: deployments only */
    int64_t every_n_trades;
};
/* clang-format off */
#define REFLECTION_FIELDS \
    FIELD(FROM_BODY, KIND_CHOICE, struct reflection_in, cadence, .choices = cadence_names), \
    FIELD(FROM_BODY, KIND_INT, struct reflection_in, every_n_trades, .min = 1, .max = 1000)
/* clang-format on */

#endif
