/*
 * The payloads of the events of provider "blkin", as they lie in the ring buffer.
 *
 * Each struct is followed by NUL-terminated strings, without padding. The fields are described to
 * LTTng, one by one and under these names, by blkin_events.c: to every reader this is an ordinary
 * event of integers and strings. libblkin writes the struct, so that an event costs LTTng one copy
 * instead of one call per field: see doc/performance.md.
 *
 * What a field costs its reader goes by the field, not by its bytes. So fields of their own have
 * only what people filter by and look at; all else is in one text, "packed": a head of fixed
 * length, then what has any length. It is of printable characters, so that every reader shows it.
 *
 * doc/format.md tells the same to who writes a reader or a writer, to the byte, and what may be
 * added without a new version. Whatever is changed here is changed there, and in tests/format.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_EVENTS_H
#define BLKIN_EVENTS_H

#include <stdint.h>

/* clang-format off */
/*
 * Numbers in packed texts: a digit is '0' plus its value, the least digit comes first. Those here
 * are of base 64 ('0' to 'o'), but for the numbers that are said to be of base 16 ('0' to '?').
 *
 * Every packed text begins with the version of the format, one digit, and the thread in ten:
 *
 *   version        BLKIN_FORMAT_VERSION; a reader refuses what is newer
 *   thread         60 random bits, not 0: number of the recording thread
 *
 * In blkin:span and blkin:begin the head goes on with five words of 48 bits in 8 digits each:
 *
 *   word 1         trace_id_high, its lower 48 bits
 *   word 2         its upper 16 bits; sequence: 32 bits
 *   word 3         span_id, its lower 48 bits
 *   word 4         its upper 16 bits; sampled: 20 bits; dropped: 12 bits
 *   word 5         monotonic: the lower 48 bits
 *
 *   trace_id_high  the upper half of the trace id
 *   sequence       of this thread's events, those that stream and the others: a gap is a loss
 *   sampled        share of the traces that is recorded, in millionths; 0: not known
 *   dropped        annotations, tags, links and steps that found no room
 *   monotonic      what the event tells of, a span's end or its begin, as CLOCK_MONOTONIC has it
 *                  in ns: it comes before the event by the difference to the event's time
 *
 * The tail is that of the span's endpoint: its ip, then the port in 3 digits and the length of ip
 * in 2.
 *
 * Between them blkin:span has the log, a list of records, here with blanks between their parts:
 *
 *   0 LL TTTTTTTT text                  annotation of severity 0 (to 7), T ns after the start
 *                                       (48 bits, two's complement); L: length of the text
 *   ( NN TTTTTTTT name                  a step begins; N: length of the name + 128 * kind
 *   ) TTTTTTTT                          the step that began last ends
 *   # NNNN                              the number of the next step, where it is not that after
 *                                       the one before it; the first is 1. First of all in a step's
 *                                       own event: its own number
 *   T DDDDDDDD                          first, or after such a number: all times here are counted
 *                                       from D ns after the start (two's complement)
 *   o                                   the step that this is told of ended only with its span: in
 *                                       its own event, or in blkin:tag before its blkin:end
 *   s KK VV key value                   tag; lengths of key and value
 *   I KK BBBBBBBBBBB key                tag of type int64; B: its bits
 *   U, D, B                             the same of type uint64, double (IEEE 754), bool
 *   l HHHHHHHHHHHHHHHH TTTTTTTTTTTTTTTT SSSSSSSSSSSSSSSS
 *                                       link: high and low half of a trace id, span id, of base 16
 *   r PPPPPPPPPPPPPPPP II NN ip name    the remote endpoint: port of base 16, lengths of ip, name
 *
 * A kind of record that is added later is a letter, LL, and L bytes, so that a reader that does not
 * know the letter passes over it.
 *
 * Steps are nested like brackets, and each is a span: what stands between its two records is its
 * own, its parent is the step around it or the event's span, its id is that of step_id.h. Those
 * that are still open at the end of the log ended only with the span.
 */
/* clang-format on */

/*
 * blkin:span, at the end of a span: it began duration ns before monotonic.
 * Strings: name, packed, service.
 */
struct blkin_span_event {
    uint64_t trace_id;
    uint64_t parent_id; /* 0: none */
    uint64_t duration;  /* ns */
    uint8_t flags;      /* BLKIN_SPAN_*: with kind one field, "flags", of which kind is bits 8 up */
    uint8_t kind;       /* enum blkin_kind */
} __attribute__((packed));

#define BLKIN_SPAN_DEBUG  1 /* recorded against sampling */
#define BLKIN_SPAN_REMOTE 2 /* the parent is in another process */
#define BLKIN_SPAN_ERROR  4 /* the span, or a step of it, has a tag "error" */
#define BLKIN_SPAN_STEP   8 /* a step that found no room in the log of its span */
#define BLKIN_SPAN_STREAMED \
    16 /* the span, and so its steps, are recorded as streaming events too */

/*
 * blkin:begin, as it happens: the span, or step, began at monotonic.
 * Strings: name, packed, service.
 *
 * The streaming events have a sequence of their own in each thread: a session that has only the
 * others sees no gap.
 */
struct blkin_begin_event {
    uint64_t trace_id;
    uint64_t parent_id;
    uint8_t flags;
    uint8_t kind;
} __attribute__((packed));

/*
 * blkin:end, blkin:tag and blkin:annotation_SEVERITY, of a span that blkin:begin has announced.
 * Strings: packed; of annotation after it: text.
 *
 * The head goes on with three words: span_id, its lower 48 bits; its upper 16 bits and sequence;
 * monotonic. After it, blkin:tag has one record of those above but for annotations and
 * steps, or one of
 *
 *   e PPPPPPPPPPPPPPPP II NN ip name    the span's own endpoint
 *   n NN name                           the span has another name now
 *   t DDDDDDDDDDDDDDDD                  the start was moved, to D ns before where it was (two's
 *                                       complement, base 16)
 *
 * What the stream of a span does not have, as steps too deep, is counted by a tag "blkin.dropped".
 */
struct blkin_detail_event {
    uint64_t trace_id;
} __attribute__((packed));

/*
 * blkin:slow, at the end of a span that a rule of blkin_set_slow() fits, or that the program wants
 * to be kept. Strings: why, name, service. It is for an alarm: who watches reads these, nothing
 * else, and finds them in packets by their mark, whatever is around them.
 */
struct blkin_slow_event {
    uint64_t mark;     /* BLKIN_SLOW_MARK */
    uint64_t trace_id; /* 0, as all below to monotonic: it only tells of `dropped` */
    uint64_t trace_id_high;
    uint64_t span_id;
    uint64_t duration;  /* ns */
    uint64_t monotonic; /* the span's end, as CLOCK_MONOTONIC has it in ns */
    uint32_t pid;
    uint32_t sequence; /* of this process's events of this kind, from 1: a gap is a loss */
    uint32_t dropped; /* spans that the rule `why` fits and its cap has held back, since its last */
} __attribute__((packed));

#define BLKIN_SLOW_MARK UINT64_C(0x31776f6c736b6c62) /* "blkslow1" in little endian's order */

#define BLKIN_FORMAT_VERSION 1

/* Bytes of the heads, of the version and the thread that they begin with, and of a tail without its
 * ip. */
#define BLKIN_HEAD_SIZE        51
#define BLKIN_DETAIL_HEAD_SIZE 35
#define BLKIN_THREAD_SIZE      11
#define BLKIN_TAIL_SIZE        5

#define BLKIN_THREAD_BITS 60

#define BLKIN_DROPPED_MAX 0xfff

/* blkin:process, once a second while the process records. Strings: service, version, sampling. */
struct blkin_process_event {
    uint64_t realtime;  /* CLOCK_REALTIME, ns since the Unix epoch */
    uint64_t monotonic; /* CLOCK_MONOTONIC at the same moment, ns */
    uint64_t thread;
    uint32_t sequence;
    uint32_t pid;
} __attribute__((packed));

/*
 * blkin:metric, of a host: one sample of a group of metrics, of one instance where a group has
 * several (a disk, an interface, a process). Values are as the kernel has them, counters are
 * cumulative: what was meanwhile is in the difference of two samples, so that a lost one costs
 * resolution and no counts. Strings: group, instance, names, values.
 *
 *   instance "-" where the group has but one. (No text is empty: babeltrace2 2.0.4 shows what
 *            an earlier event had instead.)
 *   names    in the first event of a group's instance, when they have changed, and each 5 s:
 *            NAME:UNIT:KIND with blanks between, KIND being c (counter) or g (gauge); else "-"
 *   values   unsigned decimal numbers with blanks between, in the order of the names
 */
struct blkin_metric_event {
    uint64_t monotonic; /* when it was read, as CLOCK_MONOTONIC has it in ns */
    uint64_t thread;    /* random number of the process */
    uint32_t sequence;  /* of this process's events of this kind, from 1: a gap is a loss */
    uint32_t period_ms; /* that the group is read at */
} __attribute__((packed));

#endif
