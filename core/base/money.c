/* Prices, dollars and percentages as people and prompts read them. */
#include "core/base/money.h"

/* Appends an unsigned number with commas between groups of three digits. */
static void put_grouped(struct buf *out, const char *text)
{
    const char *point = strchrnul(text, '.');
    for (size_t whole = (size_t)(point - text); whole > 3;) {
        const size_t first = (whole - 1) % 3 + 1;
        buf_add(out, text, first);
        buf_char(out, ',');
        text += first;
        whole -= first;
    }
    buf_text(out, text);
}

void money_price_text(struct buf *out, const char *price)
{
    if (*price == '-')
        buf_char(out, '-');
    put_grouped(out, price + (*price == '-'));
}

void money_price(struct buf *out, struct decimal price)
{
    char text[DECIMAL_TEXT_SIZE];
    decimal_text(price, text);
    money_price_text(out, text);
}

static bool is_zero(const char *text)
{
    while (*text == '0' || *text == '.')
        text++;
    return *text == '\0';
}

/* The sign is that of the rounded amount: zero has none. */
static void put_dollars(struct buf *out, struct decimal usd, bool plus, bool always_cents)
{
    char text[DECIMAL_TEXT_SIZE];
    decimal_fixed(usd, 2, text);
    bool negative = *text == '-', zero = is_zero(text);
    size_t len = strlen(text);
    if (!always_cents && len > 3 && strcmp(text + len - 3, ".00") == 0)
        text[len - 3] = '\0';
    if (negative || (plus && !zero))
        buf_char(out, negative ? '-' : '+');
    buf_char(out, '$');
    put_grouped(out, text + negative);
}

void money_usd(struct buf *out, struct decimal usd)
{
    put_dollars(out, usd, false, false);
}

void money_change(struct buf *out, struct decimal usd)
{
    put_dollars(out, usd, true, false);
}

void money_pnl(struct buf *out, struct decimal usd)
{
    put_dollars(out, usd, true, true);
}

void money_percent(struct buf *out, struct decimal percent, int digits)
{
    char text[DECIMAL_TEXT_SIZE];
    decimal_fixed(percent, digits, text);
    const bool fits = *text != 'n'; /* too large after rounding: "null" */
    if (fits && decimal_sign(percent) > 0 && !is_zero(text))
        buf_char(out, '+');
    buf_text(out, text);
    buf_char(out, '%');
}

struct decimal money_share(struct decimal part, struct decimal whole)
{
    if (decimal_is_valid(whole) && decimal_sign(whole) <= 0)
        whole = decimal_from_int(0); /* makes the division not valid */
    return decimal_div(decimal_times(part, 100), whole);
}
