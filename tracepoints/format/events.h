/*
 * The payloads of the events of provider "blkin", as they lie in the ring buffer. doc/format.md
 * describes the format to the byte, and what may be added to it without a new version. Whatever is
 * changed here is changed there, and in tests/format.
 *
 * Each struct is followed by NUL-terminated strings, without padding. fields.h describes them
 * one by one under these names, to LTTng and in metadata of traces: to every reader this is an
 * ordinary event of integers and strings. libblkin writes the struct, so that an event costs LTTng
 * one copy instead of one call per field: see doc/performance.md.
 *
 * What a field costs its reader goes by the field, not by its bytes. So fields of their own have
 * only what people filter by and look at; all else is in one text, "packed".
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_EVENTS_H
#define BLKIN_EVENTS_H

#include <stdint.h>

/* The first digit of every packed text. A reader refuses what is newer. */
#define BLKIN_FORMAT_VERSION 1

/* Of the head of blkin:span and blkin:begin, and of the others; of the version and the thread that
 * each begins with; of a tail without its ip. */
#define BLKIN_HEAD_SIZE        51
#define BLKIN_DETAIL_HEAD_SIZE 35
#define BLKIN_THREAD_SIZE      11
#define BLKIN_TAIL_SIZE        5

#define BLKIN_THREAD_BITS 60
#define BLKIN_DROPPED_MAX 0xfff

/*
 * For readers, flags and kind are one field: "flags", 16 bits in the processor's order. Its upper
 * half is the kind.
 */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BLKIN_FLAGS_AND_KIND          \
    uint8_t flags; /* BLKIN_SPAN_* */ \
    uint8_t kind   /* enum blkin_kind */
#else
#define BLKIN_FLAGS_AND_KIND \
    uint8_t kind;            \
    uint8_t flags
#endif

/*
 * blkin:span, at the end of a span: it began duration ns before the moment in its head.
 * Strings: name, packed (head, log, tail), service.
 */
struct blkin_span_event {
    uint64_t trace_id;
    uint64_t parent_id; /* 0: none */
    uint64_t duration;  /* ns */
    BLKIN_FLAGS_AND_KIND;
} __attribute__((packed));

#define BLKIN_SPAN_DEBUG    1  /* recorded against sampling */
#define BLKIN_SPAN_REMOTE   2  /* the parent is in another process */
#define BLKIN_SPAN_ERROR    4  /* the span, or a step of it, has a tag "error" */
#define BLKIN_SPAN_STEP     8  /* a step that found no room in the log of its span */
#define BLKIN_SPAN_STREAMED 16 /* the span, and so its steps, are streaming events too */

/*
 * blkin:begin, as it happens: the span, or step, began at the moment in its head.
 * Strings: name, packed (head, tail), service.
 */
struct blkin_begin_event {
    uint64_t trace_id;
    uint64_t parent_id;
    BLKIN_FLAGS_AND_KIND;
} __attribute__((packed));

/*
 * blkin:end, blkin:tag and blkin:annotation_SEVERITY, of a span that blkin:begin has announced.
 * Strings: packed (head; of blkin:tag one record); of annotation after it: text.
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

/* "blkslow1" in little endian's order. Its digit is the version of all that follows it. */
#define BLKIN_SLOW_MARK    UINT64_C(0x31776f6c736b6c62)
#define BLKIN_SLOW_VERSION '1'

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
