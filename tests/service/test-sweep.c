/*
 * `blkin live` deletes old files that its relay daemon has kept, and leaves others.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "in_loop.h"
#include "tools/live/relay.h"
#include "babeltrace-plugin/base/monotonic.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SWEEP_WAIT_MS 60000
#define OLD_S         (2 * SWEEP_AGE_S)
#define GOES          "z/goes-20260101-000000" /* the folder that a sweep deletes last */

static struct timer look;
static struct sweep sweep;
static int64_t until_ms;

static void make(const char *path, int seconds_ago)
{
    char command[512];

    (void)snprintf(command, sizeof(command),
                   "mkdir -p '%s/ust' && echo x > '%s/ust/stream' && find '%s' -exec touch -h -d "
                   "@%lld {} +",
                   path, path, path, (long long)time(NULL) - seconds_ago);
    CHECK(system(command) == 0);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void stop_when_deleted(void *context)
{
    (void)context;
    if ((is_there(GOES) || sweep.job.is_running) && clock_ms() < until_ms)
        timer_set(loop, &look, 5);
    else
        loop_stop(loop);
}

/* Sweeps until the last folder is gone, and the loop has seen the end of the thread. */
static void do_sweep(const struct listing *live)
{
    make(GOES, OLD_S);
    relay_sweep(&sweep, loop, ".", live);
    until_ms = clock_ms() + SWEEP_WAIT_MS;
    look = (struct timer){.due = stop_when_deleted};
    timer_set(loop, &look, 0);
    CHECK(loop_run(loop));
    CHECK(!is_there(GOES));
}

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

static void check_others(void)
{
    CHECK(is_there("a/link-20260101-000000"));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        CHECK(is_there(others[i]));
}

/* Files are deleted by their age, not by the time in their names. Foreign files stay. */
TEST(test_age)
{
    static const struct listing none;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        make(others[i], OLD_S);
    CHECK(symlink("blkin", "a/link-20260101-000000") == 0);
    make("a/old-20260101-000000", OLD_S);
    make("a/young-20260101-000000", 60);
    make("a/written-20260101-000000", OLD_S);
    CHECK(utimensat(AT_FDCWD, "a/written-20260101-000000/ust/stream", NULL, 0) == 0);
    do_sweep(&none);
    CHECK(!is_there("a/old-20260101-000000"));
    CHECK(is_there("a/young-20260101-000000"));
    CHECK(is_there("a/written-20260101-000000"));
    check_others();
}

/* For a live session that was idle for a while, the folder in use stays, not one before it. */
TEST(test_live)
{
    struct listing live = {.count = 2, .sessions = {{"a", "s", 0, 0}, {"b", "other", 0, 0}}};

    make("a/s-20260101-000001", 2 * OLD_S);
    make("a/s-20260101-000002", OLD_S);
    make("a/s-1-20260101-000001", OLD_S);
    make("b/s-20260101-000001", OLD_S);
    do_sweep(&live);
    CHECK(!is_there("a/s-20260101-000001"));
    CHECK(is_there("a/s-20260101-000002"));
    CHECK(!is_there("a/s-1-20260101-000001"));
    CHECK(!is_there("b/s-20260101-000001"));
}

/* Without a relay daemon all its files are deleted, also if the folder's name is a pattern. */
TEST(test_all)
{
    CHECK(mkdir("[x]*", 0700) == 0 && chdir("[x]*") == 0);
    make("a/s-20260101-000001", 0);
    CHECK(chdir("..") == 0);
    relay_sweep_all("[x]*");
    CHECK(!is_there("[x]*/a") && is_there("[x]*"));
    relay_sweep_all(".");
    CHECK(!is_there("a/young-20260101-000000") && !is_there("a/s-20260101-000002"));
    check_others();
}

int main(void)
{
    char root[] = "/tmp/sweep.XXXXXX", command[64];

    CHECK(mkdtemp(root) && chdir(root) == 0);
    loop = loop_new(&signals);
    CHECK(loop != NULL);
    check_run();
    loop_free(loop);
    (void)snprintf(command, sizeof(command), "rm -rf %s", root);
    CHECK(chdir("/") == 0 && system(command) == 0);
    return check_status();
}
