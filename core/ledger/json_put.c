/* Members of JSON objects. */
#include "core/ledger/json_put.h"

#include "core/base/time_text.h"

void json_put_text(struct buf *out, const char *key, const char *value)
{
    buf_json_key(out, key);
    buf_json_string(out, value);
}

void json_put_int(struct buf *out, const char *key, int64_t value)
{
    buf_json_key(out, key);
    buf_int(out, value);
}

void json_put_quantity(struct buf *out, const char *key, struct quantity value)
{
    buf_json_key(out, key);
    quantity_json(out, value);
}

void json_put_decimal(struct buf *out, const char *key, struct decimal value)
{
    json_put_quantity(out, key, quantity_derived(value));
}

void json_put_time(struct buf *out, const char *key, int64_t us)
{
    char text[TIME_TEXT_SIZE];
    time_text_short(us, text);
    json_put_text(out, key, text);
}
