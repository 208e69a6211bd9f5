/* Members of JSON objects about trades. */
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

void json_put_entry(struct buf *out, const struct trade *t)
{
    json_put_time(out, "entry_tick_at", t->entry_tick_us);
    json_put_quantity(out, "entry_price", t->entry_price);
    json_put_quantity(out, "entry_size_usd", t->entry_size_usd);
    json_put_quantity(out, "entry_leverage", t->entry_leverage);
    json_put_text(out, "entry_reason", t->entry_reason);
    json_put_text(out, "entry_snapshot_id", t->entry_snapshot_id);
    json_put_text(out, "entry_regime_tag", t->entry_regime_tag);
    json_put_text(out, "entry_lessons_hash", t->entry_lessons_hash);
}

void json_put_exit(struct buf *out, const struct trade *t)
{
    json_put_time(out, "exit_tick_at", t->exit_tick_us);
    json_put_quantity(out, "exit_price", t->exit_price);
    json_put_text(out, "exit_reason", t->exit_reason);
    json_put_text(out, "exit_snapshot_id", t->exit_snapshot_id);
    json_put_decimal(out, "holding_minutes", t->holding_minutes);
}
