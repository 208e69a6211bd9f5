/* Appends members to a JSON object: a key and a value, with a comma before it if one is needed. */
#ifndef DAYBOOK_CORE_BASE_JSON_PUT_H
#define DAYBOOK_CORE_BASE_JSON_PUT_H

#include "core/base/buf.h"
#include "core/base/decimal.h"

void json_put_text(struct buf *out, const char *key, const char *value); /* NULL becomes null */
void json_put_texts(struct buf *out, const char *key, const char *const *values, size_t count);
void json_put_raw(struct buf *out, const char *key, const char *json); /* JSON as it is; NULL becomes null */
void json_put_bool(struct buf *out, const char *key, bool value);
void json_put_int(struct buf *out, const char *key, int64_t value);
void json_put_decimal(struct buf *out, const char *key, struct decimal value); /* not valid becomes null */
void json_put_time(struct buf *out, const char *key, int64_t us);

#endif
