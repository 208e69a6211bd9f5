/* The servers that the database URL names. Each attempt to connect goes to one address of one of them. */
#ifndef DAYBOOK_DB_HOSTS_H
#define DAYBOOK_DB_HOSTS_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

struct hosts;

/* Reads the URL with libpq, so environment and service file count. The same URL gives the same object, which
 * lives as long as the process and is shared by all its connections. Call it before the loops start. On
 * failure prints one line on stderr, without the URL, and returns NULL. */
struct hosts *hosts_read(const char *url);

/* The position of one connection among the servers. */
struct hosts_walk {
    int host, left;                    /* the host, and hosts left in this round */
    int address, tried, address_count; /* of a host name with several addresses */
};

enum { HOSTS_NAME_SIZE = 300, HOSTS_REASON_SIZE = 1024 };

/* Starts a round at the server that was usable last. */
void hosts_begin(struct hosts *hosts, struct hosts_walk *w);
/* Starts an attempt at the walk's position (PQconnectStartParams). A host name is resolved first. */
PGconn *hosts_connect(struct hosts *hosts, struct hosts_walk *w);
/* How long the attempt may take: connect_timeout, or a default. */
int64_t hosts_limit_us(const struct hosts *hosts, const struct hosts_walk *w);
/* The attempt failed: moves on to the next address. Returns false if the round is over, and starts another.
 */
bool hosts_next(struct hosts *hosts, struct hosts_walk *w);
/* The server can be used: the next rounds of all connections begin here. */
void hosts_found(struct hosts *hosts, const struct hosts_walk *w);
/* The server cannot be used any more: the next rounds begin at another one, if this one was to be the first.
 */
void hosts_leave(struct hosts *hosts, const struct hosts_walk *w);

/* Why there is no usable connection. */
enum hosts_cause {
    CAUSE_NONE,
    CAUSE_NOT_YET,
    CAUSE_UNREACHABLE,
    CAUSE_SILENT,
    CAUSE_CONNECTION_LIMIT,
    CAUSE_STARTING,
    CAUSE_REJECTED, /* wrong password, no such database: waiting does not help */
    CAUSE_READ_ONLY,
    CAUSES,
};
/* In words that may be shown to anybody: without names of hosts, users or databases. */
const char *hosts_cause_text(enum hosts_cause cause);
/* Of a message of libpq, with the SQLSTATE in it (PQERRORS_VERBOSE). */
enum hosts_cause hosts_cause_of(const char *message);

/* "db1.example:5432", and the address if the name has several. */
const char *hosts_name(const PGconn *pg, char out[HOSTS_NAME_SIZE]);
/* All lines of a message of libpq as one. */
const char *hosts_reason(const char *message, char out[HOSTS_REASON_SIZE]);

#endif
