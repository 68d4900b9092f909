/*
 * Holds spans of SDKs as they came, in memory of a fixed size, in a store for each sender.
 *
 *     added = held + overwritten
 *
 * Stores share the memory: one store may fill the memory while the others need none. A span that
 * finds the memory full overwrites the oldest spans of the store that has the most bytes.
 *
 * A block is the resource that spans have in common, followed by the spans, each behind its scope.
 * Blocks are overwritten as a whole: no span is held without its resource. A hash table has the
 * newest span of each trace, and each span knows the one before it of its trace. So a trace is
 * found in a time that does not depend on how many others there are.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SDK_STORE_H
#define BLKIN_TOOLS_SDK_STORE_H

#include "tools/otlp/otlp_decode.h"

#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

#ifndef SDK_MEMORY_MIN /* the fuzzer has a smaller one */
#define SDK_MEMORY_MIN (UINT64_C(1) << 20)
#endif

/* Resource and scope together, or a sixteenth of the memory. */
#define SDK_ORIGIN_MAX (UINT64_C(64) << 10)

struct sdk_store;

struct sdk_held {
    uint64_t spans;
    uint64_t bytes; /* of the memory: in use */
    uint64_t traces;
    uint64_t overwritten; /* spans */
    /* Every span that came after this time is held, and every span that came and has ended after
     * that one. 0: none was overwritten yet. Both of CLOCK_MONOTONIC: see offset_ns. */
    int64_t came_ns, ended_ns;
};

struct sdk_memory {
    uint64_t bytes, used;
    uint64_t came; /* spans, ever */
    /* The owner sets this before spans are added: their clock less CLOCK_MONOTONIC. The times of
     * overwritten spans stay right if the host's clock is set. */
    int64_t offset_ns;
    struct cds_list_head stores;
    struct sdk_held gone; /* overwritten spans of stores that were freed, and their times */
};

/* A wanted trace, and how far its spans were given. */
struct sdk_wanted {
    uint64_t trace_id_high, trace_id;
    uint64_t after;      /* 0, then as it was left: no span is given twice */
    uint64_t spans;      /* gets how many were given this time */
    bool is_overwritten; /* set if a span of the trace is known to be gone that was never given */
    int64_t ended_ns;    /* as in struct sdk_held, of the senders that have spans of the trace */
};

/* Sets the number of bytes, rounded down: at least SDK_MEMORY_MIN. Pages are used as they fill. */
void sdk_memory_begin(struct sdk_memory *memory, uint64_t bytes);

/* Returns NULL when out of memory. */
struct sdk_store *sdk_store_new(struct sdk_memory *memory);
/* Forgets the spans of the store. NULL is allowed. */
void sdk_store_free(struct sdk_store *store);

/* Another request follows: its numbers of resources and scopes are not those of the one before. */
void sdk_store_begin(struct sdk_store *store);

/* Returns false if the span takes more than an eighth of the memory or than its sender's share.
 * The same if resource and scope are longer than SDK_ORIGIN_MAX. A number of 0 in the origin is
 * unknown. */
bool sdk_store_add(struct sdk_store *store, const struct otlp_origin *origin,
                   const struct otlp_span *span, int64_t now_ns);

struct sdk_held sdk_store_held(const struct sdk_store *store);

/* Gives the spans of a trace, of each store the newest first. Texts live until the next span is
 * added. */
void sdk_memory_take(const struct sdk_memory *memory, struct sdk_wanted *wanted, otlp_span_fn *call,
                     void *context);

/* Gives all spans that were open at any time from from_ns until until_ns, of each store in the
 * order in which they came. Takes one pass over the memory. */
void sdk_memory_copy(const struct sdk_memory *memory, int64_t from_ns, int64_t until_ns,
                     otlp_span_fn *call, void *context);

struct sdk_held sdk_memory_held(const struct sdk_memory *memory);

#endif
