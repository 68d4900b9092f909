/*
 * Tells whether the received metadata of a trace (TSDL of CTF 1.8, as LTTng writes it) is complete.
 *
 * LTTng sends metadata in packets of 4 KiB that may end anywhere. It sends events after the first
 * packet that concerns them. At a cut block or a missing stream class, babeltrace2 fails. Without
 * any metadata, babeltrace2 crashes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_METADATA_H
#define BLKIN_LIVE_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct metadata {
    bool is_other;             /* the packets are not TSDL: the metadata counts as whole */
    uint64_t declared, wanted; /* a bit for each stream class: declared, and used by an event */
    unsigned depth;            /* open braces */
    enum { IN_CODE, IN_TEXT, IN_COMMENT, IN_LINE_COMMENT } state;
    char last; /* the last character */
    enum { OTHER_BLOCK, CLOCK_BLOCK, STREAM_BLOCK, EVENT_BLOCK } block;
    uint64_t offset;    /* the clock's offset since 1970; 0: unknown */
    bool has_id;        /* the stream block has an id */
    char statement[64]; /* the beginning of the statement, without blanks, at depth 0 or 1 */
    size_t length;      /* of `statement` */
};

/* Adds whole packets, as the relay daemon sends them. The struct begins with zeros. */
void metadata_add(struct metadata *metadata, const unsigned char *packets, size_t size);

/* Returns whether the metadata ends between two blocks, and declares at least one stream class and
 * the stream class of each event. */
bool metadata_is_whole(const struct metadata *metadata);

/* Returns whether the stream class is declared. UINT64_MAX: any class. */
bool metadata_has(const struct metadata *metadata, uint64_t stream_class);

#endif
