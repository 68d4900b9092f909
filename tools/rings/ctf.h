/*
 * Writes a trace folder in the Common Trace Format 1.8, as LTTng would record BlkKin's events.
 * babeltrace2, Trace Compass and our own sink read it.
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
    const char *path; /* must outlive the struct */
    int folder;
    unsigned char uuid[16];
};

/* Makes the folder, which must not exist. Returns false with error set. */
bool ctf_open(struct ctf *ctf, const char *path, struct error *error);

/* Writes the metadata. Called after all streams, because a folder without metadata is no trace.
 * offset_ns: CLOCK_REALTIME less CLOCK_MONOTONIC. Returns false with error set. */
bool ctf_describe(const struct ctf *ctf, const char *host, int64_t offset_ns, struct error *error);

void ctf_close(struct ctf *ctf);

/* ---- a stream: events in the order of their times by CLOCK_MONOTONIC */

struct ctf_stream {
    const struct ctf *ctf;
    const char *name; /* of the file; must outlive the stream */
    int fd;
    uint32_t cpu;
    uint64_t begin_ns, end_ns; /* of `packet` */
    uint64_t packets;          /* the number of packets before `packet` */
    uint64_t discarded;        /* the number of missing events so far */
    struct buffer packet;
};

/* Returns false with error set. */
bool ctf_stream_open(struct ctf_stream *stream, const struct ctf *ctf, const char *name,
                     uint32_t cpu, struct error *error);

/* Must be the first call after opening. lacks_some: readers see that an unknown number of events is
 * missing between these times. Returns false with error set. */
bool ctf_stream_begin(struct ctf_stream *stream, bool lacks_some, uint64_t begin_ns,
                      uint64_t end_ns, struct error *error);

/* Adds an event. payload: the fields in LTTng's layout. Returns false with error set. */
bool ctf_stream_add(struct ctf_stream *stream, uint64_t time_ns, const struct ring_entry *entry,
                    struct buffer payload, struct error *error);

/* Counts one missing event. */
void ctf_stream_add_discarded(struct ctf_stream *stream, uint64_t time_ns);

/* Must also be called after a failure. Returns false with error set if a write failed. */
bool ctf_stream_close(struct ctf_stream *stream, struct error *error);

#endif
