/* What db/ must not do: it would need the HTTP edge. Never linked but to see that the link fails. */
struct exchange;
void exchange_answered(struct exchange *x);
void violation(struct exchange *x);

void violation(struct exchange *x)
{
    exchange_answered(x);
}
