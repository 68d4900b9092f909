/*
 * The watcher.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "watcher.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "fetch.h"
#include "tools/base/folders.h"
#include "tools/base/privileges.h"
#include "tools/base/say.h"
#include "tools/lttng/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LATE_MS  15000 /* and a poll: then it hangs, with LTTng */
#define END_MS   2000  /* for the poll that is under way */
#define AGAIN_MS 1000
#define LOOK_MS  45000 /* how often it looks whether the session stands still */

/* One write(2), which a pipe takes as a whole. */
struct record {
    bool is_alarm;
    union {
        struct alarm alarm;
        struct watcher_poll poll;
    } of;
};

/* ---- in the child ---------------------------------------------------------------------------- */

struct watcher_order {
    char session[256], folder[4096];
    int64_t poll_ms;
    struct heard heard;
};

static void tell(const struct record *record)
{
    if (write(STDOUT_FILENO, record, sizeof(*record)) != (ssize_t)sizeof(*record))
        _exit(0);
}

static void tell_alarm(void *context, const struct alarm *alarm)
{
    struct record record;

    (void)context;
    memset(&record, 0, sizeof(record)); /* the padding, too */
    record.is_alarm = true;
    record.of.alarm = *alarm;
    tell(&record);
}

/* What a run of polls knows. */
struct polling {
    struct alarm_reader *reader;
    bool is_first;
    int64_t next_look_ms;
    struct stall stall;
};

/* Returns whether it stands still. */
static bool watcher_look_at(const char *folder, struct polling *polling, uint64_t begun_ns)
{
    const int64_t now_ms = clock_ms();
    struct ring_look look;
    struct error ignored;
    bool is_stalled;

    if (now_ms < polling->next_look_ms || !ring_look(folder, begun_ns, STALLED_NS, &look, &ignored))
        return false;
    is_stalled = stall_is_sure(&polling->stall, &look, now_ms);
    if (is_stalled) /* it is made anew */
        polling->stall.since_ms = 0;
    polling->next_look_ms = now_ms + (polling->stall.since_ms ? STALL_AGAIN_MS : LOOK_MS);
    return is_stalled;
}

/* What a new one finds missing, the one before may have seen: the agent knows. */
static void poll_once(const struct watcher_order *order, struct polling *polling)
{
    struct record record;
    struct watcher_poll *poll = &record.of.poll;
    const uint64_t begun_ns = (uint64_t)clock_ms() * 1000000;

    memset(&record, 0, sizeof(record));
    poll->is_well =
        tree_remove(order->folder) &&
        session_snapshot(order->session, order->folder, 0, &poll->problem) &&
        alarm_read(polling->reader, order->folder, tell_alarm, NULL, &poll->lost, &poll->problem);
    if (poll->is_well)
        poll->newer = alarm_reader_newer(polling->reader);
    if (polling->is_first)
        poll->lost = 0;
    polling->is_first &= !poll->is_well;
    poll->is_stalled = poll->is_well && watcher_look_at(order->folder, polling, begun_ns);
    (void)tree_remove(order->folder);
    tell(&record);
}

static volatile sig_atomic_t is_told_to_end;

static void take_end(int number)
{
    (void)number;
    is_told_to_end = 1;
}

/* Not in the middle of a poll: LTTng would go on, and leave its snapshot to nobody. */
static int watcher_run(const void *bytes, size_t size)
{
    const struct sigaction on_end = {.sa_handler = take_end, .sa_flags = SA_RESTART};
    const struct watcher_order *order = bytes;
    struct polling polling = {alarm_reader_new(), true, clock_ms() + LOOK_MS, {0}};

    (void)size;
    (void)sigaction(SIGTERM, &on_end, NULL);
    job_unblock_end();
    privileges_give_up();
    for (size_t i = 0; polling.reader && i < order->heard.count; i++)
        alarm_reader_knows(polling.reader, order->heard.programs[i].pid,
                           order->heard.programs[i].last);
    while (polling.reader && !is_told_to_end) {
        const int64_t begun_ms = clock_ms();
        int64_t left_ms;

        poll_once(order, &polling);
        left_ms = begun_ms + order->poll_ms - clock_ms();
        if (left_ms > 0 && !is_told_to_end)
            (void)nanosleep(&(struct timespec){left_ms / 1000, left_ms % 1000 * 1000000}, NULL);
    }
    return 1;
}

const struct job watcher_job = {
    .name = "record-watcher", .run = watcher_run, .ends_in_order = true};

/* ---- in the agent ---------------------------------------------------------------------------- */

static void close_pipe(struct watcher *watcher)
{
    if (watcher->pipe.fd < 0)
        return;
    loop_unwatch(watcher->loop, &watcher->pipe);
    close(watcher->pipe.fd);
    watcher->pipe.fd = -1;
}

static void ready(void *context, short events)
{
    struct watcher *watcher = context;
    struct record record;
    ssize_t n = 0;

    (void)events;
    for (int i = 0; i < 256 && watcher->pipe.fd >= 0; i++) {
        n = read(watcher->pipe.fd, &record, sizeof(record));
        if (n != (ssize_t)sizeof(record))
            break;
        if (record.is_alarm) {
            watcher->alarm(watcher->context, &record.of.alarm);
        } else {
            timer_set(watcher->loop, &watcher->timer, watcher->poll_ms + LATE_MS);
            watcher->polled(watcher->context, &record.of.poll);
        }
    }
    if (n == 0)
        close_pipe(watcher);
}

static void ended(void *context, int status)
{
    struct watcher *watcher = context;

    (void)status;
    ready(watcher, 0); /* what it has written */
    close_pipe(watcher);
    if (watcher->is_stopping) {
        timer_clear(watcher->loop, &watcher->timer);
        watcher->over(watcher->context);
        return;
    }
    say(BK4022, "the watcher of the alarm has ended: again");
    timer_set(watcher->loop, &watcher->timer, AGAIN_MS);
}

static void watcher_is_late(void *context)
{
    struct watcher *watcher = context;

    if (watcher->child.pid) {
        say(BK4023, "the watcher of the alarm hangs, with LTTng: it is killed");
        (void)kill(watcher->child.pid, SIGKILL);
        return;
    }
    watcher_start(watcher);
}

static bool start_child(struct watcher *watcher, int output)
{
    struct watcher_order order = {.poll_ms = watcher->poll_ms, .heard = *watcher->heard};

    (void)snprintf(order.session, sizeof(order.session), "%s", watcher->session);
    (void)snprintf(order.folder, sizeof(order.folder), "%s", watcher->folder);
    return child_start(
        watcher->loop, &watcher->child,
        &(struct child_order){
            .job = &watcher_job, .bytes = &order, .size = sizeof(order), .output = output});
}

void watcher_start(struct watcher *watcher)
{
    int ends[2] = {-1, -1};

    watcher->is_stopping = false;
    watcher->begins(watcher->context);
    watcher->child = (struct child){.ended = ended, .context = watcher};
    watcher->timer = (struct timer){.due = watcher_is_late, .context = watcher};
    watcher->pipe = (struct watched){-1, POLLIN, ready, watcher, NULL};
    if (pipe2(ends, O_CLOEXEC) == 0) {
        watcher->pipe.fd = ends[0];
        (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
        loop_watch(watcher->loop, &watcher->pipe);
    }
    if (watcher->pipe.fd < 0 || !start_child(watcher, ends[1])) {
        say(BK4024, "cannot start a child: %s", strerror(errno));
        close_pipe(watcher);
    }
    if (ends[1] >= 0)
        close(ends[1]);
    timer_set(watcher->loop, &watcher->timer,
              watcher->child.pid ? watcher->poll_ms + LATE_MS : AGAIN_MS);
}

void watcher_stop(struct watcher *watcher)
{
    watcher->is_stopping = true;
    timer_clear(watcher->loop, &watcher->timer);
    if (!watcher->child.pid)
        return;
    (void)kill(watcher->child.pid, SIGTERM);
    timer_set(watcher->loop, &watcher->timer, END_MS);
}
