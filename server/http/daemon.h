/* The HTTP edge of one loop. */
#ifndef DAYBOOK_SERVER_HTTP_DAEMON_H
#define DAYBOOK_SERVER_HTTP_DAEMON_H

#include "server/http/exchange.h"
#include "server/loop.h"

/* Serves the listening socket `fd` on this loop, for the application. NULL: it could not start. */
struct http *http_open(struct loop *loop, int fd, const struct http_app *app);
/* Does what this turn's events ask for. */
void http_run(struct http *h);
/* How long the loop may wait, -1 for ever. */
int64_t http_wait_us(struct http *h);

/* Stops accepting; what is in flight goes on, what is new is refused. */
void http_drain(struct http *h);
/* Requests that are being worked on or sent. */
int http_in_flight(const struct http *h);
/* Requests that are being worked on. */
int http_working(const struct http *h);
/* Ends what tasks still wait for with ERR_SHUTTING_DOWN; run a last turn to send the replies, then close. */
void http_abandon(struct http *h);
/* Ends all connections. Coroutines that wait for the database end when that is closed, and then http_close
 * frees the rest. */
void http_stop(struct http *h);
void http_close(struct http *h);

#endif
