/*
 * The packets of a snapshot that have something of the traces that are wanted: a raw scan for the 8
 * bytes of their ids (the lower half), which is 20 times faster than to decode.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_PICK_H
#define BLKIN_TOOLS_PICK_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pick_result { /* a plain type: a task's result */
    uint64_t packets, packets_kept;
    uint64_t bytes, bytes_kept;
    uint64_t packets_damaged; /* no head of a packet: the rest of their file was left out */
    uint64_t streams;
    uint64_t held_from; /* the trace's clock (ns): from when on the snapshot has all of all streams.
                         * One of which nothing was overwritten has all from ever. 0: it is empty */
    bool has_all;       /* of it nothing was overwritten: it has all since the session was made */
    uint64_t gaps;      /* packets that are missing within a stream: see ring_look */
};

/*
 * Copies the trace folders below `from` to `to`, which it makes (0700; files 0600): the packets
 * that hold one of the ids, and the metadata of the traces that have such; count 0: all packets
 * that reach into [from_clock, until_clock], of the trace's clock. Links and what is no regular
 * file are not followed. Ids that are 0 are left out. Returns false with error set; what has been
 * copied then is for the caller to remove.
 */
struct pick_spec {
    const uint64_t *ids;
    size_t count;
    uint64_t from_clock, until_clock;
};
bool pick(const char *from, const char *to, const struct pick_spec *spec,
          struct pick_result *result, struct error *error);

/*
 * The trace's clock is CLOCK_MONOTONIC in ns, as it is in alarms. babeltrace2 adds an offset to it,
 * which the session has measured once: this reads it from the snapshot's metadata. So
 *
 *     time of the trace's clock = ns since 1970 - offset_ns
 *
 * A time of babeltrace2's and one of CLOCK_REALTIME differ by what the wall clock was set since. Of
 * several users' buffers, each with a measurement of its own, the least.
 * Returns false with error set.
 */
bool ring_clock(const char *folder, int64_t *offset_ns, struct error *error);

/*
 * How the streams of a snapshot are, without reading more than the heads of their packets.
 *
 * LTTng leaves out a packet in which a record is not complete. If a thread is just writing it, only
 * the newest packet of a stream is missing, and only from this snapshot. If it was killed then, the
 * packet is a gap in all later ones, until the ring has come round to it: there the stream stands
 * still for ever, and the session is to be made anew. So a stream is called stalled if it has no
 * packet that ends after `now` - stalled_ns: some seconds, and twice in a row to be sure. now: the
 * trace's clock, before the snapshot was asked for.
 */
struct ring_look {
    uint64_t streams, streams_stalled;
    uint64_t packets_damaged;
    uint64_t bytes_per_s; /* that were recorded, of all streams */
    uint64_t held_from;   /* as in pick_result */
    uint64_t held_until;  /* until when it has all: each snapshot closes a packet of each
                           * stream, so this is when it was made; earlier, if a stream is
                           * stalled or lacks its newest packet */
    uint64_t newest;      /* the end of the newest packet */
    uint64_t gaps; /* packets that are missing within a stream. 0 is expected; if it stays, the
                    * stream will be stalled */
};
bool ring_look(const char *folder, uint64_t now, uint64_t stalled_ns, struct ring_look *look,
               struct error *error);

/* Whether a session is to be made anew, look by look; all zero at first. */
#define STALL_AGAIN_MS 1000
struct stall {
    int64_t since_ms; /* when a look has found stalled streams first; 0: the last one has not */
};
/* Returns true for the second look in a row that finds such, STALL_AGAIN_MS or more after the
 * first: look again then. */
bool stall_is_sure(struct stall *stall, const struct ring_look *look, int64_t now_ms);

#endif
