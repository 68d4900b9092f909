/*
 * Writes the contents of rings as a trace folder, for post-mortems and for other tools.
 *
 * Programs may write meanwhile: each ring is copied once. Times in a stream must not go back, so an
 * event may get a later time than its record. Then the event's age is greater by as much, and the
 * event still describes the time of its record.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_DUMP_H
#define BLKIN_TOOLS_RINGS_DUMP_H

#include "memory.h"

struct dump_memory {
    const struct memory *memory;
    uint32_t user; /* part of the files' names; several memories may have the same */
};

struct dump_options {
    const char *folder; /* must not exist yet */
    const char *host;
    int64_t offset_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC: ring_clock_offset() */
};

/* Contents of the rings: records = events + left_out. */
struct dump_counts {
    uint64_t records;
    uint64_t events;   /* written to the trace */
    uint64_t left_out; /* no valid events: the trace counts them as discarded events */
    /* A missing packet marks each ring with such bytes. */
    uint64_t overwritten_bytes, damaged_bytes;
    uint64_t not_written; /* records that programs counted because they could not write them */
    unsigned streams;     /* one for each ring that is not empty */
};

/* Returns false with error set. Then the folder may have files, but no whole "metadata". */
bool dump_memories(const struct dump_memory *memories, unsigned count,
                   const struct dump_options *options, struct dump_counts *counts,
                   struct error *error);

#endif
