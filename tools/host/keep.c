/*
 * Asks the recorder of this host to keep the last seconds.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "keep.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/control.h"
#include "tools/base/say.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* In the thread. {"id": ...} is the answer to a question that was taken. */
static void keep_run(void *context)
{
    struct host_keep *keep = context;
    const int64_t last_ms = clock_ms() - keep->now.from_ms;
    char request[64 + HOST_KEEP_WHY_BYTES];
    json_t *answer;

    (void)snprintf(request, sizeof(request), "keep-why %" PRId64 " %s", last_ms > 0 ? last_ms : 1,
                   keep->now.why);
    keep->problem.text[0] = '\0';
    answer = control_ask(keep->folder, "agent", request, &keep->problem);
    if (answer && !json_string_value(json_object_get(answer, "id")))
        error_set(&keep->problem, "the recorder gives an unexpected answer");
    json_decref(answer);
}

static void keep_begin(struct host_keep *keep);

/* A recorder that does not run is said once, until one does. */
static void keep_done(void *context)
{
    struct host_keep *keep = context;

    if (keep->problem.text[0]) {
        keep->counts.unasked++;
        say(keep->is_away ? BK5021 : BK5020, "%s: the recorder does not keep the last seconds: %s",
            keep->now.why, keep->problem.text);
    } else {
        keep->counts.asked++;
        say(BK5022, "%s: the recorder keeps the last seconds", keep->now.why);
    }
    keep->is_away = keep->problem.text[0] != '\0';
    keep->now = keep->next;
    keep->next.is_there = false;
    if (keep->now.is_there)
        keep_begin(keep);
}

static void keep_begin(struct host_keep *keep)
{
    if (thread_job_start(keep->loop, &keep->job))
        return;
    error_set(&keep->problem, "%s", strerror(errno));
    keep_done(keep);
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
        keep_begin(keep);
}

void host_keep_open(struct host_keep *keep, struct loop *loop, const char *folder)
{
    *keep = (struct host_keep){.loop = loop};
    (void)snprintf(keep->folder, sizeof(keep->folder), "%s", folder);
    keep->job = (struct thread_job){.run = keep_run, .done = keep_done, .context = keep};
}

void host_keep_close(struct host_keep *keep)
{
    thread_job_end(&keep->job);
}
