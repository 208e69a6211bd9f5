/* Members of JSON objects: a key and a value, after a comma where one is needed. */
#ifndef DAYBOOK_CORE_LEDGER_JSON_PUT_H
#define DAYBOOK_CORE_LEDGER_JSON_PUT_H

#include "core/base/buf.h"
#include "core/ledger/trade.h"

void json_put_text(struct buf *out, const char *key, const char *value); /* NULL becomes null */
void json_put_quantity(struct buf *out, const char *key, struct quantity value);
void json_put_decimal(struct buf *out, const char *key, struct decimal value); /* not valid becomes null */
void json_put_int(struct buf *out, const char *key, int64_t value);
void json_put_time(struct buf *out, const char *key, int64_t us);

#endif
