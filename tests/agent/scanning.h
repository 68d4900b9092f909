/*
 * Rings of a test, and an order to scan them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_AGENT_SCANNING_H
#define TESTS_AGENT_SCANNING_H

#include "babeltrace-plugin/base/monotonic.h"
#include "rings/writer.h"
#include "tools/agent/scan.h"
#include "tracepoints/format/provider_table.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#define SCANNING_CPUS     2
#define SCANNING_MEMORIES 4
#define SCANNING_OFFSET   INT64_C(1000000000000000000) /* CLOCK_REALTIME less CLOCK_MONOTONIC */

struct scanning {
    struct held held[SCANNING_MEMORIES];
    size_t count;
    int locks[SCANNING_MEMORIES][SCANNING_CPUS];
    struct places *places;
    struct scan_index *index;
    struct collected *collected;
    struct request *requests;
    struct scan_order order;
};

/* Adds a memory; the newest is the first of the list. */
static inline void scanning_add(struct scanning *scanning, uint32_t user, int64_t made_mono_ns,
                                uint64_t ring_bytes)
{
    struct held *held = &scanning->held[scanning->count];

    held->memory = writer_memory(user, SCANNING_CPUS, ring_bytes);
    held->user = user;
    held->number = scanning->count + 1;
    held->memory.created_ns = (uint64_t)made_mono_ns;
    held->next = scanning->count ? &scanning->held[scanning->count - 1] : NULL;
    scanning->count++;
}

static inline void scanning_begin(struct scanning *scanning)
{
    memset(scanning, 0, sizeof(*scanning));
    scanning->places = places_new();
    scanning->index = scan_index_new();
    scanning->collected = collected_new();
}

static inline void scanning_end(struct scanning *scanning)
{
    scan_order_free(&scanning->order);
    requests_free(scanning->requests);
    collected_free(scanning->collected);
    places_free(scanning->places);
    scan_index_free(scanning->index);
    for (size_t i = 0; i < scanning->count; i++)
        memory_close(&scanning->held[i].memory);
}

static inline struct writer scanning_writer(struct scanning *scanning, size_t memory, uint32_t cpu)
{
    return (struct writer){memory_ring(&scanning->held[memory].memory, cpu),
                           &scanning->locks[memory][cpu]};
}

/* Returns the number of the span; 0: another event. */
static inline uint64_t scanning_number(const struct ring_entry *entry)
{
    struct ring_original event;

    if (entry->event < RING_ORIGINAL || entry->length < sizeof(event))
        return 0;
    memcpy(&event, entry->payload, sizeof(event));
    return event.span_id;
}

/* ---- the order ------------------------------------------------------------------------------- */

/* Replaces the wanted traces by the traces of these numbers. The list ends with 0. */
static inline void scanning_want(struct scanning *scanning, const uint64_t *traces)
{
    requests_free(scanning->requests);
    scanning->requests = request_new("a:1:1", "a");
    for (; *traces; traces++)
        (void)request_add(scanning->requests, (struct trace_id){0, *traces}, 0, "y");
}

/* Makes the order of a scan up to the rings' present ends. */
static inline void scanning_order(struct scanning *scanning, int64_t until_mono_ns)
{
    struct held *first = scanning->count ? &scanning->held[scanning->count - 1] : NULL;

    scan_order_free(&scanning->order);
    scanning->order =
        (struct scan_order){.requests = scanning->requests,
                            .collected = scanning->collected,
                            .first_held = first,
                            .until_mono_ns = until_mono_ns,
                            .offset_ns = SCANNING_OFFSET,
                            .begun_mono_ns = 17,
                            .places = scanning->places,
                            .index = scanning->requests->last_ms > 0 ? NULL : scanning->index,
                            .place = places_take(scanning->places, first),
                            .max_bytes = UINT64_MAX / 2};
    CHECK(scan_order_make(&scanning->order));
}

#endif
