/* Finds an installed PostgreSQL with pgvector. */
#include "server/embedded_pg/pg.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/log.h"

#define DEBIAN_BIN "/usr/lib/postgresql/%d/bin"

/* What was found so far, also for the error message. */
struct search {
    int wanted; /* 0: any */
    struct pg_install *best;
    int newest, newest_without_vector;
};

static void consider(struct search *s, int major, const char *bin, const char *share)
{
    char program[PG_PATH + 16], control[PG_PATH + 32];
    if ((size_t)snprintf(program, sizeof program, "%s/postgres", bin) >= sizeof program ||
        (size_t)snprintf(control, sizeof control, "%s/extension/vector.control", share) >= sizeof control ||
        strlen(bin) >= sizeof s->best->bin || access(program, X_OK) != 0)
        return;
    if (major > s->newest)
        s->newest = major;
    if (major < PG_OLDEST_MAJOR || (s->wanted && major != s->wanted))
        return;
    if (access(control, R_OK) != 0) {
        if (major > s->newest_without_vector)
            s->newest_without_vector = major;
    } else if (major > s->best->major) {
        s->best->major = major;
        strcpy(s->best->bin, bin);
    }
}

static void search_debian(struct search *s)
{
    glob_t found;
    if (glob("/usr/lib/postgresql/*/bin/postgres", 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            int major = atoi(found.gl_pathv[i] + strlen("/usr/lib/postgresql/"));
            char bin[64], share[64];
            snprintf(bin, sizeof bin, DEBIAN_BIN, major);
            snprintf(share, sizeof share, "/usr/share/postgresql/%d", major);
            consider(s, major, bin, share);
        }
    }
    globfree(&found);
}

static void search_pg_config(struct search *s)
{
    FILE *p = popen("pg_config --bindir --sharedir --version 2>/dev/null", "re");
    if (!p)
        return;
    char line[3][PG_PATH];
    int n = 0;
    while (n < 3 && fgets(line[n], PG_PATH, p)) {
        line[n][strcspn(line[n], "\n")] = 0;
        n++;
    }
    pclose(p);
    int major;
    if (n == 3 && sscanf(line[2], "PostgreSQL %d", &major) == 1)
        consider(s, major, line[0], line[1]);
}

bool pg_find(int major, const char *cluster, struct pg_install *out)
{
    *out = (struct pg_install){ 0 };
    struct search s = { .wanted = major, .best = out };
    search_debian(&s);
    if (!out->major)
        search_pg_config(&s);
    if (out->major)
        return true;
    if (s.newest_without_vector)
        return log_failure("PostgreSQL %d is installed, but pgvector is not: install postgresql-%d-pgvector "
                           "(0.8 or newer), or give --database-url",
                           s.newest_without_vector, s.newest_without_vector);
    if (major && s.newest)
        return log_failure(
            "the data in %s is of PostgreSQL %d, and here is PostgreSQL %d: install postgresql-%d with "
            "pgvector, or move the data with pg_upgrade",
            cluster, major, s.newest, major);
    if (s.newest)
        return log_failure(
            "PostgreSQL %d or newer is needed, and here is PostgreSQL %d: install a newer one with "
            "pgvector, or give --database-url",
            PG_OLDEST_MAJOR, s.newest);
    return log_failure("PostgreSQL is not installed: install PostgreSQL %d or newer with pgvector, or give "
                       "--database-url",
                       major ? major : PG_OLDEST_MAJOR);
}
