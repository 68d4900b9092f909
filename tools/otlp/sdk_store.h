/*
 * Holds the bytes of SDKs' spans in memory of a limited size. Each sender has a store.
 *
 *     added = held + overwritten
 *
 * Stores share the memory: one store may fill the memory while the others need none. If the memory
 * is full, a new span overwrites the oldest spans of the store that has the most bytes.
 *
 * Consecutive spans share their resource and scope, which live as long as one of these spans. The
 * time to find a trace does not depend on the number of other traces.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SDK_STORE_H
#define BLKIN_TOOLS_SDK_STORE_H

#include "tools/otlp/otlp_decode.h"

#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

#define SDK_MEMORY_MIN (UINT64_C(1) << 20)

/* The most bytes of a resource and a scope together, but at most a sixteenth of the memory. */
#define SDK_ORIGIN_MAX (UINT64_C(64) << 10)

struct sdk_store;

struct sdk_held {
    uint64_t spans;
    uint64_t bytes; /* bytes of the memory in use */
    uint64_t traces;
    uint64_t overwritten; /* spans */
    /* All spans that arrived after came_ns are held, and all that arrived and ended after ended_ns.
     * Times of CLOCK_MONOTONIC: see offset_ns. 0: no span was overwritten yet. */
    int64_t came_ns, ended_ns;
};

struct sdk_memory {
    uint64_t bytes, used;
    uint64_t came, origins; /* numbers of all added spans, and of all resources and scopes */
    /* The owner sets this before spans are added: CLOCK_REALTIME less CLOCK_MONOTONIC. The times of
     * overwritten spans stay correct if the host's clock is set. */
    int64_t offset_ns;
    struct cds_list_head stores;
    struct sdk_held gone; /* overwritten spans of stores that were freed, and their times */
};

/* A wanted trace, and the position up to which its spans were given. */
struct sdk_wanted {
    uint64_t trace_id_high, trace_id;
    uint64_t after;   /* 0 at first; then the number of the newest span given or counted */
    uint64_t spans;   /* out: the number of spans that the last call gave or counted */
    int64_t ended_ns; /* as in struct sdk_held, of freed stores and of those with the trace */
};

/* Sets the number of bytes; at least SDK_MEMORY_MIN. Only held spans use memory. */
void sdk_memory_begin(struct sdk_memory *memory, uint64_t bytes);

/* Returns NULL when out of memory. */
struct sdk_store *sdk_store_new(struct sdk_memory *memory);
/* Forgets the spans of the store. NULL is allowed. */
void sdk_store_free(struct sdk_store *store);

/* Begins a request: the numbers of its resources and scopes begin again. */
void sdk_store_begin(struct sdk_store *store);

enum sdk_added {
    SDK_ADDED,
    /* larger than an eighth of the memory or its sender's share, or with more than SDK_ORIGIN_MAX
     * of resource and scope */
    SDK_TOO_LARGE,
    SDK_NO_MEMORY,
};

/* Copies a span. A number of 0 in the origin means unknown. now_ns: the time of arrival, since
 * 1970. */
enum sdk_added sdk_store_add(struct sdk_store *store, const struct otlp_origin *origin,
                             const struct otlp_span *span, int64_t now_ns);

struct sdk_held sdk_store_held(const struct sdk_store *store);

/* Gives the spans of a trace, store by store, the newest first. Texts live until the next span is
 * added. call NULL: only counts the spans. */
void sdk_memory_take(const struct sdk_memory *memory, struct sdk_wanted *wanted, otlp_span_fn *call,
                     void *context);

/* Gives all spans that were open at any time from from_ns until until_ns, store by store, in the
 * order in which they arrived. Reads the whole memory once. */
void sdk_memory_copy(const struct sdk_memory *memory, int64_t from_ns, int64_t until_ns,
                     otlp_span_fn *call, void *context);

struct sdk_held sdk_memory_held(const struct sdk_memory *memory);

#endif
