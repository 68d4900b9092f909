/*
 * Fetching: a snapshot of the ring, of which the packets are picked that have something of the
 * traces that are wanted, into a folder kept-N. A task: it may take seconds, and hang with LTTng.
 *
 * The folder kept-N holds the traces, what the host did meanwhile, a file "only" for the sink, and
 * "requests": what it was picked for, and until when. It is whole as soon as it is there.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FETCH_H
#define BLKIN_TOOLS_FETCH_H

#include "babeltrace-plugin/base/error.h"
#include "fetched.h"
#include "pick.h"
#include "request.h"
#include "tools/base/child.h"

#define STALLED_NS INT64_C(3000000000)

struct fetch_order {
    const char *session;
    const char *host_session; /* of what the host did; NULL: none */
    const char *folder;       /* where snapshots and kept folders are */
    uint64_t number;          /* kept-N */
    uint64_t max_bytes;       /* of each stream; 0: all */
    int64_t ring_mono_ns;     /* before that nothing was recorded into this ring; 0: not known */
    const struct request *requests; /* none: only look at the ring */
    const struct fetched *fetched;
};

struct fetch_result { /* a plain type: a task's result */
    bool has_snapshot, has_picked, is_kept;
    struct error error; /* why not */
    struct pick_result picked;
    struct ring_look look;
    bool has_look;
    int64_t offset_ns;               /* of the trace's clock */
    int64_t until_mono_ns, until_ns; /* what was recorded until then is there; the second one since
                                      * 1970, by the trace's clock */
    int64_t held_from_ns;            /* since 1970 */
    uint64_t snapshot_ms;            /* that the call took */
    uint64_t cpu_ms;                 /* of our own */
};

/* An order as bytes for the task; NULL: out of memory. And back, in the task, which has no use for
 * its end; returns false when out of memory. */
char *fetch_order_bytes(const struct fetch_order *order, size_t *size);
bool fetch_order_read(const char *bytes, struct fetch_order *order);

/* Fetches. */
void fetch(const struct fetch_order *order, struct fetch_result *result);

/* The same as a task: its result is a struct fetch_result. */
extern const struct job fetch_job;

/* Reads the file "requests" of a kept folder. Returns a list, NULL: there is none; *until_ns,
 * *until_mono_ns and *held_from_ns as above. */
struct request *fetch_requests(const char *kept, int64_t *until_ns, int64_t *until_mono_ns,
                               int64_t *held_from_ns);

#endif
