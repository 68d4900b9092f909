/*
 * Reads a ring while programs go on writing to it: copies what is new, and walks the copy by
 * record. tracepoints/format/ring.h has the rule that tells which bytes of a copy are whole.
 *
 * In bytes, of all that was written from the reader's beginning to its place:
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
    uint64_t read;        /* bytes of records, and of what fills the end of the ring */
    uint64_t overwritten; /* bytes that were gone before they were read */
    uint64_t damaged;     /* bytes that are no records: a program has scribbled over them */
    uint64_t jumps;       /* places where no ring can be: the reader went on from there */
};

struct ring_reader {
    struct ring ring;
    uint64_t at; /* read up to here */
    struct ring_counts counts;
    char *copy; /* of [at, end) */
    size_t room;
    size_t next;      /* in the copy */
    size_t next_size; /* of the record there; 0: there is none */
};

/* Lives as long as the copy that it is in. */
struct ring_entry {
    unsigned event; /* enum blkin_packed_event, or RING_ORIGINAL and what follows it */
    uint32_t pid;
    const char *payload;
    size_t length;
    uint32_t pid_ns; /* in which the pid is */
};

/* from 0: all that the ring holds, and what is no longer there counts as overwritten. */
void ring_reader_open(struct ring_reader *reader, struct ring ring, uint64_t from);
void ring_reader_close(struct ring_reader *reader);

/* Where the ring ends now. */
uint64_t ring_end(struct ring ring);

/* The bytes from one position to another, which are not more than the ring has. */
void ring_copy(struct ring ring, uint64_t from, uint64_t end, char *copy);

/* Of a copied record that begins there. */
struct ring_entry ring_entry_of(const char *begin, uint64_t trailer);

/* Copies what is new. Returns false when out of memory: then nothing has changed. */
bool ring_read(struct ring_reader *reader);

/* The record at the reader's place. Returns false if the copy has none. */
bool ring_peek(struct ring_reader *reader, struct ring_entry *entry);

/* Goes on to the next one. What was not passed is copied again by ring_read(). */
void ring_pass(struct ring_reader *reader);

#endif
