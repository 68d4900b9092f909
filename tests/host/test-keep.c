/*
 * A threshold asks the recorder to keep the last seconds, and never waits for it: whether it runs,
 * answers, has no room, refuses or hangs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/host/keep.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/control.h"
#include "tools/base/say.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct loop *loop;
static char folder[4096];
static struct host_keep keep;

/* ---- recorders ------------------------------------------------------------------------------- */

static unsigned requests;
static long long last_ms;
static char why[4096];

static json_t *answer(void *context, const char *request)
{
    requests++;
    CHECK(sscanf(request, "keep-why %lld %4000[^\n]", &last_ms, why) == 2);
    return json_pack("{s: s}", (const char *)context, "store-1:12:3");
}

/* One that only listens. */
static int listen_there(int backlog)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/agent.sock", folder);
    unlink(address.sun_path);
    CHECK(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(listen(fd, backlog) == 0);
    return fd;
}

/* ---- until it is over: `samples` goes on all the time ---------------------------------------- */

static struct timer sampler;
static unsigned samples;
static void (*at_sample)(void);

static void sample(void *context)
{
    (void)context;
    samples++;
    if (at_sample)
        at_sample();
    if (keep.now.is_there || samples < 2)
        timer_set(loop, &sampler, 10);
    else
        loop_stop(loop);
}

/* Asks so often, and runs until nothing is under way. Nothing waited: each call was at once. */
static void run(unsigned asks, int64_t first_ms)
{
    samples = requests = 0;
    for (unsigned i = 0; i < asks; i++) {
        char text[32];

        snprintf(text, sizeof(text), "disk.busy > 95%%: vd%c", 'a' + i);
        host_keep_ask(&keep, first_ms + 1000 * i, text);
    }
    sampler = (struct timer){.due = sample};
    timer_set(loop, &sampler, 0);
    CHECK(loop_run(loop));
}

static void begin(void)
{
    const struct loop_signals signals = {NULL, NULL, NULL};

    loop = loop_new(&signals);
    host_keep_open(&keep, loop, folder);
}

static void end(void)
{
    host_keep_close(&keep);
    loop_free(loop);
    at_sample = NULL;
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void test_taken(void)
{
    struct error error = {""};
    struct control *control;

    begin();
    control = control_open(loop, folder, "agent", answer, (void *)(uintptr_t) "id", &error);
    CHECK_TEXT(error.text, "");
    run(1, 10000);
    CHECK(keep.counts.asked == 1 && keep.counts.unasked == 0 && requests == 1);
    CHECK(last_ms >= 10000 && last_ms < 60000);
    CHECK_TEXT(why, "disk.busy > 95%: vda");

    /* one is under way: the others are one after it, which has the seconds of all of them */
    run(3, 10000);
    CHECK(keep.counts.asked == 3 && keep.counts.joined == 1 && requests == 2);
    CHECK(last_ms >= 12000 && last_ms < 60000);
    CHECK_TEXT(why, "disk.busy > 95%: vdb");
    control_close(control);
    end();
}

static void test_no_recorder(void)
{
    begin();
    run(1, 10000);
    CHECK(keep.counts.unasked == 1 && keep.counts.asked == 0);
    end();

    /* one that was killed */
    close(listen_there(1));
    begin();
    run(2, 10000);
    CHECK(keep.counts.unasked == 2);
    end();

    /* a folder that no socket can be in */
    begin();
    memset(keep.folder, 'x', 200);
    run(1, 10000);
    CHECK(keep.counts.unasked == 1);
    end();
}

static void test_refused(void)
{
    struct error error = {""};
    struct control *control;

    begin();
    control = control_open(loop, folder, "agent", answer, (void *)(uintptr_t) "error", &error);
    run(1, 10000);
    CHECK(keep.counts.unasked == 1 && keep.counts.asked == 0 && requests == 1);
    control_close(control);
    end();
}

/* One that is stopped: the connection is taken by the kernel, and nobody reads. */
static void test_hangs(void)
{
    const int fd = listen_there(4);
    const int64_t from_ms = clock_ms();

    begin();
    run(1, 10000);
    CHECK(keep.counts.unasked == 1);
    CHECK(clock_ms() - from_ms >= 4900);
    CHECK(samples > 3);
    end();
    close(fd);
}

static int full;

/* At last there is room; it hangs up on whoever comes. */
static void make_room(void)
{
    if (samples >= 3)
        close(accept(full, NULL, NULL)); /* -1: nobody is there */
}

static void test_no_room(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int others[2];

    full = listen_there(0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/agent.sock", folder);
    others[0] = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(others[0], (struct sockaddr *)&address, sizeof(address)) == 0);
    others[1] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(connect(others[1], (struct sockaddr *)&address, sizeof(address)) != 0); /* it is full */
    begin();
    at_sample = make_room;
    run(1, 10000);
    CHECK(keep.counts.unasked == 1); /* it was hung up on, after there was room */
    CHECK(samples >= 3);
    end();
    close(others[0]);
    close(others[1]);
    close(full);
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");

    say_open("test-keep", "none");
    snprintf(folder, sizeof(folder), "%s/keep.XXXXXX", tmp ? tmp : "/tmp");
    CHECK(mkdtemp(folder) != NULL);
    test_no_recorder();
    test_taken();
    test_refused();
    test_hangs();
    test_no_room();
    snprintf(why, sizeof(why), "%.4000s/agent.sock", folder);
    (void)unlink(why);
    snprintf(why, sizeof(why), "%.4000s/agent.lock", folder);
    (void)unlink(why);
    CHECK(rmdir(folder) == 0);
    return check_status();
}
