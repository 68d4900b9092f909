/*
 * Reads a ring while programs go on writing to it: copies new records, and walks the copy.
 * tracepoints/format/ring.h has the rule that tells which bytes of a copy are whole.
 *
 * For the bytes from the reader's first position to its current one, until the first jump:
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
    uint64_t read;        /* bytes of records and of padding at the end of the ring */
    uint64_t overwritten; /* bytes overwritten before they were read */
    uint64_t damaged;     /* bytes that are no records: a program has overwritten them by mistake */
    uint64_t jumps;       /* impossible committed positions: the reader continued from there */
};

struct ring_reader {
    struct ring ring;
    uint64_t at; /* position: all records before it were read */
    struct ring_counts counts;
    char *copy; /* of the ring's bytes; its byte `next` has the position `at` */
    size_t room;
    size_t next;      /* offset of the next record in the copy */
    size_t next_size; /* size of that record; 0: none */
};

/* A record as the reader sees it: the fields of struct ring_record and of its trailer. Valid as
 * long as the copy that it points into. */
struct ring_entry {
    unsigned event; /* enum blkin_packed_event, or RING_ORIGINAL + type */
    uint32_t pid;
    const char *payload;
    size_t length;
    uint32_t pid_ns; /* namespace of the pid */
};

/* from: 0 begins with the oldest record; bytes that are gone count as overwritten. */
void ring_reader_open(struct ring_reader *reader, struct ring ring, uint64_t from);
void ring_reader_close(struct ring_reader *reader);

/* Returns the committed position of the ring. */
uint64_t ring_end(struct ring ring);

/* Copies the bytes between two positions, at most the ring's size. */
void ring_copy(struct ring ring, uint64_t from, uint64_t end, char *copy);

/* The entry of a copied record. */
struct ring_entry ring_entry_of(const char *begin, uint64_t trailer);

/* Copies new records. Returns false when out of memory: the position stays, and a later call copies
 * the same records. */
bool ring_read(struct ring_reader *reader);

/* The record at the reader's position. Returns false at the end of the copy. */
bool ring_peek(struct ring_reader *reader, struct ring_entry *entry);

/* Goes on to the next record. The next ring_read() copies records again that were not passed. */
void ring_pass(struct ring_reader *reader);

#endif
