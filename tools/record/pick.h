/*
 * The packets of a snapshot that have something of the traces that are wanted: a raw scan for the 8
 * bytes of their ids (the lower half), which is 20 times faster than to decode.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_PICK_H
#define BLKIN_TOOLS_PICK_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pick_result { /* a plain type: a task's result */
    uint64_t packets, packets_kept;
    uint64_t bytes, bytes_kept;
    uint64_t packets_damaged; /* no head of a packet: the rest of their file was left out */
    uint64_t streams;
    uint64_t held_from; /* the trace's clock in its own unit (ns): the newest of the streams' first
                         * packets' begins, from when on all streams have all; 0: nothing is held */
};

/*
 * Copies the trace folders below `from` to `to`, which it makes (0700; files 0600): each metadata
 * file, and the packets that hold one of the ids; count 0: all packets that reach into
 * [from_clock, until_clock], of the trace's clock. Links and what is no regular file are not
 * followed. Returns false with error set.
 */
struct pick_spec {
    const uint64_t *ids;
    size_t count;
    uint64_t from_clock, until_clock;
};
bool pick(const char *from, const char *to, const struct pick_spec *spec,
          struct pick_result *result, struct error *error);

/*
 * How the streams of a snapshot are, without reading more than the heads of their packets.
 * quiet_ns: the newest packet of a stream that has stood still for longest ended so long before the
 * newest of all; rate: bytes per second that were recorded, of all streams.
 */
struct ring_look {
    uint64_t streams, streams_stalled;
    uint64_t bytes_per_s;
    uint64_t held_from;
    uint64_t newest;
    uint64_t overwritten_in_order; /* gaps of packet numbers within a stream: 0 is expected */
};
bool ring_look(const char *folder, uint64_t stalled_ns, struct ring_look *look,
               struct error *error);

#endif
