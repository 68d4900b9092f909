/*
 * Is the metadata of a trace (TSDL of CTF 1.8, as LTTng writes it) whole, as far as it has come?
 *
 * LTTng sends it in packets of 4 KiB, cut anywhere, and waits for one of them only before it sends
 * what it describes. babeltrace2 takes what there is: it ends with an error where a block is cut or
 * a stream class is not there yet, and with a signal where there is none at all.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_METADATA_H
#define BLKIN_LIVE_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct metadata {
    bool is_other;             /* no packets of TSDL: nothing is known of it */
    uint64_t declared, wanted; /* stream classes: that are there, and that events are of; by bits */
    unsigned depth;            /* of braces */
    enum { IN_CODE, IN_TEXT, IN_COMMENT, IN_LINE_COMMENT } place;
    char last; /* character */
    enum { OTHER_BLOCK, CLOCK_BLOCK, STREAM_BLOCK, EVENT_BLOCK } block;
    uint64_t offset;    /* of the clock, since 1970; 0: not known */
    bool has_id;        /* the stream block */
    char statement[64]; /* its beginning, without blanks, at depth 0 or 1 */
    size_t length;      /* of all of it */
};

/* More of it: whole packets, as the relay daemon gives them. All 0 at first. */
void metadata_add(struct metadata *metadata, const unsigned char *packets, size_t size);

/* Does it end between two blocks, with a stream class for each event, and one at all? */
bool metadata_is_whole(const struct metadata *metadata);

/* Does it have that stream class? UINT64_MAX: it is not known which one. */
bool metadata_has(const struct metadata *metadata, uint64_t stream_class);

#endif
