/*
 * Configures, grows and measures the rings.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "holding.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "send_all.h"
#include "tools/base/say.h"
#include "tools/rings/ring_back.h"
#include "tools/rings/ring_event.h"
#include "tools/rings/ring_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOLDING_DEFAULT (UINT64_C(64) << 20)
#define HOLDING_LOOK_MS 5000
#define HOLDING_LEFT_MS 60000 /* how long rings stay after programs have left them */
#define HOLDING_READ_MS 5000  /* the same with send = all: programs write for at most 2 s more */

struct holding {
    struct agent *agent;
    struct holder *holder;
    struct timer look;
    char fdserver[256];        /* the path of the fdserver's socket */
    int64_t looked_ms;         /* the time of the last look */
    uint64_t bytes_per_s;      /* of all rings */
    uint64_t ring_bytes_per_s; /* of the busiest ring */
    uint64_t holds_s;          /* see holding_holds_s() */
    uint64_t ring_bytes;       /* the size of a ring in new memories */
};

/* ---- the size of rings ----------------------------------------------------------------------- */

static bool holding_options(struct holding *holding, struct holder_options *options,
                            struct error *error)
{
    if (!ring_options(holding->agent->config, HOLDING_DEFAULT, options, error))
        return false;
    options->fdserver = holding->fdserver;
    options->left_ms =
        send_all_is_wanted(holding->agent->config) ? HOLDING_READ_MS : HOLDING_LEFT_MS;
    if (config_integer(holding->agent->config, "seconds") * 1250 > options->hold_ms)
        options->hold_ms = config_integer(holding->agent->config, "seconds") * 1250;
    /* keeps the size to which an earlier look or run has grown the rings */
    if (config_integer(holding->agent->config, "seconds") &&
        ring_is_size(holding->agent->totals.ring_bytes) &&
        holding->agent->totals.ring_bytes > options->size.event_bytes)
        options->size.event_bytes = holding->agent->totals.ring_bytes;
    holding->ring_bytes = options->size.event_bytes;
    return true;
}

/* Returns true if max_bytes allows the new memories beside the old ones, which stay for a while. */
static bool holding_may_have(const struct holding *holding, const struct holder_options *options)
{
    const struct holder_counts counts = holder_counts(holding->holder);
    const uint64_t bytes = memory_bytes(&options->size);

    return bytes && counts.bytes <= options->max_bytes &&
           bytes <= (options->max_bytes - counts.bytes) / (counts.users + 1);
}

/* Grows the rings if they hold less than 5/4 of the configured seconds at the current rate. */
static void holding_grow(struct holding *holding)
{
    const uint64_t seconds = (uint64_t)config_integer(holding->agent->config, "seconds");
    const uint64_t wanted = holding->ring_bytes_per_s * seconds * 5 / 4;
    const uint64_t before = holding->ring_bytes;
    struct holder_options options;
    struct error ignored;
    char text[256];

    if (wanted <= before || !holding_options(holding, &options, &ignored))
        return;
    while (options.size.event_bytes < wanted) {
        options.size.event_bytes *= 2;
        if (!holding_may_have(holding, &options)) {
            options.size.event_bytes /= 2;
            break;
        }
    }
    if (options.size.event_bytes > before) {
        holding->ring_bytes = holding->agent->totals.ring_bytes = options.size.event_bytes;
        holding->agent->totals.rings_grown++;
        say(BK4030,
            "the rings hold less than %" PRIu64 " s of what is recorded now: programs get new ones "
            "of %" PRIu64 " KiB for each CPU",
            seconds, options.size.event_bytes / 1024);
        holder_reload(holding->holder, &options);
        return;
    }
    (void)snprintf(text, sizeof(text),
                   "the rings hold less than %" PRIu64
                   " s of what is recorded now, and rings-max-bytes allows no more",
                   seconds);
    agent_say_state(holding->agent, BK4031, text);
}

/* ---- measurements ---------------------------------------------------------------------------- */

/* Returns the bytes written to the busiest ring since the last look; 0 at the first look. */
static uint64_t holding_busiest(struct held *held)
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
static uint64_t holding_seconds(const struct memory *memory, uint64_t busiest, int64_t passed_ms)
{
    uint64_t seconds;

    if (!busiest || passed_ms <= 0)
        return 0;
    seconds = memory->size.event_bytes * (uint64_t)passed_ms / busiest / 1000;
    return seconds ? seconds : 1;
}

static void holding_look(void *context)
{
    struct holding *holding = context;
    const int64_t now_ms = clock_ms(), passed_ms = now_ms - holding->looked_ms;
    uint64_t written = 0, fastest = 0, holds_s = 0;

    for (struct held *held = holding_first(holding); held; held = held->next) {
        const uint64_t now = memory_written(&held->memory);
        const uint64_t more = now > held->looked_at ? now - held->looked_at : 0;
        const uint64_t busiest = holding_busiest(held);

        const uint64_t seconds = holding_seconds(&held->memory, busiest, passed_ms);

        fastest = busiest > fastest ? busiest : fastest;
        if (seconds && !held->is_left && (!holds_s || seconds < holds_s))
            holds_s = seconds;
        written += held->looked_at ? more : 0;
        held->looked_at = now ? now : 1;
    }
    if (passed_ms > 0) {
        holding->bytes_per_s = written * 1000 / (uint64_t)passed_ms;
        holding->ring_bytes_per_s = fastest * 1000 / (uint64_t)passed_ms;
    }
    holding->holds_s = holds_s;
    holding->looked_ms = now_ms;
    if (config_integer(holding->agent->config, "seconds"))
        holding_grow(holding);
    timer_set(holding->agent->loop, &holding->look, HOLDING_LOOK_MS);
}

uint64_t holding_bytes_per_s(const struct holding *holding)
{
    return holding->bytes_per_s;
}

uint64_t holding_holds_s(const struct holding *holding)
{
    return holding->holds_s;
}

/* ---- for the status -------------------------------------------------------------------------- */

/* Returns the time since 1970 from which on the memory has all records; 0: it is not full. */
static int64_t holding_held_from(const struct memory *memory)
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

static json_t *holding_memories_json(const struct holding *holding)
{
    json_t *list = json_array();

    for (const struct held *held = holding_first(holding); held; held = held->next) {
        json_t *memory = ring_memory_json(&held->memory, held->user, held->is_left);
        const int64_t from_ns = holding_held_from(&held->memory);

        (void)json_object_set_new(memory, "held_from",
                                  json_time(from_ns ? from_ns : (int64_t)held->memory.made));
        (void)json_object_set_new(memory, "is_full", json_boolean(from_ns != 0));
        (void)json_array_append_new(list, memory);
    }
    return list;
}

json_t *holding_json(const struct holding *holding)
{
    const struct holder_counts counts = holder_counts(holding->holder);

    return json_pack("{ss, sI, sI, sI, sI, sI, sI, sI, sI, ss, so, sI, so}", "socket",
                     config_text(holding->agent->config, "ring-socket"), "bytes",
                     (json_int_t)counts.bytes, "ring_bytes", (json_int_t)holding->ring_bytes,
                     "bytes_per_s", (json_int_t)holding->bytes_per_s, "holds_s",
                     (json_int_t)holding_holds_s(holding), "users", (json_int_t)counts.users,
                     "given", (json_int_t)counts.given, "refused", (json_int_t)counts.refused,
                     "refused_unknown_users", (json_int_t)counts.unknown, "kept_by", counts.keeper,
                     "outlive_a_kill", holder_outlives(&counts), "unusable",
                     (json_int_t)counts.unusable, "memories", holding_memories_json(holding));
}

/* ---- opening and closing --------------------------------------------------------------------- */

struct held *holding_first(const struct holding *holding)
{
    return holder_first(holding->holder);
}

bool holding_configure(struct holding *holding, struct error *error)
{
    struct holder_options options;

    if (!holding_options(holding, &options, error))
        return false;
    holder_reload(holding->holder, &options);
    return true;
}

struct holding *holding_open(struct agent *agent, const struct holder_callbacks *callbacks,
                             struct error *error)
{
    struct holding *holding = calloc(1, sizeof(*holding));
    struct holder_options options;

    error_set(error, "out of memory");
    if (!holding)
        return NULL;
    holding->agent = agent;
    holding->looked_ms = clock_ms();
    (void)snprintf(holding->fdserver, sizeof(holding->fdserver), "%s/rings.fdserver",
                   config_text(agent->config, "runtime-dir"));
    if (holding_options(holding, &options, error))
        holding->holder = holder_open(agent->loop, &options, callbacks, error);
    if (!holding->holder) {
        free(holding);
        return NULL;
    }
    holding->look = (struct timer){.due = holding_look, .context = holding};
    timer_set(agent->loop, &holding->look, HOLDING_LOOK_MS);
    return holding;
}

void holding_close(struct holding *holding)
{
    if (!holding)
        return;
    timer_clear(holding->agent->loop, &holding->look);
    holder_close(holding->holder);
    free(holding);
}
