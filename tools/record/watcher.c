/*
 * The watcher.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "watcher.h"

#include "fetch.h"
#include "lttng/session.h"
#include "monotonic.h"
#include "service/folders.h"
#include "service/privileges.h"
#include "service/say.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LATE_MS    15000 /* and a poll: then it hangs, with LTTng */
#define AGAIN_MS   1000
#define STALLED_MS 45000 /* how often it looks for that */

/* One write(2), which a pipe takes as a whole. */
struct record {
    bool is_alarm;
    union {
        struct alarm alarm;
        struct watcher_poll poll;
    } of;
};

/* ---- in the child ---------------------------------------------------------------------------- */

static void tell(const struct watcher *watcher, const struct record *record)
{
    if (write(watcher->pipe_end, record, sizeof(*record)) != (ssize_t)sizeof(*record))
        _exit(0);
}

static void tell_alarm(void *context, const struct alarm *alarm)
{
    struct record record;

    memset(&record, 0, sizeof(record)); /* the padding, too */
    record.is_alarm = true;
    record.of.alarm = *alarm;
    tell(context, &record);
}

/* What a new one finds missing, the one before may have seen: the agent knows. */
static void poll_once(struct watcher *watcher, struct alarm_reader *reader, int64_t *looked_ms,
                      bool *is_first)
{
    struct record record;
    struct watcher_poll *poll = &record.of.poll;
    const uint64_t begun_ns = (uint64_t)clock_ms() * 1000000;

    memset(&record, 0, sizeof(record));
    poll->is_well =
        tree_remove(watcher->folder) &&
        session_snapshot(watcher->session, watcher->folder, 0, &poll->problem) &&
        alarm_read(reader, watcher->folder, tell_alarm, watcher, &poll->lost, &poll->problem);
    if (*is_first)
        poll->lost = 0;
    *is_first &= !poll->is_well;
    if (poll->is_well && clock_ms() - *looked_ms >= STALLED_MS) {
        struct ring_look look;

        *looked_ms = clock_ms();
        poll->is_stalled =
            ring_look(watcher->folder, begun_ns, STALLED_NS, &look, &poll->problem) &&
            look.streams_stalled > 0;
    }
    (void)tree_remove(watcher->folder);
    tell(watcher, &record);
}

static int run_watcher(void *argument)
{
    struct watcher *watcher = argument;
    struct alarm_reader *reader = alarm_reader_new();
    int64_t looked_ms = clock_ms();
    bool is_first = true;

    (void)signal(SIGPIPE, SIG_IGN);
    privileges_give_up();
    while (reader) {
        const int64_t begun_ms = clock_ms();
        int64_t left_ms;

        poll_once(watcher, reader, &looked_ms, &is_first);
        left_ms = begun_ms + watcher->poll_ms - clock_ms();
        if (left_ms > 0)
            (void)nanosleep(&(struct timespec){left_ms / 1000, left_ms % 1000 * 1000000}, NULL);
    }
    return 1;
}

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
    if (watcher->is_stopping)
        return;
    say(BT_LOGGING_LEVEL_WARNING, "the watcher of the alarm has ended: again");
    timer_set(watcher->loop, &watcher->timer, AGAIN_MS);
}

static void is_late(void *context)
{
    struct watcher *watcher = context;

    if (watcher->child.pid) {
        say(BT_LOGGING_LEVEL_WARNING, "the watcher of the alarm hangs, with LTTng: it is killed");
        (void)kill(watcher->child.pid, SIGKILL);
        return;
    }
    watcher_start(watcher);
}

void watcher_start(struct watcher *watcher)
{
    int ends[2] = {-1, -1};

    watcher->is_stopping = false;
    watcher->begins(watcher->context);
    watcher->child = (struct child){.ended = ended, .context = watcher};
    watcher->timer = (struct timer){.due = is_late, .context = watcher};
    watcher->pipe = (struct watched){-1, POLLIN, ready, watcher, NULL};
    if (pipe2(ends, O_CLOEXEC) == 0) {
        watcher->pipe_end = ends[1];
        watcher->pipe.fd = ends[0];
        (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
        loop_watch(watcher->loop, &watcher->pipe);
    }
    if (watcher->pipe.fd < 0 ||
        !child_start(watcher->loop, &watcher->child, run_watcher, watcher)) {
        say(BT_LOGGING_LEVEL_ERROR, "cannot start a child: %s", strerror(errno));
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
    if (watcher->child.pid)
        (void)kill(watcher->child.pid, SIGKILL);
}
