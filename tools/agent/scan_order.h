/*
 * The order says what a scan of the rings looks for: the wanted traces with their begins, the ends
 * of the rings, and the parts that earlier scans have read.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SCAN_ORDER_H
#define BLKIN_TOOLS_SCAN_ORDER_H

#include "babeltrace-plugin/base/buffer.h"
#include "collected.h"
#include "selection.h"
#include "places.h"
#include "request.h"
#include "scan_index.h"
#include "tools/sampler/sampler.h"

/* A memory of rings. The scan maps it again, because the holder may unmap its own mapping. */
struct scan_memory {
    int fd; /* owned by the order; -1: a scan has taken it */
    uint32_t user;
    uint64_t number;     /* of the memory: a user may have several, see holder.h */
    struct memory known; /* checked by the agent, for memory_open_known() */
};

struct scan_wanted {
    uint64_t id;      /* the lower half of the trace's id */
    int64_t begin_ns; /* CLOCK_MONOTONIC: the earliest known begin; INT64_MIN: not known */
    /* An earlier scan has found the records between these places. until 0: no earlier scan, or its
     * places were removed; from 0: since the rings' oldest records. */
    uint64_t from, until;
    int64_t sent_from_ns, sent_until_ns; /* the same by times if a place was removed; else 0 */
    /* The scan sets this. CLOCK_MONOTONIC: the rings of the users with records of the trace have
     * all records from then on; INT64_MIN: no record was found. Rings of other users count only if
     * max_bytes was reached. */
    int64_t held_from_ns;
    bool is_found; /* the scan sets this: it copied a record */
};

struct scan_order {
    const struct request *requests; /* at least one */
    const struct collected *collected;
    const struct held *first_held; /* the list of all memories */
    struct sampler *sampler;       /* NULL: no samples */
    uint64_t max_bytes;            /* the most bytes of found records */
    int64_t until_mono_ns;         /* the time of `place` */
    int64_t offset_ns;             /* CLOCK_REALTIME - CLOCK_MONOTONIC */
    int64_t begun_mono_ns;         /* the agent's start: older rings are of an earlier agent */
    int64_t early_ns;              /* the scan reads back to this long before begin_ns */
    int64_t begin_ns; /* CLOCK_MONOTONIC: the begin of the earliest wanted trace, or of the
                       * window; INT64_MIN: not known; INT64_MAX: no trace is wanted */
    bool is_look;     /* only halves of requests in the window: see joins.h */
    bool is_window;   /* all traces of the time `window` are wanted */
    struct request_window window;
    const struct places *places; /* unchanged during the scan */
    uint64_t place;              /* the ends of the rings */
    struct scan_index *index;    /* of earlier scans; NULL: the scan reads everything */
    /* scan_order_make() sets these */
    bool is_starved; /* out of memory */
    size_t memory_count, wanted_count;
    struct scan_memory *memories;
    struct scan_wanted *wanted;
    struct buffer samples;       /* of this host: each is its length, a uint32_t, and the event */
    struct selection *selection; /* the wanted traces with their reasons, and the sent spans */
};

/* Completes the order. The caller has set the members up to `index`, except begin_ns, is_look,
 * is_window and `window`, and calls scan_order_free() in any case. The thread of the scan must not
 * use the first four members. Returns false with errno set. */
bool scan_order_make(struct scan_order *order);
void scan_order_free(struct scan_order *order);

#endif
