/*
 * The payloads of the events of provider "blkin", byte for byte as in the ring buffer. The page
 * doc/format.md describes the format, and lists the additions that need no new version. Change this
 * file, doc/format.md and tests/format together.
 *
 * NUL-terminated strings follow each struct, without padding. fields.h names the fields for LTTng
 * and for metadata: readers see usual events of integers and strings. The library writes the whole
 * payload, so that an event costs LTTng one copy and not a call per field: see doc/performance.md.
 *
 * Only data that people filter by or look at has a field of its own. All other data is in the text
 * "packed", because each field costs reading time, and bytes cost little.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_EVENTS_H
#define BLKIN_EVENTS_H

#include <stdint.h>

/* The first digit of each packed text. Readers refuse newer versions. */
#define BLKIN_FORMAT_VERSION 1

/* Sizes of parts of packed texts. */
#define BLKIN_HEAD_SIZE        51 /* head of blkin:span and blkin:begin */
#define BLKIN_DETAIL_HEAD_SIZE 35 /* head of blkin:end, blkin:tag and blkin:annotation_SEVERITY */
#define BLKIN_THREAD_SIZE      11 /* version and thread, with which each head begins */
#define BLKIN_TAIL_SIZE        5  /* tail without the ip */

#define BLKIN_THREAD_BITS 60    /* of the random number of a thread */
#define BLKIN_DROPPED_MAX 0xfff /* in a head: that many dropped records of the span, or more */

/* Readers see flags and kind as one field, "flags": 16 bits in the processor's byte order, with the
 * kind in the upper half. */
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
 * blkin:span, at the end of a span. The head of packed has the time of the end.
 * Strings: name, packed (head, log, tail), service.
 */
struct blkin_span_event {
    uint64_t trace_id;
    uint64_t parent_id; /* 0: none */
    uint64_t duration;  /* ns */
    BLKIN_FLAGS_AND_KIND;
} __attribute__((packed));

#define BLKIN_SPAN_DEBUG    1  /* recorded whatever the sampling policy is */
#define BLKIN_SPAN_REMOTE   2  /* the parent is in another process */
#define BLKIN_SPAN_ERROR    4  /* the span, or a step of it, has a tag "error" */
#define BLKIN_SPAN_STEP     8  /* a step that found no room in its span's log */
#define BLKIN_SPAN_STREAMED 16 /* the span is also recorded as blkin:begin to blkin:end */

/*
 * blkin:begin, when a span or a step begins. The head of packed has the time of the begin.
 * Strings: name, packed (head, tail), service.
 */
struct blkin_begin_event {
    uint64_t trace_id;
    uint64_t parent_id;
    BLKIN_FLAGS_AND_KIND;
} __attribute__((packed));

/*
 * blkin:end, blkin:tag and blkin:annotation_SEVERITY, of a span or step with blkin:begin. Strings:
 * packed (a head, and in blkin:tag one record after it); annotations also have text.
 */
struct blkin_detail_event {
    uint64_t trace_id;
} __attribute__((packed));

/*
 * blkin:slow, an alarm, at the end of a span: the span or a step of it matches a rule of slow
 * spans, or the program wants to keep the span. Also without a span, to report suppressed alarms:
 * then the fields from trace_id to monotonic are 0. Strings: why, name, service.
 */
struct blkin_slow_event {
    uint64_t mark; /* BLKIN_SLOW_MARK; the agent checks it */
    uint64_t trace_id;
    uint64_t trace_id_high;
    uint64_t span_id;
    uint64_t duration;  /* ns */
    uint64_t monotonic; /* the end of the span or step: CLOCK_MONOTONIC in ns */
    uint32_t pid;
    uint32_t sequence; /* the process's alarms are numbered from 1: a gap is a loss */
    uint32_t dropped;  /* alarms of rule `why` that the cap suppressed since the last one */
} __attribute__((packed));

/* "blkslow1" in little endian. The last digit is the version of the fields after it. */
#define BLKIN_SLOW_MARK    UINT64_C(0x31776f6c736b6c62)
#define BLKIN_SLOW_VERSION '1'

/* blkin:process, at most once a second: while the process begins or ends spans, or calls
 * blkin_heartbeat(). Strings: service, version, sampling. */
struct blkin_process_event {
    uint64_t realtime;  /* CLOCK_REALTIME, ns since the Unix epoch */
    uint64_t monotonic; /* CLOCK_MONOTONIC at the same moment, ns */
    uint64_t thread;
    uint32_t sequence;
    uint32_t pid;
} __attribute__((packed));

/*
 * blkin:metric, of a host: one sample of a group of metrics, for one instance if the group has
 * several (disks, interfaces, processes). Values are those of the kernel. Counters are cumulative:
 * a reader takes the difference of two samples, so a lost sample costs resolution, but no counts.
 * Strings: group, instance, names, values.
 *
 * instance: "-" if the group has only one. (No text is empty: babeltrace2 2.0.4 would show the text
 * of an earlier event.)
 *
 * names: NAME:UNIT:KIND separated by blanks, where KIND is c (counter) or g (gauge). They are in
 * the first event of an instance, after a change, and every 5 s. In other events names is "-".
 *
 * values: unsigned decimal numbers separated by blanks, in the order of the names.
 */
struct blkin_metric_event {
    uint64_t monotonic; /* time of reading: CLOCK_MONOTONIC in ns */
    uint64_t thread;    /* random number of the thread */
    uint32_t sequence;  /* the thread's metrics are numbered from 1: a gap is a loss */
    uint32_t period_ms; /* interval of the group's samples */
} __attribute__((packed));

#endif
