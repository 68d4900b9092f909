/*
 * The agent's snapshots: when one is taken, what comes of it, and how the ring is.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fetching.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "fetch.h"
#include "tools/base/say.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define LIMIT_MS      120000
#define REST          12 /* times what a snapshot took: 8 % of a core */
#define LOOK_MS       45000
#define LOOK_BYTES    (UINT64_C(2) << 20) /* of each stream */
#define RETRY_MS      1000
#define FAILURES_MAX  3
#define MIB           (UINT64_C(1) << 20)
#define LAST_WAITS_MS 5000 /* so long all of a time waits for traces by name, at most */

/* Why the ring is to be made anew. */
enum anew { ANEW_NOT, ANEW_STALLED, ANEW_LARGER };

struct fetching {
    struct agent *agent;
    struct asking *asking;
    struct kept *kept;
    struct recording *recording;

    struct task task;
    bool is_busy;
    bool is_ending, is_last_call;
    uint64_t number; /* of the kept folder */
    int64_t begun_ms, next_ms, next_look_ms;
    int64_t next_last_ms; /* not before all of a time is fetched again: traces by name may be */
    int64_t last_allowance, last_allowed_ms; /* bytes of these, keep-minute-bytes */

    enum anew anew;
    struct stall stall;
    bool has_hurried;        /* what waited is fetched before that */
    int64_t ring_mono_ns;    /* it was made then; 0: it was there */
    struct ring_look look;   /* the last one */
    int64_t held_ns;         /* so far back the last whole snapshot reached; 0: none yet */
    uint64_t snapshot_bytes; /* of it */
};

/* ---- how the ring is ------------------------------------------------------------------------- */

/* Does it hold as many seconds as it must, at the rate of now? A quarter more, as CPUs differ. */
static void fetching_look_at_size(struct fetching *fetching)
{
    const uint64_t seconds = (uint64_t)config_integer(fetching->agent->config, "seconds");
    const uint64_t streams = fetching->look.streams ? fetching->look.streams : 1;
    const uint64_t wanted = fetching->look.bytes_per_s / streams * seconds * 5 / 4 / MIB;
    uint64_t size = recording_ring_size(fetching->agent);
    char text[256];

    if (!seconds || wanted <= size)
        return;
    while (size < wanted && size < recording_ring_size_max(fetching->agent))
        size *= 2;
    if (size > recording_ring_size(fetching->agent)) {
        fetching->agent->totals.subbuf_count = size;
        fetching->anew = ANEW_LARGER;
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
    agent_say_state(fetching->agent, BK4031, text);
}

static void fetching_take_look(struct fetching *fetching, const struct ring_look *look)
{
    const int64_t now_ms = clock_ms();
    const bool is_stalled = stall_is_sure(&fetching->stall, look, now_ms);

    fetching->look = *look;
    fetching->next_look_ms = now_ms + (fetching->stall.since_ms ? STALL_AGAIN_MS : LOOK_MS);
    if (fetching->anew != ANEW_NOT) {
        return;
    } else if (is_stalled) {
        say(BK4032,
            "%" PRIu64 " of %" PRIu64 " streams of the ring stand still, as after a program was "
            "killed while it recorded: it is made anew",
            look->streams_stalled, look->streams);
        fetching->anew = ANEW_STALLED;
    } else {
        fetching_look_at_size(fetching);
    }
}

void fetching_ring_is_new(struct fetching *fetching)
{
    fetching->ring_mono_ns = clock_ns();
    fetching->held_ns = 0;
    fetching->stall.since_ms = 0;
    fetching->anew = ANEW_NOT;
    fetched_ring_is_new(fetching->agent->fetched);
    agent_save_fetched(fetching->agent);
}

/* What waits is fetched before; what comes meanwhile is not. */
static void fetching_make_anew(struct fetching *fetching)
{
    if (fetching->agent->pending.list && !fetching->has_hurried) {
        fetching->has_hurried = true;
        pending_hurry(&fetching->agent->pending, clock_ms());
        fetching->next_ms = fetching->next_last_ms = 0;
        return;
    }
    fetching->has_hurried = false;
    if (fetching->anew == ANEW_STALLED)
        fetching->agent->totals.rings_stalled++;
    else
        fetching->agent->totals.rings_grown++;
    fetching->anew = ANEW_NOT;
    recording_make_anew(fetching->recording, SESSION_RING);
}

/* ---- what came of a snapshot ----------------------------------------------------------------- */

/* The consumer daemon's share is not ours to see: the call's time, or what the bytes take at most.
 */
static void fetching_set_rest(struct fetching *fetching, const struct fetch_result *result)
{
    const uint64_t most_ms = result->picked.bytes / MIB * 7 / 10 + 1;
    const uint64_t snapshot_ms = result->snapshot_ms < most_ms ? result->snapshot_ms : most_ms;
    const int64_t interval_ms =
        fetching->begun_ms + config_integer(fetching->agent->config, "snapshot-interval-ms");
    const int64_t rest_ms = clock_ms() + (int64_t)(REST * (result->cpu_ms + snapshot_ms));

    fetching->next_ms = interval_ms > rest_ms ? interval_ms : rest_ms;
    if (fetching->agent->pending.taken->last_ms == 0)
        return;
    fetching->last_allowance -= (int64_t)result->picked.bytes_kept;
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

static void fetching_note_fetched(struct fetching *fetching, const struct fetch_result *result)
{
    for (const struct request *r = fetching->agent->pending.taken; r; r = r->next) {
        for (size_t i = 0; i < r->count; i++)
            fetched_note(fetching->agent->fetched, r->traces[i].id, result->until_ns,
                         result->until_mono_ns);
        if (r->last_ms > 0 && !r->service[0]) {
            const struct request_window window = request_window(r);

            fetched_note_window(fetching->agent->fetched,
                                (struct fetched_window){window.from_ns + result->offset_ns,
                                                        window.until_ns + result->offset_ns});
        }
    }
    agent_save_fetched(fetching->agent);
}

static void fetching_count_snapshot(struct fetching *fetching, const struct fetch_result *result)
{
    fetching->agent->totals.snapshots++;
    fetching->agent->totals.snapshot_bytes += result->picked.bytes;
    fetching->agent->totals.picked_bytes += result->picked.bytes_kept;
    fetching->agent->totals.packets_damaged += result->picked.packets_damaged;
    if (result->has_picked) {
        fetching->snapshot_bytes = result->picked.bytes;
        fetching->held_ns = result->until_ns - result->held_from_ns;
    }
}

/* Some of it may be there at the next try, unless the ring is gone. */
static void fetching_try_again(struct fetching *fetching, const char *problem)
{
    struct request *request;

    fetching->agent->totals.snapshots_failed++;
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
    recording_look(fetching->recording);
}

static void fetching_done(void *context, const void *task_result)
{
    struct fetching *fetching = context;
    const struct fetch_result *result = task_result;

    fetching->is_busy = false;
    fetching->next_look_ms = clock_ms() + LOOK_MS;
    if (!result || !result->has_snapshot ||
        (fetching->agent->pending.taken && !result->has_picked)) {
        fetching->next_ms = clock_ms() + RETRY_MS;
        fetching->look.streams = 0; /* there may be more than its limit allowed for */
        fetching_try_again(fetching,
                           result ? result->error.text : "the snapshot has failed, or LTTng hangs");
    } else {
        if (result->has_look)
            fetching_take_look(fetching, &result->look);
        if (fetching->agent->pending.taken) {
            fetching_count_snapshot(fetching, result);
            fetching_set_rest(fetching, result);
            fetching_note_fetched(fetching, result);
            if (result->is_kept)
                kept_add(fetching->kept, fetching->number);
            else
                asking_answer(fetching->asking, fetching->agent->pending.taken,
                              result->held_from_ns, NULL,
                              result->error.text[0] ? result->error.text : NULL);
        }
        requests_free(fetching->agent->pending.taken);
        fetching->agent->pending.taken = NULL;
    }
    asking_save(fetching->asking);
    agent_save(fetching->agent);
    agent_step(fetching->agent);
}

/* ---- taking one ------------------------------------------------------------------------------ */

/* At most what the ring can hold; on a machine with many idle CPUs it is much less. */
static uint64_t fetching_expected_bytes(const struct fetching *fetching, uint64_t streams)
{
    const uint64_t ring =
        recording_session(fetching->recording, SESSION_RING)->subbuf_count * MIB * streams;
    const uint64_t last = fetching->snapshot_bytes;

    return last && 2 * last < ring ? 2 * last : ring;
}

/* So much as there is room for; 0: all. */
static uint64_t fetching_limit_bytes(struct fetching *fetching)
{
    const uint64_t streams = fetching->look.streams ? fetching->look.streams : recording_cpus();
    const uint64_t expected = fetching_expected_bytes(fetching, streams);
    /* what is picked of it is at most as much again */
    const uint64_t room = kept_make_room(fetching->kept, 2 * expected);
    char text[256];

    if (room >= 2 * expected)
        return 0;
    (void)snprintf(text, sizeof(text),
                   "there is room for %" PRIu64 " MiB of snapshots, and one may have %" PRIu64
                   " MiB: only the newest is looked at (kept-max-bytes, or the disk is full)",
                   room / MIB, expected / MIB);
    agent_say_state(fetching->agent, BK4034, text);
    return room / 2 > streams * LOOK_BYTES ? room / 2 : streams * LOOK_BYTES;
}

/* LTTng refuses a limit that is less than a sub-buffer for each stream, and there may be more of
 * them than at the last look: as many users have two. */
static uint64_t fetching_look_bytes(const struct fetching *fetching)
{
    return 2 * fetching->look.streams * LOOK_BYTES; /* none known: all */
}

static void fetching_start(struct fetching *fetching, struct request *requests)
{
    const struct session_spec *host = recording_session(fetching->recording, SESSION_HOST);
    struct fetch_order order = {.session =
                                    recording_session(fetching->recording, SESSION_RING)->name,
                                .folder = fetching->agent->folder,
                                .ring_mono_ns = fetching->ring_mono_ns,
                                .requests = requests,
                                .fetched = fetching->agent->fetched};
    char *bytes;
    size_t size;

    if (host->events[0])
        order.host_session = host->name;
    order.max_bytes = requests ? fetching_limit_bytes(fetching) : fetching_look_bytes(fetching);
    order.number = fetching->number = kept_new_number(fetching->kept);
    fetching->agent->pending.taken = requests;
    fetching->begun_ms = clock_ms();
    fetching->task.done = fetching_done;
    fetching->task.context = fetching;
    bytes = fetch_order_bytes(&order, &size);
    fetching->is_busy = bytes && task_start(fetching->agent->loop, &fetching->task, &fetch_job,
                                            bytes, size, LIMIT_MS);
    free(bytes);
    if (!fetching->is_busy)
        fetching_done(fetching, NULL);
}

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
                  "sends no more of whole times in this minute (keep-minute-bytes)");
    requests_free(requests);
}

int64_t fetching_step(struct fetching *fetching)
{
    const int64_t now_ms = clock_ms();
    int64_t due_ms, named_ms, last_ms;

    if (fetching->is_busy || !recording_report(fetching->recording))
        return INT64_MAX;
    if (fetching->anew != ANEW_NOT && recording_is_on(fetching->recording))
        fetching_make_anew(fetching);
    named_ms = fetching_later(pending_due_ms(&fetching->agent->pending, false), fetching->next_ms);
    last_ms = fetching_later(pending_due_ms(&fetching->agent->pending, true),
                             fetching_later(fetching->next_ms, fetching->next_last_ms));
    due_ms = named_ms < last_ms ? named_ms : last_ms;
    if (due_ms <= now_ms) {
        fetching_fetch(fetching, now_ms, named_ms, last_ms);
        return INT64_MAX;
    }
    if (fetching->next_look_ms <= now_ms && recording_is_on(fetching->recording) &&
        !fetching->is_ending) {
        fetching_start(fetching, NULL);
        return INT64_MAX;
    }
    return fetching->next_look_ms < due_ms && recording_is_on(fetching->recording)
               ? fetching->next_look_ms
               : due_ms;
}

bool fetching_is_busy(const struct fetching *fetching)
{
    return fetching->is_busy;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

struct fetching *fetching_new(struct agent *agent, struct asking *asking, struct kept *kept,
                              struct recording *recording)
{
    struct fetching *fetching = calloc(1, sizeof(*fetching));

    if (fetching)
        *fetching = (struct fetching){
            .agent = agent, .asking = asking, .kept = kept, .recording = recording};
    return fetching;
}

void fetching_free(struct fetching *fetching)
{
    free(fetching);
}

void fetching_end(struct fetching *fetching)
{
    fetching->is_ending = true;
    pending_hurry(&fetching->agent->pending, clock_ms());
    fetching->next_ms = 0;
}

void fetching_last_call(struct fetching *fetching)
{
    fetching->is_last_call = true;
}

/* ---- what it shows --------------------------------------------------------------------------- */

const struct ring_look *fetching_look(const struct fetching *fetching)
{
    return &fetching->look;
}

static uint64_t fetching_stream_bytes(const struct fetching *fetching)
{
    const struct session_spec *spec = recording_session(fetching->recording, SESSION_RING);

    return spec->subbuf_bytes * spec->subbuf_count;
}

uint64_t fetching_holds_s(const struct fetching *fetching)
{
    const struct ring_look *look = &fetching->look;

    return look->bytes_per_s ? fetching_stream_bytes(fetching) * look->streams / look->bytes_per_s
                             : 0;
}

json_t *fetching_ring_json(const struct fetching *fetching)
{
    const struct recording *recording = fetching->recording;

    return json_pack("{ss, ss, sI, sI, sI, sI, sI, sI}", "session",
                     recording_session(recording, SESSION_RING)->name, "alarm_session",
                     recording_session(recording, SESSION_ALARM)->name, "bytes_per_stream",
                     (json_int_t)fetching_stream_bytes(fetching), "streams",
                     (json_int_t)fetching->look.streams, "bytes_per_s",
                     (json_int_t)fetching->look.bytes_per_s, "holds_s",
                     (json_int_t)fetching_holds_s(fetching), "last_snapshot_bytes",
                     (json_int_t)fetching->snapshot_bytes, "last_snapshot_held_ms",
                     (json_int_t)(fetching->held_ns / 1000000));
}
