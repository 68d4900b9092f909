/*
 * What the task that fetches is told, and what it tells.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FETCH_ORDER_H
#define BLKIN_TOOLS_FETCH_ORDER_H

#include "babeltrace-plugin/base/error.h"
#include "fetched.h"
#include "places.h"
#include "request.h"

/* A memory, as the task has it. */
struct fetch_memory {
    int fd; /* the same in the task */
    uint32_t user;
    uint64_t number; /* of the user's memories, see holder.h */
    uint32_t cpus;
    int64_t made_mono_ns;
};

struct fetch_order {
    const char *folder;    /* where kept folders are */
    uint64_t number;       /* kept-N */
    uint64_t max_bytes;    /* of records that are kept */
    int64_t until_mono_ns; /* when the rings' ends were taken */
    int64_t offset_ns;     /* what CLOCK_REALTIME is ahead of CLOCK_MONOTONIC */
    int64_t begun_mono_ns; /* the agent: before that programs found no rings */
    uint32_t host_user;    /* whose memory has what the host did */
    const struct request *requests;
    const struct fetched *fetched;
    const char *foreign; /* spans of OpenTelemetry's SDKs: a request of OTLP */
    size_t foreign_bytes;
    int64_t foreign_from_ns; /* since 1970: from then on all of them are held; 0: ever */
    const struct fetch_memory *memories;
    size_t memory_count, rings; /* the rings of all memories */
    const uint64_t *ends;       /* of each ring, memory by memory */
    /* in the task, where traces in `fetched` have numbers of rows as their places */
    const uint64_t *rows; /* ROW * rings + RING: how far it was read before */
};

struct fetch_result { /* a plain type: a task's result */
    bool has_copied, is_kept;
    struct error error;                /* why not */
    uint64_t records, bytes;           /* that the rings had */
    uint64_t records_kept, bytes_kept; /* without what the host did */
    uint64_t rings_damaged;
    bool is_limited;      /* max_bytes: the oldest were left out */
    int64_t held_from_ns; /* since 1970: from then on the rings have all */
    uint64_t cpu_ms;
};

/* An order as bytes for the task; NULL: out of memory. And back, in the task, which has no use for
 * its end; returns false when out of memory. */
char *fetch_order_bytes(const struct fetch_order *order, const struct places *places,
                        const struct held *first, size_t *size);
bool fetch_order_read(const char *bytes, struct fetch_order *order);
void fetch_order_free(struct fetch_order *order); /* of what fetch_order_read() has made */

#endif
