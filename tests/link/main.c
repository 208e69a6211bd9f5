/* Linked with one library and its allowed dependencies: a symbol of any other directory fails the
 * link. */
int main(void)
{
    return 0;
}
