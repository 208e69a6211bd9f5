/* TLS: the certificate and its private key. A reload replaces the pair while connections use the old one. */
#ifndef DAYBOOK_SERVER_HTTP_TLS_H
#define DAYBOOK_SERVER_HTTP_TLS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/config.h"

/* Loads the pair of --tls-cert and --tls-key, if they are set. False: the reason was printed. */
bool tls_open(const struct config *config);
/* After all connections are closed. */
void tls_close(void);
bool tls_is_on(void);

/* Loads the files again, for new handshakes. If they cannot be used, keeps the pair and logs the reason. Only
 * on the thread that called tls_open. */
void tls_reload(void);
/* Logs a warning if the certificate expires soon. Call it once a day, on the same thread. */
void tls_check_expiry(void);
/* When the certificate expires, in seconds since 1970; 0 without TLS. On any thread. */
int64_t tls_expiry(void);

#endif
