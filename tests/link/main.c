/* Linked with the whole of one library and with what that may use, and nothing else: a symbol from another
 * room fails the link. */
int main(void)
{
    return 0;
}
