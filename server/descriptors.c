/* The limit of open files of the process. */
#include "server/descriptors.h"

#include <sys/resource.h>

#include "server/log.h"

enum {
    PER_CLIENT = 2, /* its socket, and the temporary file of a bulk body */
    /* Connections above the limit that get an error (64), idle ones to other servers (64), and the files and
     * sockets of the loop itself. */
    PER_LOOP = 160,
    RESERVE = 64, /* the log, the private PostgreSQL, TLS files, name lookups */
};

static rlim_t needed(const struct config *config, int loops, int db_connections)
{
    return (rlim_t)(PER_CLIENT * config->max_connections + PER_LOOP * loops + db_connections + RESERVE);
}

void descriptors_prepare(const struct config *config, int loops, int db_connections)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    if (limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur < needed(config, loops, db_connections))
        log_event(LOG_WARN, "open_files_limited", "limit=%llu needed=%llu advice=\"%s\"",
                  (unsigned long long)limit.rlim_cur,
                  (unsigned long long)needed(config, loops, db_connections),
                  "raise the hard limit of open files (LimitNOFILE, ulimit -Hn) or lower --max-connections");
}
