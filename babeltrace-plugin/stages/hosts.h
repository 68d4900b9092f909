/*
 * What a span's host did meanwhile, a stage behind joining: samples of hosts' metrics in, spans in,
 * and out again with tags (hosts/host_tags.h).
 *
 * A span as long as min_ns, of a host whose metrics come, waits for a sample that is of a time
 * after its end, of each group that it is tagged with: for the longest of their periods as a rule,
 * and for two of them at most. No other span is touched or delayed. A group that is read more
 * rarely than each HOST_WAIT_PERIOD_NS is not waited for, nor one that has not come for
 * HOST_SILENT_PERIODS.
 *
 * A host is known by its name: metrics and spans may be of several sessions. That of a span is what
 * its first tag "lttng.host" tells, which is the assembler's.
 *
 * Memory is bounded: more groups than there is room for are counted, and what has waited for
 * longest gets no later sample. Waiting is in trace time. Nothing that decides depends on seeds or
 * addresses: the same trace read again gives the same spans in the same order. Not thread-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_STAGES_HOSTS_H
#define BLKIN_STAGES_HOSTS_H

#include "babeltrace-plugin/spans/event.h"
#include "chain.h"

#define HOST_SILENT_PERIODS 4

struct hosts_options {
    int64_t min_ns;
    uint64_t max_history_bytes; /* for hosts and samples, */
    uint64_t max_held_bytes;    /* and for spans that wait */
};

#define HOSTS_HISTORY_BYTES (UINT64_C(32) << 20)
#define HOSTS_HELD_BYTES    (UINT64_C(32) << 20)

struct hosts_counts {
    uint64_t unnamed;       /* samples whose names had not come yet */
    uint64_t invalid;       /* that make no sense */
    uint64_t anew;          /* samples with a counter that is smaller than before */
    uint64_t no_room;       /* for which there was no memory */
    uint64_t spans_tagged;  /* with what was known: */
    uint64_t spans_early;   /* of these: before the sample that they waited for, to make room */
    uint64_t tags_lost;     /* there was no room in the span */
    uint64_t spans_held;    /* now */
    uint64_t held_bytes;    /* now, */
    uint64_t history_bytes; /* and of the samples */
};

/* It is off where no span is to have tags. Returns NULL when out of memory. */
struct stage *hosts_stage_new(const struct hosts_options *options);

/* An EVENT_METRIC; time_ns: of what it tells, by the clock that spans have. */
void hosts_stage_add(struct stage *stage, const struct event *event, int64_t time_ns,
                     int64_t now_ns);

struct hosts_counts hosts_stage_counts(const struct stage *stage);

#endif
