/*
 * Writes what rings hold as a trace folder (ctf.h), for post-mortems and for other tools.
 *
 * Programs may go on writing: each ring is copied once. A record has the time that it describes,
 * but times in a stream must not go back. So an event may get a later time; its age grows by as
 * much, and it still describes the same time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_DUMP_H
#define BLKIN_TOOLS_RINGS_DUMP_H

#include "memory.h"

struct dump_memory {
    const struct memory *memory;
    uint32_t user; /* may be the same for several memories; part of the file's name */
};

struct dump_options {
    const char *folder; /* is created, must not exist */
    const char *host;
    int64_t offset_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC: ring_clock_offset() */
};

/* Contents of the rings: records = events + left_out. */
struct dump_counts {
    uint64_t records;
    uint64_t events;                           /* written to the trace */
    uint64_t left_out;                         /* no valid events; counted in the trace */
    uint64_t overwritten_bytes, damaged_bytes; /* marked in the trace */
    uint64_t not_written; /* records that programs could not write, as they count */
    unsigned streams;     /* one for each ring that is not empty */
};

/* Returns false with error set: the folder may have files, but no "metadata". */
bool dump_memories(const struct dump_memory *memories, unsigned count,
                   const struct dump_options *options, struct dump_counts *counts,
                   struct error *error);

#endif
