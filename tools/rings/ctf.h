/*
 * Writes a trace folder in the Common Trace Format 1.8, as LTTng would have recorded BlkKin's
 * events: babeltrace2, Trace Compass and our own sink read it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_CTF_H
#define BLKIN_TOOLS_RINGS_CTF_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/base/error.h"
#include "ring_read.h"

#include <stdint.h>

struct ctf {
    const char *path; /* lives as long */
    int folder;
    unsigned char uuid[16];
};

/* Makes the folder, which must not exist. Returns false with error set. */
bool ctf_open(struct ctf *ctf, const char *path, struct error *error);

/*
 * Writes what describes the streams, after all of them: a folder without it is no trace. offset_ns:
 * what CLOCK_REALTIME is ahead of CLOCK_MONOTONIC. Returns false with error set.
 */
bool ctf_describe(const struct ctf *ctf, const char *host, int64_t offset_ns, struct error *error);

void ctf_close(struct ctf *ctf);

/* ---- a stream: its events in the order of their times, which are of CLOCK_MONOTONIC */

struct ctf_stream {
    const struct ctf *ctf;
    const char *name; /* of its file; lives as long */
    int fd;
    uint32_t cpu;
    uint64_t begin_ns, end_ns; /* of the packet */
    uint64_t packets;          /* before it */
    uint64_t discarded;
    struct buffer packet;
};

/* Returns false with error set. */
bool ctf_stream_open(struct ctf_stream *stream, const struct ctf *ctf, const char *name,
                     uint32_t cpu, struct error *error);

/*
 * First of all. lacks_some: readers are told that they lack nobody knows how many events between
 * these times. Returns false with error set.
 */
bool ctf_stream_begin(struct ctf_stream *stream, bool lacks_some, uint64_t begin_ns,
                      uint64_t end_ns, struct error *error);

/* The payload is laid out as LTTng's is, and not as the entry's. Returns false with error set. */
bool ctf_stream_add(struct ctf_stream *stream, uint64_t time_ns, const struct ring_entry *entry,
                    struct buffer payload, struct error *error);

/* One event is not there. */
void ctf_stream_add_discarded(struct ctf_stream *stream, uint64_t time_ns);

/* Also after a failure. Returns false with error set if something is not written. */
bool ctf_stream_close(struct ctf_stream *stream, struct error *error);

#endif
