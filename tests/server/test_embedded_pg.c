/* The private PostgreSQL: created, reopened, shared, restarted, and stopped. */
#include "server/embedded_pg/embedded_pg.h"

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "db/admin.h"
#include "server/log.h"
#include "tests/server/stderr.h"

#define FOLDER "/tmp/daybook-test-XXXXXX"

static char folder[512];
static char made[] = FOLDER; /* a cluster that is created once, because that takes a second or two */

static void make_folder(void)
{
    strcpy(folder, FOLDER);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    log_setup("error", "text");
}

static void fill_folder(void)
{
    char command[1024];
    snprintf(command, sizeof command, "cp -a %s/. %s", made, folder);
    ck_assert_int_eq(system(command), 0);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path);
}

static void remove_folder(void)
{
    folder[sizeof FOLDER - 1] = 0;
    ck_assert_int_eq(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static const char *in_folder(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static pid_t postmaster(void)
{
    FILE *f = fopen(in_folder("cluster/postmaster.pid"), "r");
    int pid = 0;
    if (f && fscanf(f, "%d", &pid) != 1)
        pid = 0;
    if (f)
        fclose(f);
    return pid;
}

/* As the commands do: the extensions need the superuser of the cluster. */
static bool migrate(const char *url, bool *has_keys)
{
    return admin_extensions(embedded_pg_admin_url(), 60000) && admin_migrate(url, has_keys);
}

/* Starts, uses and stops it once. */
static void serves_once(void)
{
    const char *url = NULL;
    ck_assert(embedded_pg_start(folder, 0, &url));
    ck_assert(migrate(url, NULL));
    pid_t pid = postmaster();
    ck_assert_int_gt(pid, 1);
    embedded_pg_stop();
    ck_assert_int_eq(kill(pid, 0), -1);
    ck_assert_int_eq(access(in_folder("cluster/postmaster.pid"), F_OK), -1);
}

/* A service in a separate process, until the write end of `say` is closed. */
struct service {
    pid_t pid;
    int say;
};

static struct service start_service(void)
{
    int ready[2], stop[2];
    char byte = 0;
    const char *url = NULL;
    ck_assert_int_eq(pipe(ready), 0);
    ck_assert_int_eq(pipe(stop), 0);
    struct service s = { .pid = fork(), .say = stop[1] };
    if (s.pid == 0) {
        close(stop[1]);
        bool up = embedded_pg_start(folder, 0, &url) && migrate(url, NULL) && write(ready[1], "", 1) == 1;
        bool told = read(stop[0], &byte, 1) == 0;
        embedded_pg_stop();
        _exit(up && told ? 0 : 1);
    }
    close(ready[1]);
    close(stop[0]);
    ck_assert_int_eq(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return s;
}

static int end_of(struct service s)
{
    int status = -1;
    close(s.say);
    ck_assert_int_eq(waitpid(s.pid, &status, 0), s.pid);
    return status;
}

START_TEST(a_second_start_finds_the_data_of_the_first)
{
    const char *url = NULL;
    bool has_keys = false;
    fill_folder();
    struct service service = start_service();
    char expected[1024];
    snprintf(expected, sizeof expected, "daybookd: the folder %s is in use by another daybookd (pid %d)\n",
             folder, (int)service.pid);
    stderr_begin();
    ck_assert(!embedded_pg_start(folder, 0, &url));
    ck_assert_str_eq(stderr_end(), expected);
    /* a command may connect, and leaves the service's PostgreSQL running */
    pid_t pid = postmaster();
    stderr_begin();
    ck_assert(freopen("/dev/null", "w", stdout) != NULL); /* discard the token */
    ck_assert(embedded_pg_join(folder, false, &url));
    ck_assert(admin_key_create(url, &(struct admin_key){ .owner = "a", .role = "agent" }));
    embedded_pg_stop();
    stderr_end();
    ck_assert_int_eq(postmaster(), pid);
    ck_assert_int_eq(end_of(service), 0);
    ck_assert_int_eq(postmaster(), 0);
    ck_assert(embedded_pg_join(folder, false, &url));
    ck_assert(migrate(url, &has_keys));
    ck_assert(has_keys);
    embedded_pg_stop();
    ck_assert_int_eq(postmaster(), 0);
}
END_TEST

START_TEST(a_killed_postmaster_is_restarted)
{
    const char *url = NULL;
    fill_folder();
    ck_assert(embedded_pg_start(folder, 0, &url));
    pid_t pid = postmaster();
    stderr_begin();
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    while (postmaster() == pid || !postmaster() || !migrate(url, NULL))
        usleep(1000);
    stderr_end();
    ck_assert_int_ne(postmaster(), pid);
    embedded_pg_stop();
}
END_TEST

START_TEST(after_a_killed_service_the_next_one_can_start)
{
    fill_folder();
    struct service service = start_service();
    ck_assert_int_eq(kill(service.pid, SIGKILL), 0);
    ck_assert_int_eq(end_of(service), SIGKILL);
    serves_once();
}
END_TEST

START_TEST(a_half_created_cluster_is_created_again)
{
    mkdir(in_folder("cluster.new"), 0700);
    mkdir(in_folder("cluster.new/base"), 0700);
    fclose(fopen(in_folder("cluster.new/PG_VERSION"), "w"));
    fclose(fopen(in_folder("daybook.lock"), "w"));
    if (geteuid() == 0) { /* as the unprivileged user would have left them */
        chmod(folder, 0777);
        chmod(in_folder("cluster.new"), 0777);
        chmod(in_folder("cluster.new/base"), 0777);
    }
    serves_once();
}
END_TEST

START_TEST(long_unusual_and_private_paths_work)
{
    size_t len = strlen(folder);
    snprintf(folder + len, sizeof folder - len, "/a, 'b' \"c\" %%41 \xc3\xa9/%0120d", 7);
    serves_once();
}
END_TEST

START_TEST(a_folder_with_other_files_is_left_alone)
{
    const char *url = NULL;
    struct stat before, after;
    fclose(fopen(in_folder("letter.txt"), "w"));
    chmod(folder, 0755);
    ck_assert_int_eq(stat(folder, &before), 0);
    stderr_begin();
    ck_assert(!embedded_pg_start(folder, 0, &url));
    ck_assert_ptr_nonnull(strstr(stderr_end(), "contains other files"));
    ck_assert_int_eq(stat(folder, &after), 0);
    ck_assert_uint_eq(before.st_uid, after.st_uid);
    ck_assert_uint_eq(before.st_mode, after.st_mode);
    ck_assert_int_eq(access(in_folder("daybook.lock"), F_OK), -1);
}
END_TEST

START_TEST(a_cluster_of_another_version_is_refused_by_its_number)
{
    const char *url = NULL;
    fill_folder();
    FILE *f = fopen(in_folder("cluster/PG_VERSION"), "w");
    fputs("9\n", f);
    fclose(f);
    stderr_begin();
    ck_assert(!embedded_pg_start(folder, 0, &url));
    ck_assert_ptr_nonnull(strstr(stderr_end(), "is of PostgreSQL 9, and here is PostgreSQL "));
}
END_TEST

/* In a separate process: this one must have no threads when it forks for the tests. */
static bool make_once(void)
{
    int status = -1;
    const char *url = NULL;
    if (!mkdtemp(made))
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        bool ok = embedded_pg_start(made, 0, &url);
        embedded_pg_stop();
        _exit(ok ? 0 : 1);
    }
    return waitpid(pid, &status, 0) == pid && status == 0;
}

int main(void)
{
    static const TTest *const *const tests[] = {
        &a_second_start_finds_the_data_of_the_first,
        &a_killed_postmaster_is_restarted,
        &after_a_killed_service_the_next_one_can_start,
        &a_half_created_cluster_is_created_again,
        &long_unusual_and_private_paths_work,
        &a_folder_with_other_files_is_left_alone,
        &a_cluster_of_another_version_is_refused_by_its_number,
    };
    if (!make_once())
        return EXIT_FAILURE;
    Suite *suite = suite_create("embedded_pg");
    TCase *all = tcase_create("embedded_pg");
    tcase_set_timeout(all, 120);
    tcase_add_checked_fixture(all, make_folder, remove_folder);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(all, *tests[i]);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    nftw(made, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
