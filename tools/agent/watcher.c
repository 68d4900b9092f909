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

    if (!watcher->has_looked)
        alarms_seen_begin(watcher->alarms_seen);
    alarms_seen_look(watcher->alarms_seen);
    for (struct watched_memory *watched = watcher->memories; watched; watched = watched->next)
        for (uint32_t cpu = 0; cpu < watched->memory->size.cpus; cpu++)
            watcher_read(watcher, watched, cpu, &counts);
    alarms_seen_end(watcher->alarms_seen);
    lost = alarms_seen_lost(watcher->alarms_seen);
    if (lost > watcher->lost) {
        counts.lost = lost - watcher->lost;
        watcher->lost = lost;
    }
    watcher->has_looked = true;
    return counts;
}
