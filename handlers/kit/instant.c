/* Checks of instants that clients send. */
#include "handlers/kit/instant.h"

#include "core/base/time_text.h"

enum err instant_check(struct call *c, const char *field, const char *instant)
{
    int64_t us = 0, now_us = 0;
    if (!instant)
        return OK;
    (void)time_text_parse(instant, &us);
    (void)time_text_parse(c->now, &now_us);
    if (us <= now_us + INSTANT_AHEAD_US)
        return OK;
    return problem_field(&c->problem, field, FAULT_IN_THE_FUTURE, INSTANT_AHEAD);
}
