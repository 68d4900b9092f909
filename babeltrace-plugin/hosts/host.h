/*
 * What a span's host did meanwhile: samples of hosts' metrics in, spans in, and out again with tags
 * (host_tags.h). Finished spans pass through here behind joining.
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
#ifndef BLKIN_CORE_HOST_H
#define BLKIN_CORE_HOST_H

#include "babeltrace-plugin/spans/event.h"
#include "babeltrace-plugin/spans/span.h"
#include "babeltrace-plugin/spans/state.h"

#define HOST_WAIT_PERIOD_NS INT64_C(5000000000)
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
    uint64_t anew;          /* that have a counter which is smaller than before */
    uint64_t no_room;       /* for which there was no memory */
    uint64_t spans_tagged;  /* with what was known: */
    uint64_t spans_early;   /* of these: before the sample that they waited for, to make room */
    uint64_t tags_lost;     /* there was no room in the span */
    uint64_t spans_held;    /* now */
    uint64_t held_bytes;    /* now, */
    uint64_t history_bytes; /* and of the samples */
};

struct hosts;

/* Is told of each span that was held. It is valid during the call only, and its log is malloc's. */
typedef void hosts_deliver_fn(void *context, struct span *span);

/* Returns NULL when out of memory. */
struct hosts *hosts_new(const struct hosts_options *options, hosts_deliver_fn *deliver,
                        void *context);

/* What is held is not given out: see hosts_flush_some(). NULL is allowed. */
void hosts_free(struct hosts *hosts);

/* An EVENT_METRIC; time_ns: of what it tells, by the clock that spans have. */
void hosts_add(struct hosts *hosts, const struct event *event, int64_t time_ns, int64_t now_ns);

/* Of hosts_wants(). */
bool hosts_knows(const struct hosts *hosts, const struct span *span);

struct hosts_gate {
    int64_t min_ns;
    bool is_open; /* metrics of any host have come */
};

/* Is it to be given to hosts_hold()? */
static inline bool hosts_wants(const struct hosts *hosts, const struct span *span)
{
    const struct hosts_gate *gate = (const struct hosts_gate *)(const void *)hosts;

    return gate->is_open &&
           (uint64_t)span->end_ns - (uint64_t)span->start_ns >= (uint64_t)gate->min_ns &&
           hosts_knows(hosts, span);
}

/* Takes a copy; it is given to deliver(), maybe at once. */
void hosts_hold(struct hosts *hosts, const struct span *span, int64_t now_ns);

/* Trace time has reached now_ns: gives out what need not wait any longer. */
void hosts_advance(struct hosts *hosts, int64_t now_ns);

/* No other sample will come: gives out so many spans, and returns whether there are more. */
bool hosts_flush_some(struct hosts *hosts, unsigned spans);

struct hosts_counts hosts_counts(const struct hosts *hosts);

/*
 * Of a recording in several traces: samples, and spans that wait at a trace's end, are the next
 * one's. Only hosts_save() and hosts_free() may follow.
 */
void hosts_hand_over(struct hosts *hosts);

struct assembler;

void hosts_save(const struct hosts *hosts, struct assembler *assembler,
                struct state_writer *writer);

/* Into a new one; the assembler is restored already. */
void hosts_restore(struct hosts *hosts, struct assembler *assembler, struct state_reader *reader);

#endif
