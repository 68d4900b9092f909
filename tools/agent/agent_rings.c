/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent_rings.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "send_all.h"
#include "tools/base/say.h"
#include "tools/rings/ring_back.h"
#include "tools/rings/ring_event.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The agent waits long for the fdserver, which may have rings that the last agent has not read. On
 * a busy host, the fdserver may get no CPU time for seconds. */
#define AGENT_RINGS_ANSWER_MS 30000
#define AGENT_RINGS_DEFAULT   (UINT64_C(64) << 20)
#define AGENT_RINGS_ALARMS    RING_BYTES_MIN
#define AGENT_RINGS_SHARES    4      /* three users have room, with their rings of alarms */
#define AGENT_RINGS_HOLD_MS   120000 /* rings should hold the records of at least this time */
#define AGENT_RINGS_LOOK_MS   5000
#define AGENT_RINGS_LEFT_MS   60000 /* how long rings stay after programs have left them */
/* The same with send = all, which reads at once: programs write for at most 2 s more. */
#define AGENT_RINGS_READ_MS 5000

struct agent_rings {
    struct agent *agent;
    struct holder *holder;
    struct timer look;
    char fdserver[256];        /* the path of the fdserver's socket */
    int64_t looked_ms;         /* the time of the last look */
    uint64_t bytes_per_s;      /* of all rings */
    uint64_t ring_bytes_per_s; /* of the busiest ring */
    uint64_t holds_s;          /* until the busiest ring is overwritten; 0: nothing is written */
    uint64_t ring_bytes;       /* the size of a ring in new memories */
};

/* ---- the size of rings ----------------------------------------------------------------------- */

/* With ring-bytes 0, rings of events have AGENT_RINGS_DEFAULT, or less, so that rings-max-bytes has
 * room for the events of some users. Returns false with error set. */
static bool agent_rings_options(struct agent_rings *agent_rings, struct holder_options *options,
                                struct error *error)
{
    const struct config *config = agent_rings->agent->config;
    const int64_t seconds = config_integer(config, "seconds");
    const uint32_t cpus = memory_host_cpus();
    const uint64_t all_bytes = (uint64_t)config_integer(config, "rings-max-bytes");
    uint64_t bytes = (uint64_t)config_integer(config, "ring-bytes");

    if (!bytes) {
        bytes = AGENT_RINGS_DEFAULT;
        while (bytes > RING_BYTES_MIN && bytes > all_bytes / AGENT_RINGS_SHARES / cpus)
            bytes /= 2;
    }
    *options = (struct holder_options){
        .path = config_text(config, "ring-socket"),
        .fdserver = agent_rings->fdserver,
        .answer_ms = AGENT_RINGS_ANSWER_MS,
        .size = {cpus, bytes, AGENT_RINGS_ALARMS},
        .max_users = (unsigned)config_integer(config, "ring-users"),
        .max_bytes = all_bytes,
        .idle_ms = config_integer(config, "ring-idle-ms"),
        .hold_ms = seconds * 1250 > AGENT_RINGS_HOLD_MS ? seconds * 1250 : AGENT_RINGS_HOLD_MS,
        .left_ms = send_all_is_wanted(config) ? AGENT_RINGS_READ_MS : AGENT_RINGS_LEFT_MS,
    };
    if (!memory_bytes(&options->size))
        return error_set(error, "%s: ring-bytes %" PRIu64 ": expected a power of two from %" PRIu64,
                         config_origin(config, "ring-bytes"), bytes, (uint64_t)RING_BYTES_MIN);
    /* a ring that an earlier look or run has grown keeps its size */
    if (seconds && ring_is_size(agent_rings->agent->totals.ring_bytes) &&
        agent_rings->agent->totals.ring_bytes > options->size.event_bytes)
        options->size.event_bytes = agent_rings->agent->totals.ring_bytes;
    agent_rings->ring_bytes = options->size.event_bytes;
    return true;
}

/* Returns true if max_bytes allows the new memories beside the old ones, which stay for a while. */
static bool agent_rings_may_have(const struct agent_rings *agent_rings,
                                 const struct holder_options *options)
{
    const struct holder_counts counts = holder_counts(agent_rings->holder);
    const uint64_t bytes = memory_bytes(&options->size);

    return bytes && counts.bytes <= options->max_bytes &&
           bytes <= (options->max_bytes - counts.bytes) / (counts.users + 1);
}

/* Grows the rings if they hold less than 5/4 of the configured seconds at the current rate. */
static void agent_rings_grow(struct agent_rings *agent_rings)
{
    const uint64_t seconds = (uint64_t)config_integer(agent_rings->agent->config, "seconds");
    const uint64_t wanted = agent_rings->ring_bytes_per_s * seconds * 5 / 4;
    const uint64_t before = agent_rings->ring_bytes;
    struct holder_options options;
    struct error ignored;
    char text[256];

    if (wanted <= before || !agent_rings_options(agent_rings, &options, &ignored))
        return;
    while (options.size.event_bytes < wanted) {
        options.size.event_bytes *= 2;
        if (!agent_rings_may_have(agent_rings, &options)) {
            options.size.event_bytes /= 2;
            break;
        }
    }
    if (options.size.event_bytes > before) {
        agent_rings->ring_bytes = agent_rings->agent->totals.ring_bytes = options.size.event_bytes;
        agent_rings->agent->totals.rings_grown++;
        say(BK4030,
            "the rings hold less than %" PRIu64 " s of what is recorded now: programs get new ones "
            "of %" PRIu64 " KiB for each CPU",
            seconds, options.size.event_bytes / 1024);
        holder_reload(agent_rings->holder, &options);
        return;
    }
    (void)snprintf(text, sizeof(text),
                   "the rings hold less than %" PRIu64
                   " s of what is recorded now, and rings-max-bytes allows no more",
                   seconds);
    agent_say_state(agent_rings->agent, BK4031, text);
}

/* ---- measurements ---------------------------------------------------------------------------- */

/* Returns the bytes written to the busiest ring since the last look; 0 at the first look. */
static uint64_t agent_rings_busiest(struct held *held)
{
    const bool is_first = !held->rings_looked_at;
    uint64_t busiest;

    if (is_first)
        held->rings_looked_at = calloc(held->memory.size.cpus, sizeof(*held->rings_looked_at));
    if (!held->rings_looked_at)
        return 0;
    busiest = memory_busiest(&held->memory, held->rings_looked_at);
    return is_first ? 0 : busiest;
}

/* Returns the seconds until the busiest ring is overwritten, at least 1. busiest: the bytes that
 * the ring got in passed_ms. Returns 0 if nothing is written. */
static uint64_t agent_rings_seconds(const struct memory *memory, uint64_t busiest,
                                    int64_t passed_ms)
{
    uint64_t seconds;

    if (!busiest || passed_ms <= 0)
        return 0;
    seconds = memory->size.event_bytes * (uint64_t)passed_ms / busiest / 1000;
    return seconds ? seconds : 1;
}

static void agent_rings_look(void *context)
{
    struct agent_rings *agent_rings = context;
    const int64_t now_ms = clock_ms(), passed_ms = now_ms - agent_rings->looked_ms;
    uint64_t written = 0, fastest = 0, holds_s = 0;

    for (struct held *held = agent_rings_first(agent_rings); held; held = held->next) {
        const uint64_t now = memory_written(&held->memory);
        const uint64_t more = now > held->looked_at ? now - held->looked_at : 0;
        const uint64_t busiest = agent_rings_busiest(held);
        const uint64_t seconds = agent_rings_seconds(&held->memory, busiest, passed_ms);

        fastest = busiest > fastest ? busiest : fastest;
        if (seconds && !held->is_left && (!holds_s || seconds < holds_s))
            holds_s = seconds;
        written += held->looked_at ? more : 0;
        held->looked_at = now ? now : 1;
    }
    if (passed_ms > 0) {
        agent_rings->bytes_per_s = written * 1000 / (uint64_t)passed_ms;
        agent_rings->ring_bytes_per_s = fastest * 1000 / (uint64_t)passed_ms;
    }
    agent_rings->holds_s = holds_s;
    agent_rings->looked_ms = now_ms;
    if (config_integer(agent_rings->agent->config, "seconds"))
        agent_rings_grow(agent_rings);
    timer_set(agent_rings->agent->loop, &agent_rings->look, AGENT_RINGS_LOOK_MS);
}

/* ---- for the status -------------------------------------------------------------------------- */

/* Returns the time since 1970 from which the memory has all records; 0: no ring is full. */
static int64_t agent_rings_held_from(const struct memory *memory)
{
    struct ring_clock clock = {0, clock_ns(), ring_clock_offset()};
    int64_t from_ns = 0;

    for (uint32_t cpu = 0; cpu < memory->size.cpus; cpu++) {
        char copy[RING_OLDEST_BYTES];
        struct ring_entry entry;
        struct event event;

        if (ring_oldest(memory_ring(memory, cpu), copy, &entry) &&
            ring_event(&entry, &clock, &event) == DECODED && event.time_ns > from_ns)
            from_ns = event.time_ns;
    }
    return from_ns;
}

static json_t *agent_rings_memories_json(const struct agent_rings *agent_rings)
{
    json_t *list = json_array();

    for (const struct held *held = agent_rings_first(agent_rings); held; held = held->next) {
        const struct memory *memory = &held->memory;
        const int64_t from_ns = agent_rings_held_from(memory);
        const int64_t made_ns = (int64_t)memory->created_ns + ring_clock_offset();

        (void)json_array_append_new(
            list, json_pack("{sI, sI, sI, so, ss, sI, sI, so, sb}", "user", (json_int_t)held->user,
                            "bytes", (json_int_t)memory->bytes, "ring_bytes",
                            (json_int_t)memory->size.event_bytes, "made", json_time(made_ns),
                            "state", held->is_left ? "left" : "on", "written_bytes",
                            (json_int_t)memory_written(memory), "not_written_records",
                            (json_int_t)memory_lost(memory), "held_from",
                            json_time(from_ns ? from_ns : made_ns), "is_full", from_ns != 0));
    }
    return list;
}

/* Returns JSON's true if memories outlive a kill, or false; null if that is unknown (systemd before
 * 254). */
static json_t *agent_rings_outlive_json(const struct holder_counts *counts)
{
    return counts->is_stored || !counts->may_be_stored ? json_boolean(counts->is_stored)
                                                       : json_null();
}

json_t *agent_rings_json(const struct agent_rings *agent_rings)
{
    const struct holder_counts counts = holder_counts(agent_rings->holder);

    return json_pack(
        "{ss, sI, sI, sI, sI, sI, sI, sI, sI, ss, so, sI, so, so}", "socket",
        config_text(agent_rings->agent->config, "ring-socket"), "bytes", (json_int_t)counts.bytes,
        "ring_bytes", (json_int_t)agent_rings->ring_bytes, "bytes_per_s",
        (json_int_t)agent_rings->bytes_per_s, "holds_s", (json_int_t)agent_rings->holds_s, "users",
        (json_int_t)counts.users, "given", (json_int_t)counts.given, "refused",
        (json_int_t)counts.refused, "refused_unknown_users", (json_int_t)counts.unknown, "kept_by",
        counts.keeper, "outlive_a_kill", agent_rings_outlive_json(&counts), "unusable",
        (json_int_t)counts.unusable, "memories", agent_rings_memories_json(agent_rings), "shares",
        payers_json(holder_payers(agent_rings->holder)));
}

void agent_rings_print(const struct agent_rings *agent_rings, struct printer *printer)
{
    print_metric(printer, "blkin_agent_ring_bytes_per_second", "gauge",
                 "Bytes that programs write into all rings, by the last measurement.",
                 agent_rings->bytes_per_s);
    print_metric(printer, "blkin_agent_ring_holds_seconds", "gauge",
                 "How long the busiest ring lasts at this rate; 0: nothing is written.",
                 agent_rings->holds_s);
}

/* ---- opening and closing --------------------------------------------------------------------- */

struct held *agent_rings_first(const struct agent_rings *agent_rings)
{
    return holder_first(agent_rings->holder);
}

bool agent_rings_configure(struct agent_rings *agent_rings, struct error *error)
{
    struct holder_options options;

    if (!agent_rings_options(agent_rings, &options, error))
        return false;
    holder_reload(agent_rings->holder, &options);
    return true;
}

struct agent_rings *agent_rings_open(struct agent *agent, const struct holder_callbacks *callbacks,
                                     struct error *error)
{
    struct agent_rings *agent_rings = calloc(1, sizeof(*agent_rings));
    struct holder_options options;

    error_set(error, "out of memory");
    if (!agent_rings)
        return NULL;
    agent_rings->agent = agent;
    agent_rings->looked_ms = clock_ms();
    (void)snprintf(agent_rings->fdserver, sizeof(agent_rings->fdserver), "%s/rings.fdserver",
                   config_text(agent->config, "runtime-dir"));
    if (agent_rings_options(agent_rings, &options, error))
        agent_rings->holder = holder_open(agent->loop, &options, callbacks, error);
    if (!agent_rings->holder) {
        free(agent_rings);
        return NULL;
    }
    agent_rings->look = (struct timer){.due = agent_rings_look, .context = agent_rings};
    timer_set(agent->loop, &agent_rings->look, AGENT_RINGS_LOOK_MS);
    return agent_rings;
}

void agent_rings_close(struct agent_rings *agent_rings)
{
    if (!agent_rings)
        return;
    timer_clear(agent_rings->agent->loop, &agent_rings->look);
    holder_close(agent_rings->holder);
    free(agent_rings);
}
