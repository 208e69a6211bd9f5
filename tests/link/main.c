/* Linked with one whole library and its allowed dependencies only: a symbol from any other directory fails the
 * link. */
int main(void)
{
    return 0;
}
