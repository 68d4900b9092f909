/*
 * Rings of a test's own, an order to fetch from them, and what a copy has.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_RECORD_COPYING_H
#define TESTS_RECORD_COPYING_H

#include "babeltrace-plugin/base/monotonic.h"
#include "rings/writer.h"
#include "tools/record/fetch.h"
#include "tools/record/records.h"
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
    struct fetch_order order;
    struct fetch_memory memories[COPYING_MAX];
    uint64_t ends[COPYING_MAX * COPYING_CPUS];
};

/* Another memory: the newest is the first of the list. */
static inline void copying_add(struct copying *copying, uint32_t user, int64_t made_mono_ns)
{
    const struct memory_size size = {COPYING_CPUS, RING_BYTES_MIN, RING_BYTES_MIN};
    struct held *held = &copying->held[copying->count];
    struct error error;

    if (!memory_make(&held->memory, user, &size, &error)) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
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
    const uint64_t place = places_take(copying->places, first);
    struct fetch_order *order = &copying->order;

    *order = (struct fetch_order){.until_mono_ns = until_mono_ns,
                                  .offset_ns = COPYING_OFFSET,
                                  .begun_mono_ns = 17,
                                  .host_user = 1,
                                  .requests = copying->requests,
                                  .fetched = copying->fetched,
                                  .memories = copying->memories,
                                  .ends = copying->ends,
                                  .max_bytes = UINT64_MAX / 2};
    for (struct held *held = first; held; held = held->next) {
        copying->memories[order->memory_count++] = (struct fetch_memory){
            fcntl(held->memory.fd, F_DUPFD_CLOEXEC, 3), held->user, held->number,
            held->memory.size.cpus, (int64_t)held->memory.made - COPYING_OFFSET};
        for (uint32_t cpu = 0; cpu < held->memory.size.cpus; cpu++)
            (void)places_find(copying->places, place, held, cpu, &copying->ends[order->rings++]);
    }
    return place;
}

/* As the task gets it. The bytes live as long as the order. */
static inline char *copying_pass(const struct copying *copying, struct fetch_order *given)
{
    const struct held *first = copying->count ? &copying->held[copying->count - 1] : NULL;
    size_t size;
    char *bytes = fetch_order_bytes(&copying->order, copying->places, first, &size);

    if (!bytes || !fetch_order_read(bytes, given)) {
        fprintf(stderr, "no order\n");
        exit(1);
    }
    return bytes;
}

static inline void copying_pass_end(char *bytes, struct fetch_order *given)
{
    requests_free((struct request *)(uintptr_t)given->requests);
    fetched_free((struct fetched *)(uintptr_t)given->fetched);
    free(bytes);
}

#endif
