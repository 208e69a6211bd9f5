/* Members of JSON objects about trades. */
#ifndef DAYBOOK_CORE_LEDGER_JSON_PUT_H
#define DAYBOOK_CORE_LEDGER_JSON_PUT_H

#include "core/base/buf.h"
#include "core/ledger/trade.h"

void json_put_text(struct buf *out, const char *key, const char *value); /* NULL becomes null */
void json_put_quantity(struct buf *out, const char *key, struct quantity value);
void json_put_decimal(struct buf *out, const char *key, struct decimal value); /* not valid becomes null */
void json_put_int(struct buf *out, const char *key, int64_t value);
void json_put_time(struct buf *out, const char *key, int64_t us);
/* The members about how it began, and how it ended. */
void json_put_entry(struct buf *out, const struct trade *t);
void json_put_exit(struct buf *out, const struct trade *t);

#endif
