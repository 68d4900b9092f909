/*
 * When the rings are copied.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fetching.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "fetch.h"
#include "tools/base/say.h"
#include "tools/rings/ring_event.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_MS      120000
#define REST          12 /* times what a fetch took: 8 % of a core */
#define RETRY_MS      1000
#define FAILURES_MAX  3
#define MIB           (UINT64_C(1) << 20)
#define ROOM_MIN      (16 * MIB)
#define LAST_WAITS_MS 5000 /* so long all of a time waits for traces by name, at most */

struct fetching {
    struct agent *agent;
    struct asking *asking;
    struct kept *kept;
    const struct holding *holding;
    struct later *later; /* NULL: none */
    struct sampler *const *sampler;
    struct places *places;

    struct task task;
    int *fds; /* of the task */
    bool is_busy;
    bool is_last_call;
    uint64_t number;       /* of the kept folder */
    uint64_t place;        /* up to which it is fetched, */
    int64_t until_mono_ns; /* and the time */
    int64_t begun_mono_ns; /* of this process */
    int64_t begun_ms, next_ms;
    int64_t next_last_ms; /* not before all of a time is fetched again: traces by name may be */
    int64_t last_allowance, last_allowed_ms; /* bytes of these, keep-minute-bytes */
};

/* ---- what came of it ------------------------------------------------------------------------- */

static void fetching_set_rest(struct fetching *fetching, const struct fetch_result *result)
{
    const int64_t interval_ms =
        fetching->begun_ms + config_integer(fetching->agent->config, "fetch-interval-ms");
    const int64_t rest_ms = clock_ms() + (int64_t)(REST * result->cpu_ms);

    fetching->next_ms = interval_ms > rest_ms ? interval_ms : rest_ms;
    if (fetching->agent->pending.taken->last_ms == 0)
        return;
    fetching->last_allowance -= (int64_t)result->bytes_kept;
    fetching->next_last_ms = fetching->next_ms;
    fetching->next_ms = interval_ms;
}

/* Of what all of a time may take: keep-minute-bytes. */
static bool fetching_may_fetch_last(struct fetching *fetching)
{
    const int64_t most = config_integer(fetching->agent->config, "keep-minute-bytes");
    const int64_t passed_ms = clock_ms() - fetching->last_allowed_ms;

    fetching->last_allowance =
        passed_ms < 60000
            ? fetching->last_allowance + (int64_t)((double)most / 60000 * (double)passed_ms)
            : most;
    if (fetching->last_allowance > most)
        fetching->last_allowance = most;
    fetching->last_allowed_ms = clock_ms();
    return fetching->last_allowance > 0;
}

static void fetching_note_fetched(struct fetching *fetching, int64_t held_from_ns)
{
    for (const struct request *r = fetching->agent->pending.taken; r; r = r->next) {
        for (size_t i = 0; i < r->count; i++) {
            fetched_note(fetching->agent->fetched, r->traces[i].id, fetching->until_mono_ns,
                         fetching->place);
            fetched_note_held(fetching->agent->fetched, r->traces[i].id, held_from_ns);
        }
        if (r->last_ms > 0 && !r->service[0]) {
            const struct request_window window = request_window(r);

            fetched_note_window(fetching->agent->fetched,
                                (struct fetched_window){window.from_ns, window.until_ns});
        }
    }
    agent_save_fetched(fetching->agent);
}

static void fetching_count(struct fetching *fetching, const struct fetch_result *result)
{
    struct agent_totals *totals = &fetching->agent->totals;

    totals->fetches++;
    totals->fetched_bytes += result->bytes;
    totals->picked_bytes += result->bytes_kept;
    totals->rings_damaged += result->rings_damaged;
    if (result->is_limited)
        agent_say_state(fetching->agent, BK4034,
                        "there is no room for all that was wanted: only the newest is kept "
                        "(kept-max-bytes, or the disk is full)");
}

/* The rings may still have it at the next try. */
static void fetching_try_again(struct fetching *fetching, const char *problem)
{
    struct request *request;

    fetching->agent->totals.fetches_failed++;
    agent_say_state(fetching->agent, BK4033, problem);
    while ((request = fetching->agent->pending.taken) != NULL) {
        fetching->agent->pending.taken = request->next;
        request->next = NULL;
        if (++request->failures < FAILURES_MAX && !fetching->is_last_call) {
            request->due_ms = clock_ms() + RETRY_MS;
            fetching->agent->totals.traces_dropped +=
                pending_add(&fetching->agent->pending, request);
            continue;
        }
        asking_answer(fetching->asking, request, 0, NULL, problem);
        requests_free(request);
    }
}

static void fetching_take_result(struct fetching *fetching, const struct fetch_result *result)
{
    fetching_count(fetching, result);
    fetching_set_rest(fetching, result);
    fetching_note_fetched(fetching, result->held_from_ns);
    if (result->is_kept)
        kept_add(fetching->kept, fetching->number);
    else
        asking_answer(fetching->asking, fetching->agent->pending.taken, result->held_from_ns, NULL,
                      NULL);
    requests_free(fetching->agent->pending.taken);
    fetching->agent->pending.taken = NULL;
}

static void fetching_done(void *context, const void *task_result)
{
    struct fetching *fetching = context;
    const struct fetch_result *result = task_result;

    fetching->is_busy = false;
    for (size_t i = 0; i < fetching->task.fd_count; i++)
        (void)close(fetching->fds[i]);
    free(fetching->fds);
    fetching->fds = NULL;
    fetching->task.fd_count = 0;
    if (result && result->has_copied) {
        fetching_take_result(fetching, result);
    } else {
        fetching->next_ms = clock_ms() + RETRY_MS;
        kept_forget(fetching->kept, fetching->number);
        if (fetching->later)
            later_take_back(fetching->later, fetching->agent->pending.taken);
        fetching_try_again(fetching,
                           result ? result->error.text
                                  : "the process that copies the rings hangs, or was killed");
    }
    asking_save(fetching->asking);
    agent_save(fetching->agent);
    agent_step(fetching->agent);
}

/* ---- the order ------------------------------------------------------------------------------- */

static int fetching_by_number(const void *left, const void *right)
{
    const int *a = left, *b = right;

    return *a < *b ? -1 : *a > *b;
}

/* The task has descriptors of its own: a memory may go meanwhile. Returns false with errno set. */
static bool fetching_list_memories(struct fetching *fetching, struct fetch_order *order,
                                   struct fetch_memory *memories)
{
    for (const struct held *held = holding_first(fetching->holding); held; held = held->next) {
        const int fd = fcntl(held->memory.fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

        if (fd < 0)
            return false;
        fetching->fds[fetching->task.fd_count++] = fd;
        memories[order->memory_count++] =
            (struct fetch_memory){fd, held->user, held->number, held->memory};
    }
    order->memories = memories;
    qsort(fetching->fds, fetching->task.fd_count, sizeof(*fetching->fds), fetching_by_number);
    return true;
}

static bool fetching_start_task(struct fetching *fetching, const struct fetch_order *order,
                                const struct fetch_source *source)
{
    size_t size;
    char *bytes = fetch_order_bytes(order, source, &size);
    const bool has_begun = bytes && task_start(fetching->agent->loop, &fetching->task, &fetch_job,
                                               bytes, size, LIMIT_MS);

    free(bytes);
    return has_begun;
}

static bool fetching_begin(struct fetching *fetching, struct fetch_order *order,
                           const struct fetch_source *source)
{
    size_t count = 0;
    struct fetch_memory *memories;
    bool has_begun;

    for (const struct held *held = source->first; held; held = held->next)
        count++;
    memories = calloc(count + 1, sizeof(*memories));
    fetching->fds = calloc(count + 1, sizeof(*fetching->fds));
    has_begun = memories && fetching->fds && fetching_list_memories(fetching, order, memories);
    fetching->task.fds = fetching->fds;
    has_begun = has_begun && fetching_start_task(fetching, order, source);
    free(memories);
    return has_begun;
}

/* So much as there is room for. All of the rings is seldom wanted: what waits for the collector
 * does not have to go for it beyond half of kept-max-bytes. */
static uint64_t fetching_limit_bytes(struct fetching *fetching)
{
    const uint64_t half = (uint64_t)config_integer(fetching->agent->config, "kept-max-bytes") / 2;
    uint64_t most = ROOM_MIN, room;

    for (const struct held *held = holding_first(fetching->holding); held; held = held->next)
        most += held->memory.bytes;
    room = kept_make_room(fetching->kept, most < half ? most : half);
    return room < MIB ? MIB : room;
}

static void fetching_start(struct fetching *fetching, struct request *requests)
{
    struct fetch_order order = {.offset_ns = ring_clock_offset(),
                                .begun_mono_ns = fetching->begun_mono_ns,
                                .max_bytes = fetching_limit_bytes(fetching)};
    struct fetch_source source = {.requests = requests,
                                  .fetched = fetching->agent->fetched,
                                  .places = fetching->places,
                                  .first = holding_first(fetching->holding),
                                  .sampler = *fetching->sampler};
    struct buffer foreign = {.limit = 0};

    (void)snprintf(order.folder, sizeof(order.folder), "%s", fetching->agent->folder);
    fetching->agent->pending.taken = requests;
    fetching->begun_ms = clock_ms();
    source.place = fetching->place = places_take(fetching->places, source.first);
    /* no record before these places has a later time */
    order.until_mono_ns = fetching->until_mono_ns = clock_ns();
    order.number = fetching->number = kept_new_number(fetching->kept);
    fetching->task.done = fetching_done;
    fetching->task.context = fetching;
    if (fetching->later) {
        order.foreign_from_ns = later_held_from(fetching->later);
        later_take(fetching->later, requests, order.offset_ns, &foreign);
    }
    source.foreign = foreign.data;
    order.foreign_bytes = foreign.length;
    fetching->is_busy = fetching->place && fetching_begin(fetching, &order, &source);
    buffer_free(&foreign);
    if (!fetching->is_busy)
        fetching_done(fetching, NULL);
}

/* ---- what is next ---------------------------------------------------------------------------- */

static int64_t fetching_later(int64_t one_ms, int64_t other_ms)
{
    return one_ms > other_ms ? one_ms : other_ms;
}

/* Traces by name first; what they are wanted for is slow now. */
static void fetching_fetch(struct fetching *fetching, int64_t now_ms, int64_t named_ms,
                           int64_t last_ms)
{
    const bool is_last = last_ms <= now_ms &&
                         (named_ms > now_ms ||
                          now_ms - pending_due_ms(&fetching->agent->pending, true) > LAST_WAITS_MS);
    struct request *requests = pending_take(&fetching->agent->pending, now_ms, is_last);

    if (!is_last || requests->service[0] || fetching_may_fetch_last(fetching)) {
        fetching_start(fetching, requests);
        return;
    }
    asking_answer(fetching->asking, requests, 0, NULL,
                  "has no bytes left of keep-minute-bytes: try again in a minute");
    requests_free(requests);
}

int64_t fetching_step(struct fetching *fetching)
{
    const int64_t now_ms = clock_ms();
    int64_t due_ms, named_ms, last_ms;

    if (fetching->is_busy)
        return INT64_MAX;
    named_ms = fetching_later(pending_due_ms(&fetching->agent->pending, false), fetching->next_ms);
    last_ms = fetching_later(pending_due_ms(&fetching->agent->pending, true),
                             fetching_later(fetching->next_ms, fetching->next_last_ms));
    due_ms = named_ms < last_ms ? named_ms : last_ms;
    if (due_ms > now_ms)
        return due_ms;
    fetching_fetch(fetching, now_ms, named_ms, last_ms);
    return INT64_MAX;
}

bool fetching_is_busy(const struct fetching *fetching)
{
    return fetching->is_busy;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

struct fetching *fetching_new(struct agent *agent, struct asking *asking, struct kept *kept,
                              const struct holding *holding, struct later *later,
                              struct sampler *const *sampler)
{
    struct fetching *fetching = calloc(1, sizeof(*fetching));
    struct places *places = places_new();

    if (!fetching || !places) {
        free(fetching);
        places_free(places);
        return NULL;
    }
    *fetching = (struct fetching){.agent = agent,
                                  .asking = asking,
                                  .kept = kept,
                                  .holding = holding,
                                  .later = later,
                                  .sampler = sampler,
                                  .places = places,
                                  .begun_mono_ns = clock_ns()};
    return fetching;
}

void fetching_free(struct fetching *fetching)
{
    if (!fetching)
        return;
    places_free(fetching->places);
    free(fetching);
}

void fetching_end(struct fetching *fetching)
{
    pending_hurry(&fetching->agent->pending, clock_ms());
    fetching->next_ms = 0;
}

void fetching_last_call(struct fetching *fetching)
{
    fetching->is_last_call = true;
}
