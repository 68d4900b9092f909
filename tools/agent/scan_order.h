/*
 * What a scan of the rings looks for: the traces, when they began, where each ring ends, and what
 * earlier scans have read.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SCAN_ORDER_H
#define BLKIN_TOOLS_SCAN_ORDER_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/base/error.h"
#include "fetched.h"
#include "only.h"
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
    uint64_t id;      /* of the trace, the lower half */
    int64_t begin_ns; /* CLOCK_MONOTONIC: the earliest begin that is known; INT64_MIN: none is */
    /* places: an earlier scan has given what is between; until is 0: none has. from is 0: from the
     * rings' oldest records on */
    uint64_t from, until;
    int64_t sent_from_ns, sent_until_ns; /* the same by times, where places are forgotten; 0, 0 */
    /* The scan sets this: CLOCK_MONOTONIC, from when on the rings of the users with records of the
     * trace have all; INT64_MIN: no record was found. Rings of other users do not count. */
    int64_t held_from_ns;
};

struct scan_order {
    uint64_t max_bytes;    /* of records that are found */
    int64_t until_mono_ns; /* when the rings' ends were taken */
    int64_t offset_ns;     /* CLOCK_REALTIME - CLOCK_MONOTONIC */
    int64_t begun_mono_ns; /* when the agent began: before, programs found no rings */
    int64_t early_ns;      /* rings are read from so long before the earliest begin on */
    bool is_look;          /* of the window, only halves of requests: see joins.h */
    bool is_window;        /* all traces of a time are wanted: */
    struct request_window window;
    const struct places *places; /* nobody changes them during the scan */
    uint64_t place;              /* where the rings end */
    size_t memory_count, wanted_count;
    struct scan_memory *memories;
    struct scan_wanted *wanted;
    struct buffer samples; /* of this host: for each its length, a uint32_t, and the event */
    struct only *only;     /* the wanted traces with their reasons, and the spans that were sent */
};

/* What an order is made of. */
struct scan_source {
    const struct request *requests; /* at least one */
    const struct fetched *fetched;
    const struct held *first; /* all memories */
    struct sampler *sampler;  /* NULL: none */
};

/* Makes the order, whose times, places and max_bytes the caller has set. Returns false with errno
 * set; the caller calls scan_order_free() in any case. */
bool scan_order_make(struct scan_order *order, const struct scan_source *source);
void scan_order_free(struct scan_order *order);

#endif
