/* SPDX-License-Identifier: BSD-2-Clause */
#include "watcher.h"

#include "askers.h"
#include "babeltrace-plugin/base/utf8.h"
#include "tools/rings/ring_event.h"
#include "tracepoints/format/provider_table.h"

#include <stdlib.h>

struct watched_memory {
    const struct memory *memory;
    uint32_t user;
    struct asker *asker; /* held */
    struct watched_memory *next;
    struct ring_reader readers[]; /* one for each CPU */
};

/* ---- the numbers of alarms ------------------------------------------------------------------- */

/* The most by which an alarm may be later than an alarm with a larger number. */
#define SEEN_AGAIN_NS UINT64_C(1000000000)

void alarms_seen_look(struct alarms_seen *alarms_seen)
{
    for (size_t i = 0; i < alarms_seen->count; i++) {
        alarms_seen->programs[i].due = alarms_seen->programs[i].last;
        alarms_seen->programs[i].alarms_seen_due = alarms_seen->programs[i].alarms_seen_since;
    }
}

/* Returns the number of missing alarms after `before`, up to `last`. count: the read ones. */
static uint32_t alarms_seen_missing(const struct alarms_seen_program *program, uint32_t last,
                                    uint32_t count)
{
    const uint32_t since = last - program->before;

    return since > count ? since - count : 0;
}

static uint32_t alarms_seen_missing_of_all(const struct alarms_seen_program *program)
{
    return alarms_seen_missing(program, program->last, program->alarms_seen_since);
}

static uint32_t alarms_seen_lost_of(const struct alarms_seen_program *program)
{
    return alarms_seen_missing(program, program->due, program->alarms_seen_due);
}

/* Returns the number of missing alarms that are not lost yet. */
static uint32_t alarms_seen_awaited(const struct alarms_seen_program *program)
{
    const uint32_t missing = alarms_seen_missing_of_all(program),
                   lost = alarms_seen_lost_of(program);

    return missing > lost ? missing - lost : 0;
}

static bool alarms_seen_is_of(const struct alarms_seen_program *program, const struct alarm *alarm)
{
    return program->pid == alarm->pid && program->pid_namespace == alarm->pid_namespace &&
           program->user == alarm->user;
}

/* Begins to count a program. Its first read alarm may have any number. */
static void alarms_seen_set(struct alarms_seen *alarms_seen, struct alarms_seen_program *program,
                            const struct alarm *alarm)
{
    const uint64_t before_ns = alarms_seen_is_of(program, alarm) ? program->before_ns : 0;

    alarms_seen->lost += alarms_seen_missing_of_all(program);
    *program = (struct alarms_seen_program){.user = alarm->user,
                                            .pid = alarm->pid,
                                            .pid_namespace = alarm->pid_namespace,
                                            .last = alarm->sequence - 1,
                                            .before = alarm->sequence - 1,
                                            .before_ns = before_ns,
                                            .due = alarm->sequence - 1};
}

static struct alarms_seen_program *alarms_seen_program_of(struct alarms_seen *alarms_seen,
                                                          const struct alarm *alarm)
{
    struct alarms_seen_program *oldest = &alarms_seen->programs[0], *oldest_own = NULL;
    size_t own = 0;

    for (size_t i = 0; i < alarms_seen->count; i++) {
        struct alarms_seen_program *program = &alarms_seen->programs[i];

        if (alarms_seen_is_of(program, alarm))
            return program;
        if (program->last_ns < oldest->last_ns)
            oldest = program;
        if (program->user != alarm->user)
            continue;
        own++;
        if (!oldest_own || program->last_ns < oldest_own->last_ns)
            oldest_own = program;
    }
    if (own >= ALARMS_SEEN_USER_MAX)
        oldest = oldest_own;
    else if (alarms_seen->count < ALARMS_SEEN_MAX)
        oldest = &alarms_seen->programs[alarms_seen->count++];
    alarms_seen_set(alarms_seen, oldest, alarm);
    return oldest;
}

/*
 * Returns true if another process has the pid now. Then a number that the earlier process has used
 * comes again, with a later time. An alarm that only reports suppressed alarms has the time 0.
 */
static bool alarms_seen_is_another(const struct alarms_seen *alarms_seen,
                                   const struct alarms_seen_program *program,
                                   const struct alarm *alarm)
{
    if (!alarms_seen->has_looked && program->is_known)
        return alarm->sequence <= program->before && alarm->monotonic_ns > program->before_ns;
    return alarm->sequence <= program->last &&
           alarm->monotonic_ns > program->last_ns + SEEN_AGAIN_NS;
}

bool alarms_seen_alarm(struct alarms_seen *alarms_seen, const struct alarm *alarm)
{
    struct alarms_seen_program *program = alarms_seen_program_of(alarms_seen, alarm);

    if (alarms_seen_is_another(alarms_seen, program, alarm))
        alarms_seen_set(alarms_seen, program, alarm);
    if (!alarms_seen->has_looked && !program->is_known && program->before_ns &&
        alarm->monotonic_ns <= program->before_ns)
        return false; /* an alarm of the earlier process */
    if (alarm->sequence > program->before) {
        program->alarms_seen_since++;
        program->alarms_seen_due += alarm->sequence <= program->due;
    } else if (!program->is_known) { /* an earlier alarm, from the ring of another CPU */
        const bool is_due = program->due > program->before;

        /* true: `due` is not changed, as its missing alarms may already count as lost */
        program->alarms_seen_due = is_due ? program->alarms_seen_due + 1 : 0;
        program->due = is_due ? program->due : alarm->sequence - 1;
        program->before = alarm->sequence - 1;
        program->alarms_seen_since++;
    } else if (!alarms_seen->has_looked) {
        return false;
    }
    if (alarm->sequence > program->last)
        program->last = alarm->sequence;
    if (alarm->monotonic_ns > program->last_ns)
        program->last_ns = alarm->monotonic_ns;
    return true;
}

uint64_t alarms_seen_lost(const struct alarms_seen *alarms_seen)
{
    uint64_t lost = alarms_seen->lost;

    for (size_t i = 0; i < alarms_seen->count; i++)
        lost += alarms_seen_lost_of(&alarms_seen->programs[i]);
    return lost;
}

json_t *alarms_seen_json(const struct alarms_seen *alarms_seen)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < alarms_seen->count; i++) {
        const struct alarms_seen_program *program = &alarms_seen->programs[i];

        (void)json_array_append_new(
            list, json_pack("[I, I, I, I, I, I]", (json_int_t)program->user,
                            (json_int_t)program->pid, (json_int_t)program->last,
                            (json_int_t)program->last_ns, (json_int_t)alarms_seen_awaited(program),
                            (json_int_t)program->pid_namespace));
    }
    return list;
}

void alarms_seen_read(struct alarms_seen *alarms_seen, const json_t *json)
{
    const json_t *entry;
    size_t i;

    json_array_foreach(json, i, entry)
    {
        const uint32_t last = (uint32_t)json_integer_value(json_array_get(entry, 2));
        const uint64_t last_ns = (uint64_t)json_integer_value(json_array_get(entry, 3));

        if (alarms_seen->count == ALARMS_SEEN_MAX)
            break;
        alarms_seen->programs[alarms_seen->count++] = (struct alarms_seen_program){
            .user = (uint32_t)json_integer_value(json_array_get(entry, 0)),
            .pid = (uint32_t)json_integer_value(json_array_get(entry, 1)),
            .pid_namespace = (uint32_t)json_integer_value(json_array_get(entry, 5)),
            .last = last,
            .last_ns = last_ns,
            .before = last,
            .before_ns = last_ns,
            .is_known = true};
        alarms_seen->lost += (uint64_t)json_integer_value(json_array_get(entry, 4));
    }
}

/* ---- memories -------------------------------------------------------------------------------- */

bool watcher_add(struct watcher *watcher, const struct memory *memory, uint32_t user,
                 struct asker *asker)
{
    const uint32_t cpus = memory->size.cpus;
    struct watched_memory *watched =
        calloc(1, sizeof(*watched) + cpus * sizeof(struct ring_reader));

    if (!watched) {
        if (asker)
            asker->unwatched++;
        return false;
    }
    for (uint32_t cpu = 0; cpu < cpus; cpu++)
        ring_reader_open(&watched->readers[cpu], memory_ring(memory, cpus + cpu), 0);
    watched->memory = memory;
    watched->user = user;
    watched->asker = asker_hold(asker);
    watched->next = watcher->memories;
    watcher->memories = watched;
    return true;
}

void watcher_drop(struct watcher *watcher, const struct memory *memory)
{
    struct watched_memory **at = &watcher->memories, *watched;

    while (*at && (*at)->memory != memory)
        at = &(*at)->next;
    watched = *at;
    if (!watched)
        return;
    *at = watched->next;
    for (uint32_t cpu = 0; cpu < memory->size.cpus; cpu++)
        ring_reader_close(&watched->readers[cpu]);
    asker_release(watched->asker);
    free(watched);
}

/* ---- alarms ---------------------------------------------------------------------------------- */

/* Returns true for control characters up to U+009F: a terminal may execute some of them. */
static bool watcher_is_control(const char *text, size_t length)
{
    const unsigned char first = (unsigned char)text[0];

    return first < 0x20 || first == 0x7f ||
           (first == 0xc2 && length > 1 && (unsigned char)text[1] < 0xa0);
}

void watcher_set_text(char *to, size_t room, struct text from)
{
    char *at = to;

    while (from.length && (size_t)(at - to) + 4 < room) {
        char *const begin = at;
        const size_t taken = utf8_put(&at, from.data, from.length);

        if (watcher_is_control(from.data, taken)) {
            at = begin;
            *at++ = '?';
        }
        from.data += taken;
        from.length -= taken;
    }
    *at = '\0';
}

static void watcher_give(struct watcher *watcher, const struct ring_alarm *from,
                         const struct watched_memory *of)
{
    const struct blkin_slow_event *event = &from->event;
    struct alarm alarm = {.trace_id_high = event->trace_id_high,
                          .trace_id = event->trace_id,
                          .duration_ns = event->duration,
                          .monotonic_ns = event->monotonic,
                          .user = of->user,
                          .asker = of->asker,
                          .pid = event->pid,
                          .pid_namespace = from->pid_namespace,
                          .sequence = event->sequence,
                          .dropped = event->dropped};

    if (!alarms_seen_alarm(watcher->alarms_seen, &alarm))
        return;
    watcher_set_text(alarm.why, sizeof(alarm.why), from->why);
    watcher->alarm(watcher->context, &alarm);
}

static void watcher_read(struct watcher *watcher, struct watched_memory *of, uint32_t cpu,
                         struct watcher_counts *counts)
{
    struct ring_reader *reader = &of->readers[cpu];
    struct ring_entry entry;
    struct ring_alarm alarm;

    if (ring_committed(reader->ring) == reader->at || !ring_read(reader))
        return;
    for (; ring_peek(reader, &entry); ring_pass(reader)) {
        const enum decoded decoded =
            entry.event == BLKIN_EVENT_SLOW ? ring_alarm(&entry, &alarm) : DECODED_FOREIGN;

        if (decoded == DECODED_ALARM)
            watcher_give(watcher, &alarm, of);
        counts->newer += decoded == DECODED_NEWER;
    }
}

struct watcher_counts watcher_look(struct watcher *watcher)
{
    struct watcher_counts counts = {.lost = 0};
    uint64_t lost;

    alarms_seen_look(watcher->alarms_seen);
    for (struct watched_memory *watched = watcher->memories; watched; watched = watched->next)
        for (uint32_t cpu = 0; cpu < watched->memory->size.cpus; cpu++)
            watcher_read(watcher, watched, cpu, &counts);
    lost = alarms_seen_lost(watcher->alarms_seen);
    if (lost > watcher->lost) {
        counts.lost = lost - watcher->lost;
        watcher->lost = lost;
    }
    watcher->alarms_seen->has_looked = true;
    return counts;
}
