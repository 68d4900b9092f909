/*
 * A program and its agent in one process, without LTTng; the newest record of an event; a whole
 * span as a text.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_LIBBLKIN_RING_NEWEST_H
#define TESTS_LIBBLKIN_RING_NEWEST_H

#include <blkin.h>

#include "babeltrace-plugin/spans/assembler_parts.h"
#include "check.h"
#include "libblkin-ring/parts/rings.h"
#include "tools/rings/ring_event.h"
#include "tracepoints/format/digits.h"
#include "tracepoints/format/provider_table.h"
#include "waits.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

static struct rings memory;
static struct rings_agent agent;
static char sampling_file[200]; /* of the program; initially missing */

static unsigned spans(void)
{
    return rings_count(&memory, BLKIN_EVENT_SPAN);
}

struct newest {
    unsigned ring, count;
    struct ring_entry entry; /* its event is the wanted one */
    char payload[RING_RECORD_MAX];
};

static void take_newest(void *context, const struct rings_record *record)
{
    struct newest *newest = context;

    if (record->entry.event != newest->entry.event)
        return;
    newest->count++;
    newest->ring = record->ring;
    newest->entry = record->entry;
    newest->entry.payload = memcpy(newest->payload, record->entry.payload, record->entry.length);
}

/* Returns the newest record, which is valid until the next call. */
static const struct newest *find_newest(unsigned event)
{
    static struct newest newest;

    newest = (struct newest){.entry.event = event};
    (void)rings_walk_all(&memory, take_newest, &newest);
    CHECK(newest.count > 0 && newest.entry.pid == (uint32_t)getpid());
    return &newest;
}

#define SHARE_AT 35 /* in the head: see doc/format.md */

/* Decodes the newest span: event->time_ns is its end by CLOCK_MONOTONIC. Returns its content as a
 * text: the name, service, ip and port; kind, flags, share in millionths and dropped records; the
 * records of its log, each with type, time, bits (of a link, a digit for each id), port, key and
 * value. */
static inline const char *span_text(struct event *event)
{
    static char text[4096];
    const struct newest *newest = find_newest(BLKIN_EVENT_SPAN);
    const struct ring_clock now = {0, monotonic_ns(), 0};
    const char *packed;
    char *at = text, *const end = text + sizeof(text);
    struct log_record record = {0};

    *event = (struct event){0};
    CHECK(ring_event(&newest->entry, &now, event) == DECODED);
    event->time_ns -= event->age_ns;
    packed = event->span_name.data + event->span_name.length + 1;
    at +=
        snprintf(at, (size_t)(end - at), "%s of %s %.*s:%d, %d %d %d %d", event->span_name.data,
                 event->service.data, (int)event->ip.length, event->ip.data, (int)event->port,
                 (int)event->span_kind, (int)event->flags,
                 (int)(blkin_number_at(packed + SHARE_AT, 8) >> 16 & 0xfffff), (int)event->dropped);
    while (at < end && log_next(&event->log, &record)) {
        if (record.type == 'l')
            record.bits =
                record.link.trace_id_high << 8 | record.link.trace_id << 4 | record.link.span_id;
        at += snprintf(at, (size_t)(end - at), " | %c %d %lx %u %.*s=%.*s", record.type,
                       (int)record.offset_ns, (long)record.bits, record.port,
                       (int)record.key.length, record.key.data ? record.key.data : "",
                       (int)record.value.length, record.value.data ? record.value.data : "");
        record = (struct log_record){0};
    }
    CHECK(event->log.length == 0);
    return text;
}

/* Plays all tests on one CPU, so that the last record of its ring is the newest record. */
static int newest_play(void)
{
    BLKIN_SPAN_ROOM(256) room;
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(sched_getcpu(), &set);
    CHECK(sched_setaffinity(0, sizeof(set), &set) == 0);
    (void)snprintf(sampling_file, sizeof(sampling_file), "%s/sampling", getenv("TMPDIR"));
    setenv("BLKIN_SAMPLING_FILE", sampling_file, 1);
    setenv("BLKIN_LTTNG", "no", 1);
    rings_make(&memory, 1 << 26, 1 << 24);
    agent_prepare(&agent);
    agent_start(&agent, &memory);
    blkin_init();
    WORK_UNTIL(spans() > 0,
               blkin_span_end(blkin_span_begin_in(&room, 256, "", BLKIN_SERVER, NULL)));
    memory.head->lost = 0; /* of a late answer */
    check_run();
    CHECK(agent_asked(&agent) <= PATIENCE_MS / 5000); /* again after 5 s without an answer */
    agent_stop(&agent);
    agent_remove(&agent);
    rings_close(&memory);
    return check_status();
}

#endif
