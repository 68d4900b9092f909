/*
 * The payloads of the events of provider "blkin", as they lie in the ring buffer.
 *
 * Each struct is followed by NUL-terminated strings, without padding. The fields are described to
 * LTTng, one by one and under these names, by blkin_events.c: to every reader this is an ordinary
 * event of integers and strings. libblkin writes the struct, so that an event costs LTTng one copy
 * instead of one call per field: see doc/performance.md.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_EVENTS_H
#define BLKIN_EVENTS_H

#include <stdint.h>

/* clang-format off */
/*
 * blkin:span, at the end of a span: it began duration ns before monotonic.
 * Strings: name, log, service, ip. The log is a list of records, here with blanks between their
 * parts:
 *
 *   a S LLLL TTTTTTTTTTTT text          annotation of severity S (a digit), T ns after the start
 *                                       (48 bits, two's complement); L: length of the text
 *   s KK VV key value                   tag; lengths of key and value
 *   i KK BBBBBBBBBBBBBBBB key           tag of type int64; B: its bits
 *   u, d, b                             the same of type uint64, double (IEEE 754), bool
 *   l HHHHHHHHHHHHHHHH TTTTTTTTTTTTTTTT SSSSSSSSSSSSSSSS
 *                                       link: high and low half of a trace id, span id
 *   r PPPPPPPPPPPPPPPP II NN ip name    the remote endpoint: port, lengths of ip and name
 *   e PPPPPPPPPPPPPPPP II NN ip name    the span's own endpoint        (only in blkin:tag)
 *   n NN name                           the span has another name now  (only in blkin:tag)
 *   t DDDDDDDDDDDDDDDD                  the start was moved, to D ns before where it was (two's
 *                                       complement): annotations before this are that much later
 *
 * KK, VV, II and NN are of base 64 and all other numbers of base 16, the least digit first; a digit
 * is '0' plus its value, so those of base 16 are 0123456789:;<=>? for 0 to 15.
 */
/* clang-format on */
struct blkin_span_event {
    uint64_t trace_id_high;
    uint64_t trace_id;
    uint64_t span_id;
    uint64_t parent_id;
    uint64_t duration;  /* ns */
    uint64_t monotonic; /* its end: CLOCK_MONOTONIC, ns */
    uint64_t thread;    /* random number of the recording thread */
    uint32_t sequence;  /* of this thread's events: a gap is a loss */
    uint32_t sampled;   /* share of the traces that is recorded, in millionths; 0: not known */
    uint16_t dropped;   /* annotations, tags and links that found no room */
    uint8_t kind;       /* enum blkin_kind */
    uint8_t flags;      /* BLKIN_SPAN_* */
    uint16_t port;
} __attribute__((packed));

#define BLKIN_SPAN_DEBUG  1 /* recorded against sampling */
#define BLKIN_SPAN_REMOTE 2 /* the parent is in another process */

/*
 * blkin:begin, as it happens: the span began at monotonic. Strings: name, service, ip.
 *
 * The streaming events are a stream of their own, of whose thread number the lowest bit is set: a
 * session that has only the others sees no gap.
 */
struct blkin_begin_event {
    uint64_t trace_id_high;
    uint64_t trace_id;
    uint64_t span_id;
    uint64_t parent_id;
    uint64_t monotonic;
    uint64_t thread;
    uint32_t sequence;
    uint32_t sampled;
    uint16_t port;
    uint8_t kind;
    uint8_t flags;
} __attribute__((packed));

/*
 * blkin:end, blkin:tag and blkin:annotation_SEVERITY, of a span that blkin:begin has announced.
 * What it tells of happened at monotonic. String of annotation: text. Of tag: log, with one record
 * of the form above.
 */
struct blkin_detail_event {
    uint64_t trace_id;
    uint64_t span_id;
    uint64_t monotonic;
    uint64_t thread;
    uint32_t sequence;
} __attribute__((packed));

/* blkin:process, once a second while the process records. Strings: service, version, sampling. */
struct blkin_process_event {
    uint64_t realtime;  /* CLOCK_REALTIME, ns since the Unix epoch */
    uint64_t monotonic; /* CLOCK_MONOTONIC at the same moment, ns */
    uint64_t thread;
    uint32_t sequence;
    uint32_t pid;
} __attribute__((packed));

#endif
