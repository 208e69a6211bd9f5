/* HTTP methods. */
#include "server/http/method.h"

#include <string.h>

static const char *const names[] = { "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "OTHER" };

enum method method_parse(const char *name)
{
    enum method m = GET;
    while (m < METHOD_OTHER && strcmp(name, names[m]) != 0)
        m++;
    return m;
}

const char *method_name(enum method m)
{
    return names[m];
}
