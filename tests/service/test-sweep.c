/*
 * What `blkin live` deletes of the files that its relay daemon has kept, and what it leaves.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "in_loop.h"
#include "tools/live/sweep.h"
#include "babeltrace-plugin/base/monotonic.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 10000
#define OLD_S   3600
#define GOES    "c/goes-20260101-000000.ended"

static struct timer look;
static int64_t until_ms;

static void make(const char *path, int seconds_ago)
{
    const struct timespec changed = {.tv_sec = time(NULL) - seconds_ago};
    char command[256];

    (void)snprintf(command, sizeof(command), "mkdir -p '%s' && echo x > '%s/stream'", path, path);
    CHECK(system(command) == 0);
    CHECK(utimensat(AT_FDCWD, path, (struct timespec[]){changed, changed}, 0) == 0);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void mark(const char *host, const char *session, bool is_made_next)
{
    struct sweep_files kept = sweep_find(".", host, session, is_made_next);

    sweep_mark(&kept);
    sweep_free(&kept);
}

/* The loop has not yet seen the end of one. */
static bool has_child(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void look_whether_it_goes(void *context)
{
    (void)context;
    if ((is_there(GOES) || has_child()) && clock_ms() < until_ms)
        timer_set(loop, &look, 5);
    else
        loop_stop(loop);
}

/* Deletes what is marked, this too: when it is gone, so is the rest. The loop has seen the end of
 * the child that did it. */
static void wait_for_sweep(void)
{
    until_ms = clock_ms() + WAIT_MS;
    look = (struct timer){.due = look_whether_it_goes};
    timer_set(loop, &look, 0);
    CHECK(loop_run(loop));
    CHECK(!is_there(GOES));
}

/* Ours, but for the time in its name: of any age, also if the clock was set back since. */
static void test_names(void)
{
    static const char *const others[] = {
        "a/blkin",
        "a/blkin-20260101",
        "a/blkin-20260101-00000",
        "a/blkin-2026x101-000000",
        "a/-20260101-000000",
        "a/blkin-20260101-000000-more",
        "blkin-20260101-000000",
        "a/deep/blkin-20260101-000000",
    };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        make(others[i], OLD_S);
    make("a/blkin-20260101-000000", OLD_S);
    make("a/blkin-2-20260101-000000", 0);
    make("b/s-20260101-000000", -OLD_S);
    CHECK(symlink("blkin", "a/link-20260101-000000") == 0);
    mark(NULL, NULL, false);
    CHECK(is_there("a/blkin-20260101-000000.ended"));
    CHECK(is_there("a/blkin-2-20260101-000000.ended"));
    CHECK(is_there("b/s-20260101-000000.ended"));
    make(GOES, OLD_S);
    sweep(loop, ".");
    wait_for_sweep();
    CHECK(!is_there("a/blkin-20260101-000000.ended"));
    CHECK(!is_there("a/blkin-2-20260101-000000.ended"));
    CHECK(!is_there("b/s-20260101-000000.ended"));
    CHECK(is_there("a/link-20260101-000000"));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        CHECK(is_there(others[i]));
}

/* A folder may be the new session's own: made in this second, or the clock was set back. */
static void test_session(void)
{
    make("a/s-20260101-000001", OLD_S);
    make("a/s-20260101-000002", 0);
    make("a/s-20260101-000003", -OLD_S);
    make("a/s-1-20260101-000001", OLD_S);
    make("b/s-20260101-000001", OLD_S);
    mark("a", "s", true);
    CHECK(is_there("a/s-20260101-000001.ended"));
    CHECK(is_there("a/s-20260101-000002"));
    CHECK(is_there("a/s-20260101-000003"));
    CHECK(is_there("a/s-1-20260101-000001"));
    CHECK(is_there("b/s-20260101-000001"));
}

/* Who knows whether it has the session? */
static void test_relay_away(void)
{
    make("a/away-20260101-000000", OLD_S);
    make(GOES, OLD_S);
    sweep_session(loop, ".", "net://127.0.0.1:1", "a", "away");
    wait_for_sweep();
    CHECK(is_there("a/away-20260101-000000"));
}

int main(int argc, char *argv[])
{
    static const struct job *const jobs[] = {&sweep_job, NULL};
    char root[] = "/tmp/sweep.XXXXXX", command[64], plugins[4096];
    int status;

    if (job_is_done(argc, argv, jobs, &status))
        return status;
    (void)snprintf(plugins, sizeof(plugins), "%s/plugins", getenv("BUILD"));
    CHECK(setenv("BABELTRACE_PLUGIN_PATH", plugins, 1) == 0);
    CHECK(mkdtemp(root) && chdir(root) == 0);
    loop = loop_new(&signals);
    CHECK(loop != NULL);
    test_names();
    test_session();
    test_relay_away();
    loop_free(loop);
    (void)snprintf(command, sizeof(command), "rm -rf %s", root);
    CHECK(chdir("/") == 0 && system(command) == 0);
    return check_status();
}
