/*
 * The thread that writes a service's state: in order, only the newest text of a file, and without
 * blocking the loop while the disk hangs. A pipe without a reader stands for the disk.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/folders.h"
#include "tools/base/loop.h"
#include "tools/base/saver.h"
#include "waits.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SAVER_ROUNDS 20000
#define LONGEST_US   60    /* of the second job */
#define LOST_MS      30000 /* a wake-up that takes longer is lost */

static struct loop *loop;
static char folder[] = "/tmp/saver.XXXXXX";
static unsigned calls, ticks;
static char last_problem[1024];

static atomic_uint syncs;

/* In place of libc's function. */
int fsync(int fd)
{
    atomic_fetch_add(&syncs, 1);
    return (int)syscall(SYS_fsync, fd);
}

static const char *in_folder(const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];

    (void)snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static bool has_text(const char *name, const char *expected)
{
    char text[64] = "";
    const int fd = open(in_folder(name), O_RDONLY);
    const bool is_there = fd >= 0 && read(fd, text, sizeof(text) - 1) >= 0;

    if (fd >= 0)
        close(fd);
    return is_there && strcmp(text, expected) == 0;
}

static void save(const char *name, const char *text)
{
    saver_write(in_folder(name), strdup(text), strlen(text));
}

static void done(void *context, const char *problem)
{
    (void)context;
    calls++;
    (void)snprintf(last_problem, sizeof(last_problem), "%s", problem ? problem : "");
    loop_stop(loop);
}

static struct saver_wait wait_of = {.done = done};

TEST(test_order)
{
    save("state", "1");
    saver_then(&wait_of);
    saver_then(&wait_of); /* a second call for one wait has no effect */
    CHECK(loop_run(loop) && calls == 1 && !last_problem[0]);
    CHECK(has_text("state", "1"));
    saver_then(&wait_of); /* nothing is left to write, and done() is called nevertheless */
    CHECK(loop_run(loop) && calls == 2);
}

TEST(test_problem)
{
    save("nowhere/state", "1");
    saver_then(&wait_of);
    CHECK(loop_run(loop) && strstr(last_problem, "nowhere/state: No such file or directory"));
    save("state", "2");
    saver_then(&wait_of);
    CHECK(loop_run(loop) && !last_problem[0] && has_text("state", "2"));
}

static void tick(void *context)
{
    if (++ticks == 5)
        loop_stop(loop);
    else
        timer_set(loop, context, 20);
}

TEST(test_hung)
{
    static struct timer timer = {.due = tick, .context = &timer};
    const unsigned before = calls;
    int fd;

    CHECK(mkfifo(in_folder("hung.new"), 0600) == 0);
    save("hung", "1");
    WAIT_UNTIL(saver_busy_ms());
    save("other", "old");
    save("last", "1");
    save("other", "new"); /* replaces the old text */
    saver_then(&wait_of);
    timer_set(loop, &timer, 20);
    CHECK(loop_run(loop) && ticks == 5 && calls == before);
    CHECK(saver_busy_ms() >= 80 && !saver_finish(10));
    CHECK(access(in_folder("other"), F_OK) != 0 && access(in_folder("last"), F_OK) != 0);
    fd = open(in_folder("hung.new"), O_RDONLY); /* the disk is back */
    CHECK(fd >= 0 && loop_run(loop) && calls == before + 1);
    CHECK(strstr(last_problem, "cannot write") && has_text("other", "new") &&
          has_text("last", "1"));
    CHECK(saver_finish(0) && saver_busy_ms() == 0);
    if (fd >= 0)
        close(fd);
}

static void save_in_turn(const char *name, const char *text)
{
    saver_write_in_turn(in_folder(name), strdup(text), strlen(text));
}

/* Begins a write that hangs until release(), and then fails. */
static void hang_at(const char *name)
{
    char path[256];

    (void)snprintf(path, sizeof(path), "%s.new", in_folder(name));
    CHECK(mkfifo(path, 0600) == 0);
    save(name, "1");
}

static void release(const char *name)
{
    char path[256];
    int fd;

    (void)snprintf(path, sizeof(path), "%s.new", in_folder(name));
    fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    if (fd >= 0)
        close(fd);
}

/* A text is on disk after the texts that it depends on, and before the texts that depend on it. */
TEST(test_in_turn)
{
    hang_at("hung-1");
    WAIT_UNTIL(saver_busy_ms());
    save_in_turn("account", "1");
    save_in_turn("account", "2");
    save("list", "1");
    hang_at("hung-2");
    save_in_turn("account", "3"); /* depends on the list's first text */
    save("list", "2");
    save_in_turn("account", "4");
    release("hung-1");
    WAIT_UNTIL(has_text("list", "2"));
    CHECK(access(in_folder("account"), F_OK) != 0);
    release("hung-2");
    CHECK(saver_finish(LOST_MS) && has_text("account", "4"));
}

/* A file that changes often has each text at once, and fsync(2) about once a second. */
TEST(test_often)
{
    const int64_t begun_ms = clock_ms();
    const unsigned before = syncs;
    char text[8];

    for (int i = 0; i < 20; i++) {
        (void)snprintf(text, sizeof(text), "%d", i);
        saver_write_often(in_folder("often"), strdup(text), strlen(text));
        CHECK(saver_finish(LOST_MS) && has_text("often", text));
    }
    /* of the file and of the folder; and of the last test's file */
    CHECK(syncs - before <= 2 * (2 + (clock_ms() - begun_ms) / SAVER_SYNC_MS));
    WAIT_UNTIL(syncs >= before + 2);
}

/* At the end, fsync(2) does not wait for its time. */
TEST(test_end)
{
    unsigned before;

    CHECK(saver_end());
    before = syncs;
    saver_write_often(in_folder("often"), strdup("end"), strlen("end"));
    CHECK(saver_end() && has_text("often", "end") && syncs == before + 2);
    CHECK(saver_end() && syncs == before + 2);
}

static bool write_by(void *context, const char *text, struct error *error)
{
    unsigned *count = context;

    ++*count;
    error_set(error, "written by a function: %s", text);
    return false;
}

TEST(test_function)
{
    unsigned count = 0;

    saver_write_by("not a path", strdup("text"), write_by, &count);
    saver_then(&wait_of);
    CHECK(loop_run(loop) && count == 1 && strcmp(last_problem, "written by a function: text") == 0);
}

static bool write_for(void *context, const char *text, struct error *error)
{
    const int64_t *ns = context;
    const int64_t until_ns = clock_ns() + *ns;

    (void)text;
    (void)error;
    while (clock_ns() < until_ns)
        continue;
    return true;
}

static unsigned lost;

static void give_up(void *context)
{
    (void)context;
    lost++;
    loop_stop(loop);
}

/*
 * The loop is woken for the first of two jobs. The second one ends at any moment of the loop's
 * work: it is not missed.
 */
TEST(test_wake_up)
{
    static struct timer guard = {.due = give_up};
    static int64_t none_ns, second_ns;

    for (unsigned i = 0; i < SAVER_ROUNDS && !lost; i++) {
        second_ns = i % LONGEST_US * 1000 + i / LONGEST_US * 50 % 1000;
        saver_write_by("first", strdup(""), write_for, &none_ns);
        saver_write_by("second", strdup(""), write_for, &second_ns);
        saver_then(&wait_of);
        timer_set(loop, &guard, LOST_MS);
        CHECK(loop_run(loop));
        timer_clear(loop, &guard);
    }
    CHECK(lost == 0);
}

int main(void)
{
    static const struct loop_signals signals = {NULL, NULL, NULL};

    CHECK(mkdtemp(folder) && (loop = loop_new(&signals)) && saver_open(loop));
    check_run();
    tree_remove(folder);
    CHECK(access(folder, F_OK) != 0);
    loop_free(loop);
    return check_status();
}
