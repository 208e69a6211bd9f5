/* A forbidden call from db/ to the HTTP edge. Linked only to check that the link fails. */
struct exchange;
void exchange_answered(struct exchange *x);
void violation(struct exchange *x);

void violation(struct exchange *x)
{
    exchange_answered(x);
}
