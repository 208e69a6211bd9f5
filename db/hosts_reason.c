/* What libpq says about a server: for the log, and as a cause that may be shown to anybody. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "db/hosts.h"

static const char *const causes[CAUSES] = {
    [CAUSE_NONE] = "",
    [CAUSE_NOT_YET] = "connecting",
    [CAUSE_UNREACHABLE] = "PostgreSQL cannot be reached",
    [CAUSE_SILENT] = "PostgreSQL does not answer",
    [CAUSE_CONNECTION_LIMIT] = "the connection limit of the server is reached (53300)",
    [CAUSE_STARTING] = "PostgreSQL is starting, stopping or recovering (57P03)",
    [CAUSE_REJECTED] = "PostgreSQL rejects the connection; the log says why",
    [CAUSE_READ_ONLY] = "the server is read-only (a standby, or default_transaction_read_only)",
};

/* The first row whose prefix matches the SQLSTATE applies. */
static const struct {
    const char *state;
    enum hosts_cause cause;
} states[] = {
    { "53300", CAUSE_CONNECTION_LIMIT },
    { "57P", CAUSE_STARTING },
    { "53", CAUSE_UNREACHABLE },
    { "58", CAUSE_UNREACHABLE },
    { "08", CAUSE_UNREACHABLE }, /* PgBouncer without a server */
    { "", CAUSE_REJECTED },
};

const char *hosts_cause_text(enum hosts_cause cause)
{
    return causes[cause];
}

/* Finds "FATAL:  53300: sorry, too many clients already". */
static const char *sqlstate_in(const char *message)
{
    for (const char *p = message; (p = strstr(p, ":  ")); p += 3) {
        size_t n = 0;
        while (isdigit((unsigned char)p[3 + n]) || isupper((unsigned char)p[3 + n]))
            n++;
        if (n == 5 && p[8] == ':')
            return p + 3;
    }
    return NULL;
}

enum hosts_cause hosts_cause_of(const char *message)
{
    const char *state = sqlstate_in(message);
    if (strstr(message, "session is read-only") || strstr(message, "server is in hot standby mode"))
        return CAUSE_READ_ONLY; /* target_session_attrs */
    if (!state)
        return CAUSE_UNREACHABLE;
    size_t i = 0;
    while (strncmp(state, states[i].state, strlen(states[i].state)) != 0)
        i++;
    return states[i].cause;
}

const char *hosts_name(const PGconn *pg, char out[HOSTS_NAME_SIZE])
{
    const char *host = PQhost(pg), *port = PQport(pg), *address = PQhostaddr(pg);
    if (!host || !host[0])
        host = address && address[0] ? address : "(default)";
    bool shown = address && address[0] && strcmp(address, host) != 0;
    bool v6 = strchr(host, ':') != NULL;
    snprintf(out, HOSTS_NAME_SIZE, "%s%s%s:%s%s%s%s", v6 ? "[" : "", host, v6 ? "]" : "",
             port && port[0] ? port : "5432", shown ? "(" : "", shown ? address : "", shown ? ")" : "");
    return out;
}

const char *hosts_reason(const char *message, char out[HOSTS_REASON_SIZE])
{
    size_t len = 0;
    out[0] = 0;
    for (const char *line = message; *line && len + 4 < HOSTS_REASON_SIZE;) {
        size_t n = strcspn(line, "\n"), skip = strspn(line, " \t");
        /* The source line of PostgreSQL, which PQERRORS_VERBOSE adds. */
        bool wanted = n > skip && strncmp(line + skip, "LOCATION:", 9) != 0;
        if (wanted)
            len += (size_t)snprintf(out + len, HOSTS_REASON_SIZE - len, "%s%.*s", len ? "; " : "",
                                    (int)(n - skip), line + skip);
        line += n + (line[n] == '\n');
    }
    return out;
}
