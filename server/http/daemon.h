/* The HTTP server of one loop. */
#ifndef DAYBOOK_SERVER_HTTP_DAEMON_H
#define DAYBOOK_SERVER_HTTP_DAEMON_H

#include "server/http/exchange.h"
#include "server/loop.h"

/* Serves the listening socket `fd` on this loop. NULL: the daemon could not start. */
struct http *daemon_open(struct loop *loop, int fd, const struct http_app *app);
/* Handles the events of this turn. */
void daemon_run(struct http *h);
/* How long the loop may sleep; -1: forever. */
int64_t daemon_wait_us(struct http *h);

/* Stops accepting connections and rejects new requests. Requests in flight continue. */
void daemon_drain(struct http *h);
/* Requests that are being read, worked on or sent. */
int daemon_in_flight(const struct http *h);
/* Requests that are being worked on. */
int daemon_working(const struct http *h);
/* Requests since the start. */
int64_t daemon_requests(const struct http *h);
/* Cancels all tasks with ERR_SHUTTING_DOWN. Run one more turn to send the replies, then close. */
void daemon_abandon(struct http *h);
/* Closes all connections. Coroutines that wait for the database end when the database is closed; call
 * daemon_close after that. */
void daemon_stop(struct http *h);
void daemon_close(struct http *h);

#endif
