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
#include "tools/sampler/sampler.h"

/* A memory, as the task has it. */
struct fetch_memory {
    int fd; /* the same in the task */
    uint32_t user;
    uint64_t number;     /* of the user's memories, see holder.h */
    struct memory known; /* as the agent has checked it, for memory_open_known() */
};

struct fetch_wanted {
    uint64_t id;  /* of the trace, its lower half */
    uint64_t row; /* from 1: how far the rings were read for it before; 0: that is not known */
};

/* Plain bytes, which what it counts follows: the pointers are set by fetch_order_read(). */
struct fetch_order {
    char folder[4096];     /* where kept folders are */
    uint64_t number;       /* kept-N */
    uint64_t max_bytes;    /* of records that are kept */
    int64_t until_mono_ns; /* when the rings' ends were taken */
    int64_t offset_ns;     /* what CLOCK_REALTIME is ahead of CLOCK_MONOTONIC */
    int64_t begun_mono_ns; /* the agent: before that programs found no rings */
    bool is_window;        /* all of a time: */
    struct request_window window;
    int64_t first_ns;        /* since 1970: when the first trace began; INT64_MIN: not known */
    int64_t foreign_from_ns; /* since 1970: from then on all foreign spans are held; 0: ever */
    size_t memory_count, rings, wanted_count, row_count; /* rings: of all memories */
    size_t foreign_bytes, only_bytes, requests_bytes, sample_bytes;
    const struct fetch_memory *memories;
    const uint64_t *ends; /* of each ring, memory by memory */
    const struct fetch_wanted *wanted;
    const uint64_t *rows; /* (ROW - 1) * rings + RING */
    const char *foreign;  /* spans of OpenTelemetry's SDKs: a request of OTLP */
    const char *samples;  /* of this host: for each its length, a uint32_t, and the event */
    const char *only;     /* the file "only" of the kept folder, */
    const char *requests; /* and the end of its file "requests" */
};

/* What the agent makes an order of. */
struct fetch_source {
    const struct request *requests; /* one at least */
    const struct fetched *fetched;
    const struct places *places;
    uint64_t place;           /* of the rings' ends */
    const struct held *first; /* of the order's memories, in this order */
    const char *foreign;
    struct sampler *sampler;
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

/* Of an order that has its numbers, folder, memories and foreign_bytes; NULL: out of memory. And
 * back, in the task: the order lives as long as the bytes. */
char *fetch_order_bytes(const struct fetch_order *order, const struct fetch_source *source,
                        size_t *size);
void fetch_order_read(const char *bytes, struct fetch_order *order);

#endif
