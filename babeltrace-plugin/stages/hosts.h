/*
 * A stage after the stage `join`: tags spans with the state of their hosts (hosts/host_tags.h). It
 * takes metrics and spans, and passes on tagged spans.
 *
 * A span of min_ns or longer is held if its host sends metrics. The span waits for a sample after
 * its end, of each group that gives it tags. That takes one period of the slowest group as a rule,
 * and two periods at most. Other spans pass at once. The stage does not wait for a group with a
 * period above HOST_WAIT_PERIOD_NS, or for a group that was silent for HOST_SILENT_PERIODS.
 *
 * The name identifies a host, because metrics and spans may come from different sessions. A span's
 * host is the value of its first tag "lttng.host", which the assembler adds.
 *
 * Memory is bounded: samples without room are counted. Without room for a span, the stage passes on
 * spans early, beginning with the host whose spans began to wait first. Waiting is in trace time.
 * No decision depends on seeds or addresses: the same trace read again gives the same spans in the
 * same order. Not thread-safe.
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
    uint64_t max_history_bytes; /* for hosts and samples */
    uint64_t max_held_bytes;    /* for held spans */
};

#define HOSTS_HISTORY_BYTES (UINT64_C(32) << 20)
#define HOSTS_HELD_BYTES    (UINT64_C(32) << 20)

struct hosts_counts {
    uint64_t unnamed;       /* samples whose names had not arrived yet */
    uint64_t invalid;       /* impossible samples */
    uint64_t resets;        /* samples with a counter that is smaller than before */
    uint64_t no_room;       /* samples without memory */
    uint64_t spans_tagged;  /* with the tags that were known */
    uint64_t spans_early;   /* passed on before their last sample, to make room */
    uint64_t tags_lost;     /* no room in the span, or no memory */
    uint64_t spans_held;    /* current number */
    uint64_t held_bytes;    /* current size of held spans */
    uint64_t history_bytes; /* current size of hosts and samples */
};

/* The stage passes all spans until metrics arrive. Returns NULL when out of memory. */
struct stage *hosts_stage_new(const struct hosts_options *options);

/* Adds an EVENT_METRIC. time_ns: of the sample, by the clock of spans; now_ns: trace time. */
void hosts_stage_add(struct stage *stage, const struct event *event, int64_t time_ns,
                     int64_t now_ns);

struct hosts_counts hosts_stage_counts(const struct stage *stage);

#endif
