/*
 * Reads a ring while programs write to it: copies new records, and gives the records of the copy.
 * tracepoints/format/ring.h has the rule that tells which bytes of a copy are whole.
 *
 * Until the first jump, the counts add up for the bytes between the reader's first and current
 * position:
 *
 *     written = read + overwritten + damaged
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_READ_H
#define BLKIN_TOOLS_RINGS_READ_H

#include "memory.h"

#include <stddef.h>

struct ring_counts {
    uint64_t records;
    uint64_t read;        /* bytes of records and of padding */
    uint64_t overwritten; /* bytes overwritten before they were read */
    uint64_t damaged;     /* bytes that are no records: a program has overwritten them by mistake */
    uint64_t
        jumps; /* times that `committed` went backwards; the reader continues at the new value */
};

struct ring_reader {
    struct ring ring;
    uint64_t at; /* the current position: the reader has read or counted all bytes before */
    struct ring_counts counts;
    char *copy; /* the bytes of the last ring_read() */
    size_t room;
    size_t next;      /* the offset of `at` in the copy */
    size_t next_size; /* the size of the record there; 0: the copy has no more records */
};

/* A record, as its head and its trailer describe it. The payload points into the copy. */
struct ring_entry {
    unsigned event; /* enum blkin_packed_event, or RING_ORIGINAL + type */
    uint32_t pid;
    const char *payload;
    size_t length;
    uint32_t pid_namespace; /* namespace of the pid */
};

/* from: the first position. 0: the oldest record; older bytes count as overwritten. */
void ring_reader_open(struct ring_reader *reader, struct ring ring, uint64_t from);
void ring_reader_close(struct ring_reader *reader);

/* Returns the committed position: programs have written all bytes before this position. */
uint64_t ring_committed(struct ring ring);

/* Copies the bytes between two positions. The caller ensures that end - from <= ring.size. */
void ring_copy(struct ring ring, uint64_t from, uint64_t end, char *copy);

/* Returns the entry of a copied record. */
struct ring_entry ring_entry_of(const char *begin, uint64_t trailer);

/* Copies the records from the current position on. Records of an earlier copy are copied again,
 * unless ring_pass() has skipped them. Returns false when out of memory: then the position stays.
 */
bool ring_read(struct ring_reader *reader);

/* Gets the record at the current position. Returns false at the end of the copy. */
bool ring_peek(struct ring_reader *reader, struct ring_entry *entry);

/* Advances the position to the next record. */
void ring_pass(struct ring_reader *reader);

#endif
