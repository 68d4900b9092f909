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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCANNING_TIMESTAMP 2 /* in enum blkin_annotation_type */
#define SCANNING_CPUS      2
#define SCANNING_MEMORIES  4
#define SCANNING_OFFSET    INT64_C(1000000000000000000) /* CLOCK_REALTIME less CLOCK_MONOTONIC */

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
static inline void scanning_add_sized(struct scanning *scanning, uint32_t user,
                                      int64_t made_mono_ns, uint64_t ring_bytes)
{
    struct held *held = &scanning->held[scanning->count];

    held->memory = writer_memory(user, SCANNING_CPUS, ring_bytes);
    held->user = user;
    held->number = scanning->count + 1;
    held->memory.created_ns = (uint64_t)made_mono_ns;
    held->next = scanning->count ? &scanning->held[scanning->count - 1] : NULL;
    scanning->count++;
}

static inline void scanning_add(struct scanning *scanning, uint32_t user, int64_t made_mono_ns)
{
    scanning_add_sized(scanning, user, made_mono_ns, RING_BYTES_MIN);
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

/* Writes an event of the original API, whose span has that number. */
static inline void scanning_put(const struct writer *writer, uint64_t trace, uint64_t number,
                                int64_t mono_ns)
{
    static const char texts[] = "name\0service\0"
                                "10.0.0.1\0event";
    const struct ring_original head = {
        .monotonic = (uint64_t)mono_ns, .trace_id = trace, .span_id = number};
    char payload[sizeof(head) + sizeof(texts)];

    memcpy(payload, &head, sizeof(head));
    memcpy(payload + sizeof(head), texts, sizeof(texts));
    (void)writer_put(writer, RING_ORIGINAL + SCANNING_TIMESTAMP, 77, payload, sizeof(payload));
}

/* ---- the order ------------------------------------------------------------------------------- */

/* Replaces the wanted traces by the traces of these numbers. The list ends with 0. */
static inline void scanning_want(struct scanning *scanning, const uint64_t *traces)
{
    requests_free(scanning->requests);
    scanning->requests = request_new("a:1:1", "a");
    for (; *traces; traces++)
        (void)request_add(scanning->requests, (struct trace_id){0, *traces}, 0, "why");
}

/* Makes the order of a scan up to the rings' present ends. Returns the place of these ends. */
static inline uint64_t scanning_order(struct scanning *scanning, int64_t until_mono_ns)
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
    if (!scan_order_make(&scanning->order)) {
        fprintf(stderr, "no order\n");
        exit(1);
    }
    return scanning->order.place;
}

#endif
