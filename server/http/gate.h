/* The gate of a connection: every byte that libmicrohttpd receives has passed here.
 *
 * The daemon links libmicrohttpd statically and wraps its recv() and gnutls_record_recv() (see
 * CMakeLists.txt), so the bytes of a TLS connection pass here when they are decrypted. The gate holds back a
 * head until it is complete and valid. Instead of an invalid head the daemon receives a small request that
 * stands for it, so that the client gets a problem document like for any other error. */
#ifndef DAYBOOK_SERVER_HTTP_GATE_H
#define DAYBOOK_SERVER_HTTP_GATE_H

#include "server/http/address.h"
#include "server/http/framing.h"
#include "server/loop.h"

/* The target of the request that stands for a rejected one. */
#define GATE_REJECTED "/rejected"

struct gate;

/* Opens the gate of a new connection from that address, before the daemon reads from it. All calls are on the
 * loop's thread. */
struct gate *gate_open(struct loop *loop, int fd, const struct address *address);
/* Closes the connection in the daemon's next run, whatever its client still sends. The caller logs why. */
void gate_cut(struct gate *g);
/* Before the daemon closes the connection. */
void gate_close(struct gate *g);
/* When the loop's daemon has closed all connections. */
void gate_thread_end(struct loop *loop);

enum gate_client { GATE_CLIENT_THERE, GATE_CLIENT_AHEAD, GATE_CLIENT_HALF_CLOSED, GATE_CLIENT_GONE };

/* What the client of the connection has closed. A half-closed one may still read, or may have left. One that
 * is ahead has sent so much that its close may wait behind what has not been received. */
enum gate_client gate_client(const struct gate *g);
/* Asks a half-closed client whether it still reads, with an interim response: the system of a client that has
 * left resets the connection, and then it is gone. Only before a reply to HTTP/1.1. At most once a second. */
void gate_ask_client(struct gate *g);

/* Why a head was rejected; err OK: none was. Requests before it are not concerned. */
struct framing_verdict gate_verdict(const struct gate *g);

#endif
