/* The log lines of connections that are lost and established, together for those that share their fate. */
#include <stdio.h>
#include <string.h>

#include "db/conn_internal.h"
#include "db/lanes.h"
#include "server/log.h"

/* All connections of a loop notice a loss within a few turns. */
enum { GATHER_US = 100 * 1000 };

static void write_line(const struct conn_event *e)
{
    char lanes[64] = "";
    size_t len = 0;
    int count = 0;
    for (int lane = 0; lane <= LANE_SLOW; lane++) {
        count += e->count[lane];
        if (e->count[lane])
            len += (size_t)snprintf(lanes + len, sizeof lanes - len, "%s%s", len ? "," : "",
                                    conn_lane_names[lane]);
    }
    if (e->lost)
        log_event(LOG_WARN, "db_lost", "connections=%d lanes=%s host=\"%s\" attempt=%d reason=\"%s\"", count,
                  lanes, e->host, e->attempts, e->reason);
    else
        log_event(LOG_INFO, "db_connected", "connections=%d lanes=%s host=\"%s\" attempts=%d%s", count, lanes,
                  e->host, e->attempts, e->reason);
}

void conn_log_flush(struct db *db)
{
    for (int i = 0; i < db->events.count; i++)
        write_line(&db->events.list[i]);
    db->events.count = 0;
    loop_timer_off(db->loop, &db->events.timer);
}

void conn_log_timer(struct timer *t)
{
    conn_log_flush(container_of(t, struct db, events.timer));
}

static struct conn_event *find(struct db *db, bool lost, const char *host, const char *reason)
{
    for (int i = 0; i < db->events.count; i++) {
        struct conn_event *e = &db->events.list[i];
        if (e->lost == lost && strcmp(e->host, host) == 0 && strcmp(e->reason, reason) == 0)
            return e;
    }
    if (db->events.count == CONN_EVENTS)
        conn_log_flush(db);
    struct conn_event *e = &db->events.list[db->events.count++];
    *e = (struct conn_event){ .lost = lost };
    snprintf(e->host, sizeof e->host, "%s", host);
    snprintf(e->reason, sizeof e->reason, "%s", reason);
    return e;
}

static void add(struct conn *c, bool lost, const char *reason, int attempts)
{
    struct db *db = c->db;
    char host[HOSTS_NAME_SIZE] = "(none)";
    if (c->pg)
        hosts_name(c->pg, host);
    struct conn_event *e = find(db, lost, host, reason);
    e->count[c->lane]++;
    if (attempts > e->attempts)
        e->attempts = attempts;
    if (!db->events.timer.armed)
        loop_timer(db->loop, &db->events.timer, GATHER_US);
}

void conn_log_lost(struct conn *c, const char *why)
{
    char reason[HOSTS_REASON_SIZE];
    add(c, true, hosts_reason(why, reason), c->failures);
}

void conn_log_connected(struct conn *c)
{
    add(c, false, c->read_only ? " read_only=true" : "", c->failures + 1);
}
