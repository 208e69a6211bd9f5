/* Lengths of time as people write them. */
#include "core/base/time_span.h"

#include <stddef.h>

#define US_PER_S   INT64_C(1000000)
#define LONGEST_US (INT64_C(36525) * 86400 * US_PER_S)

bool time_span_parse(const char *text, int64_t *us)
{
    static const struct {
        char name;
        int64_t us;
    } units[] = { { 's', US_PER_S },
                  { 'm', 60 * US_PER_S },
                  { 'h', 3600 * US_PER_S },
                  { 'd', 86400 * US_PER_S },
                  { 'w', 7 * 86400 * US_PER_S } };
    const char *at = text;
    int64_t number = 0;
    for (; *at >= '0' && *at <= '9' && number <= LONGEST_US; at++)
        number = number * 10 + (*at - '0');
    if (at == text || !at[0] || at[1])
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (*at == units[i].name && number <= LONGEST_US / units[i].us) {
            *us = number * units[i].us;
            return true;
        }
    return false;
}
