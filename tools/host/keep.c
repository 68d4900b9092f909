/*
 * Asks the recorder of this host to keep the last seconds.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "keep.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/say.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MS 5000
#define RETRY_MS  100 /* while there is no room in the recorder's queue */

static void begin(struct host_keep *keep);

/* ---- the end of a question ------------------------------------------------------------------- */

static void hang_up(struct host_keep *keep)
{
    timer_clear(keep->loop, &keep->deadline);
    timer_clear(keep->loop, &keep->retry);
    if (keep->watched.fd < 0)
        return;
    loop_unwatch(keep->loop, &keep->watched);
    close(keep->watched.fd);
    keep->watched.fd = -1;
}

static void keep_end(struct host_keep *keep)
{
    hang_up(keep);
    keep->now = keep->next;
    keep->next.is_there = false;
    if (keep->now.is_there)
        begin(keep);
}

/* A recorder that does not run is said once, until one does. */
static void fail(struct host_keep *keep, const char *why)
{
    keep->counts.unasked++;
    say(keep->is_away ? BK5021 : BK5020,
        "%s: the recorder is not asked to keep the last seconds: %s", keep->now.why, why);
    keep->is_away = true;
    keep_end(keep);
}

static void is_late(void *context)
{
    fail(context, "it has not answered for 5 s");
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* {"id": ...} is a question that was taken, {"error": ...} one that was not. */
static void take_answer(struct host_keep *keep)
{
    json_t *json = json_loadb(keep->answer, keep->got, 0, NULL);
    const char *problem = json_string_value(json_object_get(json, "error"));
    char text[300];

    if (json_string_value(json_object_get(json, "id"))) {
        keep->counts.asked++;
        keep->is_away = false;
        say(BK5022, "%s: the recorder keeps the last seconds", keep->now.why);
        keep_end(keep);
    } else {
        (void)snprintf(text, sizeof(text), "it says: %s",
                       problem ? problem : "nothing that is understood");
        fail(keep, text);
    }
    json_decref(json);
}

static void ready(void *context, short events)
{
    struct host_keep *keep = context;
    const ssize_t n = recv(keep->watched.fd, keep->answer + keep->got,
                           sizeof(keep->answer) - keep->got, MSG_DONTWAIT);

    (void)events;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        keep->got += (size_t)n;
    if (n <= 0 || keep->got == sizeof(keep->answer))
        take_answer(keep);
}

/* ---- the question ---------------------------------------------------------------------------- */

/* So small that it has room in any socket. */
static bool send_question(struct host_keep *keep)
{
    const int64_t last_ms = clock_ms() - keep->now.from_ms;
    char line[64 + HOST_KEEP_WHY_BYTES];
    const int length = snprintf(line, sizeof(line), "keep-why %" PRId64 " %s\n",
                                last_ms > 0 ? last_ms : 1, keep->now.why);

    return send(keep->watched.fd, line, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT) == length;
}

/* Connects, or sets the timer to try it again. */
static void keep_ask(void *context)
{
    struct host_keep *keep = context;

    keep->watched.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (keep->watched.fd < 0) {
        fail(keep, strerror(errno));
        return;
    }
    loop_watch(keep->loop, &keep->watched);
    if (connect(keep->watched.fd, (struct sockaddr *)&keep->address, sizeof(keep->address)) == 0 &&
        send_question(keep))
        return;
    if (errno == EAGAIN) {
        loop_unwatch(keep->loop, &keep->watched);
        close(keep->watched.fd);
        keep->watched.fd = -1;
        timer_set(keep->loop, &keep->retry, RETRY_MS);
    } else {
        fail(keep, errno == ENOENT || errno == ECONNREFUSED ? "no `blkin record` runs here"
                                                            : strerror(errno));
    }
}

static void begin(struct host_keep *keep)
{
    keep->got = 0;
    timer_set(keep->loop, &keep->deadline, ANSWER_MS);
    keep_ask(keep);
}

void host_keep_ask(struct host_keep *keep, int64_t last_ms, const char *why)
{
    const int64_t from_ms = clock_ms() - last_ms;
    struct host_keep_question *question = keep->now.is_there ? &keep->next : &keep->now;

    if (question->is_there) {
        question->from_ms = from_ms < question->from_ms ? from_ms : question->from_ms;
        keep->counts.joined++;
        return;
    }
    question->is_there = true;
    question->from_ms = from_ms;
    (void)snprintf(question->why, sizeof(question->why), "%s", why);
    if (question == &keep->now)
        begin(keep);
}

/* ---- life ------------------------------------------------------------------------------------ */

void host_keep_open(struct host_keep *keep, struct loop *loop, const char *folder)
{
    *keep = (struct host_keep){.loop = loop};
    keep->address.sun_family = AF_UNIX;
    (void)snprintf(keep->address.sun_path, sizeof(keep->address.sun_path), "%s/record.sock",
                   folder);
    keep->watched = (struct watched){-1, POLLIN, ready, keep, NULL};
    keep->retry = (struct timer){.due = keep_ask, .context = keep};
    keep->deadline = (struct timer){.due = is_late, .context = keep};
}

void host_keep_close(struct host_keep *keep)
{
    hang_up(keep);
}
