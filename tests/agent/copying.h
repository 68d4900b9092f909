/*
 * Rings of a test's own, an order to fetch from them, and what a copy has.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_RECORD_COPYING_H
#define TESTS_RECORD_COPYING_H

#include "babeltrace-plugin/base/monotonic.h"
#include "rings/writer.h"
#include "tools/agent/fetch.h"
#include "tools/agent/records.h"
#include "tracepoints/format/provider_table.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COPYING_TIMESTAMP 2 /* of enum blkin_annotation_type */
#define COPYING_CPUS      2
#define COPYING_MAX       4
#define COPYING_OFFSET    INT64_C(1000000000000000000) /* the wall clock is ahead by that */

struct copying {
    struct held held[COPYING_MAX];
    size_t count;
    int locks[COPYING_MAX][COPYING_CPUS];
    struct places *places;
    struct fetched *fetched;
    struct request *requests;
    struct text foreign; /* spans */
    struct fetch_order order;
    struct fetch_source source;
    struct fetch_memory memories[COPYING_MAX];
};

/* Another memory: the newest is the first of the list. */
static inline void copying_add(struct copying *copying, uint32_t user, int64_t made_mono_ns)
{
    struct held *held = &copying->held[copying->count];

    held->memory = writer_memory(user, COPYING_CPUS, RING_BYTES_MIN);
    held->user = user;
    held->number = copying->count + 1;
    held->memory.made = (uint64_t)(made_mono_ns + COPYING_OFFSET);
    held->next = copying->count ? &copying->held[copying->count - 1] : NULL;
    copying->count++;
}

static inline void copying_begin(struct copying *copying)
{
    memset(copying, 0, sizeof(*copying));
    copying->places = places_new();
    copying->fetched = fetched_new();
}

static inline void copying_end(struct copying *copying)
{
    requests_free(copying->requests);
    fetched_free(copying->fetched);
    places_free(copying->places);
    for (size_t i = 0; i < copying->count; i++)
        memory_close(&copying->held[i].memory);
}

static inline struct writer copying_writer(struct copying *copying, size_t memory, uint32_t cpu)
{
    return (struct writer){memory_ring(&copying->held[memory].memory, cpu),
                           &copying->locks[memory][cpu]};
}

/* An event of the original API: its span has that number. */
static inline void copying_put(const struct writer *writer, uint64_t trace, uint64_t number,
                               int64_t mono_ns)
{
    static const char texts[] = "name\0service\0" /* and */ "10.0.0.1\0event";
    const struct ring_original head = {
        .monotonic = (uint64_t)mono_ns, .trace_id = trace, .span_id = number};
    char payload[sizeof(head) + sizeof(texts)];

    memcpy(payload, &head, sizeof(head));
    memcpy(payload + sizeof(head), texts, sizeof(texts));
    (void)writer_put(writer, RING_ORIGINAL + COPYING_TIMESTAMP, 77, payload, sizeof(payload));
}

/* ---- the order ------------------------------------------------------------------------------- */

/* The traces of these numbers are wanted: the list ends with 0. */
static inline void copying_want(struct copying *copying, const uint64_t *traces)
{
    requests_free(copying->requests);
    copying->requests = request_new("a:1:1", "a");
    for (; *traces; traces++)
        (void)request_add(copying->requests, (struct trace_id){0, *traces}, 0, "why");
}

/* As the agent makes it: where rings end now. Returns the place. The task closes descriptors. */
static inline uint64_t copying_order(struct copying *copying, int64_t until_mono_ns)
{
    struct held *first = copying->count ? &copying->held[copying->count - 1] : NULL;
    struct fetch_order *order = &copying->order;

    *order = (struct fetch_order){.until_mono_ns = until_mono_ns,
                                  .offset_ns = COPYING_OFFSET,
                                  .begun_mono_ns = 17,
                                  .foreign_bytes = copying->foreign.length,
                                  .memories = copying->memories,
                                  .max_bytes = UINT64_MAX / 2};
    copying->source = (struct fetch_source){.requests = copying->requests,
                                            .foreign = copying->foreign.data,
                                            .fetched = copying->fetched,
                                            .places = copying->places,
                                            .place = places_take(copying->places, first),
                                            .first = first};
    for (struct held *held = first; held; held = held->next)
        copying->memories[order->memory_count++] = (struct fetch_memory){
            fcntl(held->memory.fd, F_DUPFD_CLOEXEC, 3), held->user, held->number, held->memory};
    return copying->source.place;
}

/* As the task gets it. */
static inline char *copying_bytes(const struct copying *copying)
{
    size_t size;
    char *bytes = fetch_order_bytes(&copying->order, &copying->source, &size);

    if (!bytes) {
        fprintf(stderr, "no order\n");
        exit(1);
    }
    return bytes;
}

/* A kept folder of that number. */
static inline struct fetch_result copying_keep(struct copying *copying, const char *folder,
                                               uint64_t number)
{
    struct fetch_result result = {.is_kept = false};
    char *bytes;

    (void)copying_order(copying, clock_ns());
    (void)snprintf(copying->order.folder, sizeof(copying->order.folder), "%s", folder);
    copying->order.number = number;
    bytes = copying_bytes(copying);
    if (!fetch_job.fill(bytes, &result))
        exit(2);
    free(bytes);
    return result;
}

#endif
