/* Requests without a valid key, per client address and over all loops. */
#ifndef DAYBOOK_SERVER_DISPATCH_FAILED_KEYS_H
#define DAYBOOK_SERVER_DISPATCH_FAILED_KEYS_H

#include <stdint.h>

#include "server/http/address.h"

/* Takes one failure of `per_minute` that the address has. Returns 0, or the time until it has another. */
int64_t failed_keys_take(const struct address *a, int64_t per_minute, int64_t now_ns);
/* Gives a failure back: the key was valid. */
void failed_keys_return(const struct address *a, int64_t per_minute, int64_t now_ns);

/* Counts a rejected request. Returns its number within the address's window if it should be logged, else 0:
 * see server/http/address_events.h. */
int64_t failed_keys_count(const struct address *a, int64_t now_ns);

#endif
