/*
 * Writes what rings hold as a trace folder (ctf.h), for post-mortems and for other tools.
 *
 * Programs may go on writing: each ring is copied once. A record has the time that it tells of, and
 * a stream's times must not go back: so an event comes where it fits, and what it tells of is still
 * as long before as it was.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_DUMP_H
#define BLKIN_TOOLS_RINGS_DUMP_H

#include "memory.h"

struct dump_memory {
    const struct memory *memory;
    uint32_t user; /* of several memories, too; a file's name has it */
};

struct dump_options {
    const char *folder; /* is made, and must not exist */
    const char *host;
    int64_t offset_ns; /* what CLOCK_REALTIME is ahead of CLOCK_MONOTONIC: ring_clock_offset() */
};

/* What was in the rings: records = events + left_out. */
struct dump_counts {
    uint64_t records;
    uint64_t events;   /* that were written */
    uint64_t left_out; /* no events, or not laid out as events are; the trace tells how many */
    uint64_t overwritten_bytes, damaged_bytes; /* the trace tells that something is missing */
    uint64_t not_written; /* records that programs could not write, as their memory says */
    unsigned streams;     /* one for each ring that something was written to */
};

/* Returns false with error set: then the folder may have a part, but no "metadata". */
bool dump_memories(const struct dump_memory *memories, unsigned count,
                   const struct dump_options *options, struct dump_counts *counts,
                   struct error *error);

#endif
