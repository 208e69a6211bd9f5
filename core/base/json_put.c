/* Members of JSON objects. */
#include "core/base/json_put.h"

#include "core/base/time_text.h"

void json_put_text(struct buf *out, const char *key, const char *value)
{
    buf_json_key(out, key);
    buf_json_string(out, value);
}

void json_put_texts(struct buf *out, const char *key, const char *const *values, size_t count)
{
    buf_json_key(out, key);
    buf_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_char(out, ',');
        buf_json_string(out, values[i]);
    }
    buf_char(out, ']');
}

void json_put_raw(struct buf *out, const char *key, const char *json)
{
    buf_json_key(out, key);
    buf_text(out, json ? json : "null");
}

void json_put_bool(struct buf *out, const char *key, bool value)
{
    buf_json_key(out, key);
    buf_json_bool(out, value);
}

void json_put_int(struct buf *out, const char *key, int64_t value)
{
    buf_json_key(out, key);
    buf_int(out, value);
}

void json_put_decimal(struct buf *out, const char *key, struct decimal value)
{
    char text[DECIMAL_TEXT_SIZE];
    decimal_text(value, text);
    json_put_raw(out, key, text);
}

void json_put_time(struct buf *out, const char *key, int64_t us)
{
    char text[TIME_TEXT_SIZE];
    time_text_short(us, text);
    json_put_text(out, key, text);
}
