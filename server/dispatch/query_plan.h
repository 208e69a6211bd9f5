/* Where each parameter of a query comes from: computed by query_check.c, used by query.c. */
#ifndef DAYBOOK_SERVER_DISPATCH_QUERY_PLAN_H
#define DAYBOOK_SERVER_DISPATCH_QUERY_PLAN_H

#include "server/json/field.h"

struct param {
    enum { PARAM_OWNER, PARAM_NEW_ID, PARAM_NOW, PARAM_REQUEST_ID, PARAM_FIELD } source;
    struct field_ref field;
};

#endif
