/* A PostgreSQL for the tests of db/: that of DAYBOOK_TEST_DATABASE_URL, or a temporary one. */
#ifndef DAYBOOK_TESTS_DB_DATABASE_H
#define DAYBOOK_TESTS_DB_DATABASE_H

#include <check.h>
#include <ftw.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/admin.h"
#include "server/embedded_pg/embedded_pg.h"
#include "server/log.h"

static const char *database_server; /* a URL of the server; its role may create databases */
static char database_folder[64];

static inline int database_remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

/* Call before the tests. */
static inline void database_open(void)
{
    database_server = getenv("DAYBOOK_TEST_DATABASE_URL");
    if (database_server && *database_server)
        return;
    strcpy(database_folder, "/tmp/daybook-test-XXXXXX");
    if (!mkdtemp(database_folder) || !embedded_pg_start(database_folder, 0, &database_server))
        exit(EXIT_FAILURE);
    static char admin[1024]; /* the tests create databases and roles */
    snprintf(admin, sizeof admin, "%s&user=daybook_admin", database_server);
    database_server = admin;
}

/* Call after the tests. */
static inline void database_close(void)
{
    embedded_pg_stop();
    if (database_folder[0])
        nftw(database_folder, database_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void database_silence(void *unused, const char *notice)
{
    (void)unused;
    (void)notice;
}

static inline PGconn *database_connect(const char *url)
{
    PGconn *pg = PQconnectdb(url);
    ck_assert_msg(PQstatus(pg) == CONNECTION_OK, "%s", PQerrorMessage(pg));
    return pg;
}

/* Runs SQL, which must succeed, and returns its result. */
static inline PGresult *database_query(PGconn *pg, const char *sql)
{
    PGresult *r = PQexec(pg, sql);
    ExecStatusType status = PQresultStatus(r);
    ck_assert_msg(status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK, "%s: %s", sql, PQerrorMessage(pg));
    return r;
}

/* Runs SQL and returns the first value of its result, in static storage; "" if there is none. */
static inline const char *database_value(const char *url, const char *sql)
{
    static char value[1024];
    PGconn *pg = database_connect(url);
    PQsetNoticeProcessor(pg, database_silence, NULL);
    PGresult *r = PQexec(pg, sql);
    ExecStatusType status = PQresultStatus(r);
    ck_assert_msg(status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK, "%s: %s", sql, PQerrorMessage(pg));
    snprintf(value, sizeof value, "%s", PQntuples(r) ? PQgetvalue(r, 0, 0) : "");
    PQclear(r);
    PQfinish(pg);
    return value;
}

/* The server's URL with other settings ("dbname=x", "user=y"), in static storage that four calls share. */
static inline const char *database_url(const char *words)
{
    static char urls[4][1024];
    static unsigned next;
    char *out = urls[next++ % 4], *p = out, *end = out + sizeof urls[0];
    PQconninfoOption *options = PQconninfoParse(database_server, NULL);
    ck_assert_ptr_nonnull(options);
    for (PQconninfoOption *o = options; o->keyword; o++) {
        if (!o->val)
            continue;
        p += snprintf(p, (size_t)(end - p), "%s='", o->keyword);
        for (const char *v = o->val; *v; v++)
            p += snprintf(p, (size_t)(end - p), *v == '\'' || *v == '\\' ? "\\%c" : "%c", *v);
        p += snprintf(p, (size_t)(end - p), "' ");
    }
    snprintf(p, (size_t)(end - p), "%s", words);
    PQconninfoFree(options);
    return out;
}

/* Creates an empty database of that name and returns its URL. */
static inline const char *database_create(const char *name)
{
    char sql[256];
    snprintf(sql, sizeof sql, "drop database if exists %s with (force)", name);
    database_value(database_server, sql);
    snprintf(sql, sizeof sql, "create database %s encoding utf8 template template0", name);
    database_value(database_server, sql);
    snprintf(sql, sizeof sql, "dbname=%s", name);
    return database_url(sql);
}

static inline void database_drop(const char *name)
{
    char sql[256];
    snprintf(sql, sizeof sql, "drop database if exists %s with (force)", name);
    database_value(database_server, sql);
}

/* Connects to a new database with every migration applied; `word` is part of its name. */
static inline PGconn *database_migrated(const char *word)
{
    char name[64];
    log_setup("error", "text");
    snprintf(name, sizeof name, "daybook_test_%d_%s", (int)getpid(), word);
    const char *url = database_create(name);
    ck_assert(admin_migrate(url, NULL));
    PGconn *pg = database_connect(url);
    PQsetNoticeProcessor(pg, database_silence, NULL);
    return pg;
}

/* Closes the connection and drops its database. */
static inline void database_finish(PGconn *pg)
{
    char name[64];
    snprintf(name, sizeof name, "%s", PQdb(pg));
    PQfinish(pg);
    database_drop(name);
}

/* Runs the tests against the server; returns the exit code of the program. */
static int database_tests(const char *name, const TTest *const *const *tests, size_t count,
                          void (*setup)(void), void (*teardown)(void))
{
    database_open();
    Suite *suite = suite_create(name);
    TCase *all = tcase_create(name);
    tcase_set_timeout(all, 120);
    tcase_add_checked_fixture(all, setup, teardown);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(all, *tests[i]);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); /* the server is a child of a thread of this process */
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    database_close();
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
