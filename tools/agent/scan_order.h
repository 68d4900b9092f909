/*
 * What a scan of the rings looks for: the traces, where each ring ends, and how far earlier scans
 * have read.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SCAN_ORDER_H
#define BLKIN_TOOLS_SCAN_ORDER_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/base/error.h"
#include "fetched.h"
#include "places.h"
#include "request.h"
#include "tools/sampler/sampler.h"

/* A memory of rings. The scan maps the memory itself, because the holder may drop it meanwhile. */
struct scan_memory {
    int fd; /* the order's own; -1: a scan has closed it */
    uint32_t user;
    uint64_t number;     /* of the user's memories, see holder.h */
    struct memory known; /* as the agent has checked it, for memory_open_known() */
};

struct scan_wanted {
    uint64_t id;  /* of the trace, the lower half */
    uint64_t row; /* from 1: of the order's rows; 0: no earlier scan of this trace is known */
};

struct scan_order {
    uint64_t max_bytes;    /* of records that are found */
    int64_t until_mono_ns; /* when the rings' ends were taken */
    int64_t offset_ns;     /* CLOCK_REALTIME - CLOCK_MONOTONIC */
    int64_t begun_mono_ns; /* when the agent began: before, programs found no rings */
    bool is_look;          /* of the window, only halves of requests: see joins.h */
    bool is_window;        /* all traces of a time are wanted: */
    struct request_window window;
    int64_t first_ns; /* since 1970: the begin of the first trace; INT64_MIN: not known */
    size_t memory_count, rings, wanted_count, row_count; /* rings: of all memories */
    struct scan_memory *memories;
    uint64_t *ends; /* of each ring, memory by memory */
    struct scan_wanted *wanted;
    uint64_t *rows;        /* how far an earlier scan has read: (ROW - 1) * rings + RING */
    struct buffer samples; /* of this host: for each its length, a uint32_t, and the event */
    char *only;            /* the wanted traces as text, see only.h */
};

/* What an order is made of. */
struct scan_source {
    const struct request *requests; /* at least one */
    const struct fetched *fetched;
    const struct places *places;
    uint64_t place;           /* of the rings' ends */
    const struct held *first; /* all memories */
    struct sampler *sampler;  /* NULL: none */
};

/* Makes the order, whose times and max_bytes the caller has set. Returns false with errno set; the
 * caller calls scan_order_free() in any case. */
bool scan_order_make(struct scan_order *order, const struct scan_source *source);
void scan_order_free(struct scan_order *order);

#endif
