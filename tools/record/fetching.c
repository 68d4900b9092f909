/*
 * The agent's snapshots: when one is taken, what comes of it, and how the ring is.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "agent.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/say.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_MS      120000
#define REST          12 /* times what a snapshot took: 8 % of a core */
#define LOOK_MS       45000
#define LOOK_BYTES    (UINT64_C(2) << 20) /* of each stream */
#define RETRY_MS      1000
#define FAILURES_MAX  3
#define MIB           (UINT64_C(1) << 20)
#define SUBBUFS_LEAST 64
#define LAST_WAITS_MS 5000 /* so long all of a time waits for traces by name, at most */

/* ---- the ring's size ------------------------------------------------------------------------- */

static uint64_t cpus(void)
{
    const long count = sysconf(_SC_NPROCESSORS_CONF);

    return count > 0 ? (uint64_t)count : 1;
}

/* The largest power of two that is not above: LTTng wants one. */
static uint64_t power_of_two(uint64_t value)
{
    uint64_t power = 1;

    while (power <= value / 2)
        power *= 2;
    return power;
}

static uint64_t largest(const struct agent *agent)
{
    const uint64_t bytes = (uint64_t)config_integer(agent->config, "memory-bytes");
    const uint64_t count = power_of_two(bytes / MIB / cpus());

    return count > SUBBUFS_LEAST ? count : SUBBUFS_LEAST;
}

/* With seconds= it begins small, and remembers over restarts how large it has grown. */
uint64_t fetching_ring_size(const struct agent *agent)
{
    const uint64_t most = largest(agent), known = agent->totals.subbuf_count;

    if (config_integer(agent->config, "seconds") == 0)
        return most;
    return known < SUBBUFS_LEAST ? SUBBUFS_LEAST : known < most ? known : most;
}

/* Does it hold as many seconds as it must, at the rate of now? A quarter more, as CPUs differ. */
static void look_at_size(struct agent *agent)
{
    const uint64_t seconds = (uint64_t)config_integer(agent->config, "seconds");
    const uint64_t streams = agent->look.streams ? agent->look.streams : 1;
    const uint64_t wanted = agent->look.bytes_per_s / streams * seconds * 5 / 4 / MIB;
    uint64_t size = fetching_ring_size(agent);
    char text[256];

    if (!seconds || wanted <= size)
        return;
    while (size < wanted && size < largest(agent))
        size *= 2;
    if (size > fetching_ring_size(agent)) {
        agent->totals.subbuf_count = size;
        agent->anew = ANEW_LARGER;
        say(BK4030,
            "the ring holds less than %" PRIu64 " s of what is recorded now: it is made anew with "
            "%" PRIu64 " MiB per CPU and user",
            seconds, size);
        return;
    }
    (void)snprintf(text, sizeof(text),
                   "the ring holds less than %" PRIu64
                   " s of what is recorded now, and memory-bytes "
                   "allows no more",
                   seconds);
    agent_say_state(agent, BK4031, text);
}

static void take_look(struct agent *agent, const struct ring_look *look)
{
    const int64_t now_ms = clock_ms();
    const bool is_stalled = stall_is_sure(&agent->stall, look, now_ms);

    agent->look = *look;
    agent->next_look_ms = now_ms + (agent->stall.since_ms ? STALL_AGAIN_MS : LOOK_MS);
    if (agent->anew != ANEW_NOT) {
        return;
    } else if (is_stalled) {
        say(BK4032,
            "%" PRIu64 " of %" PRIu64 " streams of the ring stand still, as after a program was "
            "killed while it recorded: it is made anew",
            look->streams_stalled, look->streams);
        agent->anew = ANEW_STALLED;
    } else {
        look_at_size(agent);
    }
}

void fetching_ring_is_new(struct agent *agent)
{
    agent->ring_mono_ns = clock_ns();
    agent->held_ns = 0;
    agent->stall.since_ms = 0;
    agent->anew = ANEW_NOT;
    fetched_ring_is_new(agent->fetched);
    agent_save_fetched(agent);
}

/* What waits is fetched before; what comes meanwhile is not. */
static void make_anew(struct agent *agent)
{
    if (agent->pending.list && !agent->has_hurried) {
        agent->has_hurried = true;
        pending_hurry(&agent->pending, clock_ms());
        agent->next_fetch_ms = agent->next_last_ms = 0;
        return;
    }
    agent->has_hurried = false;
    if (agent->anew == ANEW_STALLED)
        agent->totals.rings_stalled++;
    else
        agent->totals.rings_grown++;
    agent->anew = ANEW_NOT;
    agent->sessions.specs[SESSION_RING].subbuf_count = fetching_ring_size(agent);
    agent->is_remaking = true;
    sessions_make_anew(&agent->sessions, SESSION_RING);
}

/* ---- what came of a snapshot ----------------------------------------------------------------- */

/* The consumer daemon's share is not ours to see: the call's time, or what the bytes take at most.
 */
static void set_rest(struct agent *agent, const struct fetch_result *result)
{
    const uint64_t most_ms = result->picked.bytes / MIB * 7 / 10 + 1;
    const uint64_t snapshot_ms = result->snapshot_ms < most_ms ? result->snapshot_ms : most_ms;
    const int64_t interval_ms =
        agent->fetch_begun_ms + config_integer(agent->config, "snapshot-interval-ms");
    const int64_t rest_ms = clock_ms() + (int64_t)(REST * (result->cpu_ms + snapshot_ms));

    agent->next_fetch_ms = interval_ms > rest_ms ? interval_ms : rest_ms;
    if (agent->fetching->last_ms == 0)
        return;
    agent->last_allowance -= (int64_t)result->picked.bytes_kept;
    agent->next_last_ms = agent->next_fetch_ms;
    agent->next_fetch_ms = interval_ms;
}

/* Of what all of a time may take: keep-minute-bytes. */
static bool may_fetch_last(struct agent *agent)
{
    const int64_t most = config_integer(agent->config, "keep-minute-bytes");
    const int64_t passed_ms = clock_ms() - agent->last_allowed_ms;

    agent->last_allowance =
        passed_ms < 60000
            ? agent->last_allowance + (int64_t)((double)most / 60000 * (double)passed_ms)
            : most;
    if (agent->last_allowance > most)
        agent->last_allowance = most;
    agent->last_allowed_ms = clock_ms();
    return agent->last_allowance > 0;
}

static void note_fetched(struct agent *agent, const struct fetch_result *result)
{
    for (const struct request *r = agent->fetching; r; r = r->next) {
        for (size_t i = 0; i < r->count; i++)
            fetched_note(agent->fetched, r->traces[i].id, result->until_ns, result->until_mono_ns);
        if (r->last_ms > 0 && !r->service[0]) {
            const struct request_window window = request_window(r);

            fetched_note_window(agent->fetched,
                                (struct fetched_window){window.from_ns + result->offset_ns,
                                                        window.until_ns + result->offset_ns});
        }
    }
    agent_save_fetched(agent);
}

static void count_snapshot(struct agent *agent, const struct fetch_result *result)
{
    agent->totals.snapshots++;
    agent->totals.snapshot_bytes += result->picked.bytes;
    agent->totals.picked_bytes += result->picked.bytes_kept;
    agent->totals.packets_damaged += result->picked.packets_damaged;
    if (result->has_picked) {
        agent->snapshot_bytes = result->picked.bytes;
        agent->held_ns = result->until_ns - result->held_from_ns;
    }
}

/* Some of it may be there at the next try, unless the ring is gone. */
static void try_again(struct agent *agent, const char *problem)
{
    struct request *request;

    agent->totals.snapshots_failed++;
    agent_say_state(agent, BK4033, problem);
    while ((request = agent->fetching) != NULL) {
        agent->fetching = request->next;
        request->next = NULL;
        if (++request->failures < FAILURES_MAX && !agent->is_last_call) {
            request->due_ms = clock_ms() + RETRY_MS;
            agent->totals.traces_dropped += pending_add(&agent->pending, request);
            continue;
        }
        asking_answer(agent, request, 0, NULL, problem);
        requests_free(request);
    }
    sessions_look(&agent->sessions);
}

static void fetched(void *context, const void *task_result)
{
    struct agent *agent = context;
    const struct fetch_result *result = task_result;

    agent->is_fetching = false;
    agent->next_look_ms = clock_ms() + LOOK_MS;
    if (!result || !result->has_snapshot || (agent->fetching && !result->has_picked)) {
        agent->next_fetch_ms = clock_ms() + RETRY_MS;
        agent->look.streams = 0; /* there may be more than its limit allowed for */
        try_again(agent, result ? result->error.text : "the snapshot has failed, or LTTng hangs");
    } else {
        if (result->has_look)
            take_look(agent, &result->look);
        if (agent->fetching) {
            count_snapshot(agent, result);
            set_rest(agent, result);
            note_fetched(agent, result);
            if (result->is_kept)
                kept_add(&agent->kept, agent->fetch_number);
            else
                asking_answer(agent, agent->fetching, result->held_from_ns, NULL,
                              result->error.text[0] ? result->error.text : NULL);
        }
        requests_free(agent->fetching);
        agent->fetching = NULL;
    }
    asking_save(agent);
    agent_save(agent);
    agent_step(agent);
}

/* ---- taking one ------------------------------------------------------------------------------ */

/* At most what the ring can hold; on a machine with many idle CPUs it is much less. */
static uint64_t expected_bytes(const struct agent *agent, uint64_t streams)
{
    const uint64_t ring = agent->sessions.specs[SESSION_RING].subbuf_count * MIB * streams;
    const uint64_t last = agent->snapshot_bytes;

    return last && 2 * last < ring ? 2 * last : ring;
}

/* So much as there is room for; 0: all. */
static uint64_t limit_bytes(struct agent *agent)
{
    const uint64_t streams = agent->look.streams ? agent->look.streams : cpus();
    const uint64_t expected = expected_bytes(agent, streams);
    /* what is picked of it is at most as much again */
    const uint64_t room = kept_make_room(&agent->kept, 2 * expected,
                                         (uint64_t)config_integer(agent->config, "kept-max-bytes"));
    char text[256];

    if (room >= 2 * expected)
        return 0;
    (void)snprintf(text, sizeof(text),
                   "there is room for %" PRIu64 " MiB of snapshots, and one may have %" PRIu64
                   " MiB: only the newest is looked at (kept-max-bytes, or the disk is full)",
                   room / MIB, expected / MIB);
    agent_say_state(agent, BK4034, text);
    return room / 2 > streams * LOOK_BYTES ? room / 2 : streams * LOOK_BYTES;
}

/* LTTng refuses a limit that is less than a sub-buffer for each stream, and there may be more of
 * them than at the last look: as many users have two. */
static uint64_t look_bytes(const struct agent *agent)
{
    return 2 * agent->look.streams * LOOK_BYTES; /* none known: all */
}

static void start_fetch(struct agent *agent, struct request *requests)
{
    struct fetch_order order = {.session = agent->sessions.specs[SESSION_RING].name,
                                .folder = agent->folder,
                                .ring_mono_ns = agent->ring_mono_ns,
                                .requests = requests,
                                .fetched = agent->fetched};
    char *bytes;
    size_t size;

    if (agent->sessions.specs[SESSION_HOST].events[0])
        order.host_session = agent->sessions.specs[SESSION_HOST].name;
    order.max_bytes = requests ? limit_bytes(agent) : look_bytes(agent);
    order.number = agent->fetch_number = agent->kept.next_number++;
    agent->fetching = requests;
    agent->fetch_begun_ms = clock_ms();
    agent->fetch_task.done = fetched;
    agent->fetch_task.context = agent;
    bytes = fetch_order_bytes(&order, &size);
    agent->is_fetching =
        bytes && task_start(agent->loop, &agent->fetch_task, &fetch_job, bytes, size, LIMIT_MS);
    free(bytes);
    if (!agent->is_fetching)
        fetched(agent, NULL);
}

static int64_t later(int64_t one_ms, int64_t other_ms)
{
    return one_ms > other_ms ? one_ms : other_ms;
}

/* Traces by name first; what they are wanted for is slow now. */
static void fetch_due(struct agent *agent, int64_t now_ms, int64_t named_ms, int64_t last_ms)
{
    const bool is_last =
        last_ms <= now_ms &&
        (named_ms > now_ms || now_ms - pending_due_ms(&agent->pending, true) > LAST_WAITS_MS);
    struct request *requests = pending_take(&agent->pending, now_ms, is_last);

    if (!is_last || requests->service[0] || may_fetch_last(agent)) {
        start_fetch(agent, requests);
        return;
    }
    asking_answer(agent, requests, 0, NULL,
                  "sends no more of whole times in this minute (keep-minute-bytes)");
    requests_free(requests);
}

int64_t fetching_step(struct agent *agent)
{
    const int64_t now_ms = clock_ms();
    int64_t due_ms, named_ms, last_ms;

    if (agent->is_fetching || !agent->has_looked)
        return INT64_MAX;
    if (agent->anew != ANEW_NOT && agent->last.state == RECORDS)
        make_anew(agent);
    named_ms = later(pending_due_ms(&agent->pending, false), agent->next_fetch_ms);
    last_ms = later(pending_due_ms(&agent->pending, true),
                    later(agent->next_fetch_ms, agent->next_last_ms));
    due_ms = named_ms < last_ms ? named_ms : last_ms;
    if (due_ms <= now_ms) {
        fetch_due(agent, now_ms, named_ms, last_ms);
        return INT64_MAX;
    }
    if (agent->next_look_ms <= now_ms && agent->last.state == RECORDS && !agent->is_stopping) {
        start_fetch(agent, NULL);
        return INT64_MAX;
    }
    return agent->next_look_ms < due_ms && agent->last.state == RECORDS ? agent->next_look_ms
                                                                        : due_ms;
}
