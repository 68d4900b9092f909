/*
 * The assembler: decoded events in, finished spans out, nothing lost without a count.
 *
 * A blkin:span event is a whole span and is finished at once, after the steps that are in it, each
 * of which is a span. The streaming events of a span are put together until its blkin:end; without
 * one it is finished, marked incomplete, after a time-out.
 *
 * Where both forms are recorded, a span is given out once, as it was streamed, and the whole one is
 * counted: libblkin records that before blkin:end, so that the streamed one is still open, and is
 * known by trace id, span id, kind and host. In two sessions, whose clocks may differ by some
 * microseconds, it may come just after: then the streamed one is known as recent.h tells. A
 * streamed span that was given out as incomplete is no reason to withhold the whole one that comes
 * after it.
 *
 * Of the original's events, one span per (trace id, span id, endpoint) is made. These events have
 * no "end", so a span is finished when trace time says so: a short while after a closing annotation
 * (assembler_options.closing), which leaves room for the tags that programs add last; or after a
 * long silence; or at the end of the trace. Trace time is the time of events and of inactivity
 * beacons, never the host's clock, so that a recorded trace gives the same spans as the live one.
 *
 * With the original API a server may record under the span id that the client has sent it. Zipkin
 * wants to be told (struct span, shared), and no event tells: such a half is known by the client's
 * half, another endpoint's, being open or given out not long before. What comes late of such a
 * half, after the time-out that has ended it, is one, too. A blkin:span is never one: libblkin's
 * servers give their spans an id of their own.
 *
 * Not thread-safe: one thread drives an assembler.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_ASSEMBLER_H
#define BLKIN_CORE_ASSEMBLER_H

#include "closing.h"
#include "event.h"
#include "marks.h"
#include "span.h"

/* Takes a sample of a host's metrics, of that time by the clock that spans have. */
typedef void assembler_metric_fn(void *context, const struct event *event, int64_t time_ns);

/* Takes an event that a rule names. */
typedef void assembler_rule_fn(void *context, const struct event *event);

struct assembler_options {
    int64_t idle_timeout_ns; /* finish a span this long after its last event */
    int64_t end_timeout_ns;  /* the same, once it has a closing annotation */
    int64_t open_timeout_ns; /* the same, for a span of the streaming events */
    uint64_t max_open_spans; /* beyond these the oldest are finished early, marked incomplete */
    uint64_t max_open_bytes; /* the same for the memory that they take */
    bool correct_clocks;     /* times are those of the wall clock: see clock.h */
    int64_t wall_clock_ns;   /* what it is ahead of CLOCK_MONOTONIC; 0: as blkin:process tells */
    bool is_choice;          /* events are left out on purpose: gaps in their numbers are none */
    struct marks *marks;     /* NULL: nobody asks */
    struct closing closing;  /* what closes a span of the original's; none: "cr" and "ss" */
    assembler_metric_fn *metric; /* gets the sink's context; NULL: metrics are counted only */
    assembler_rule_fn *rule;     /* the same */
};

struct assembler_counts {
    uint64_t events;           /* given to assembler_add() */
    uint64_t events_in_span;   /* of these, now in a span; the others are in the counters below */
    uint64_t events_invalid;   /* without trace id or span id */
    uint64_t events_no_room;   /* no memory, or the span has reached SPAN_LOG_MAX */
    uint64_t events_late;      /* of a streamed span that has ended, or whose begin was not seen */
    uint64_t events_duplicate; /* of a span that was given out already, see below */
    uint64_t events_process;   /* about a process, not about a span */
    uint64_t events_metric;    /* about a host, not about a span */
    uint64_t events_rule;      /* of other providers, named by a rule */
    uint64_t metrics_missing;  /* never seen: gaps in the sequence numbers of metrics */
    uint64_t events_missing;   /* never seen: gaps in sequence numbers */
    uint64_t log_errors;       /* annotations, tags and steps lost: no room, or unreadable */
    uint64_t spans_open;
    uint64_t open_bytes;       /* that they take */
    uint64_t spans_finished;   /* each step is a span */
    uint64_t spans_incomplete; /* of these: without an end */
    uint64_t spans_evicted;    /* of these: early, to make room */
    uint64_t steps_spilled;    /* steps that came as events of their own */
    uint64_t spans_duplicate;  /* put together, and not given out: they had been already */
    uint64_t spans_with_loss;  /* of these: tagged blkin.lost, see assembler_note_loss() */
    uint64_t spans_corrected;  /* of these: moved by what a clock was off */
    uint64_t not_noted;        /* losses and clocks: no memory, or a host beyond SOURCES_MAX */
    uint64_t services_merged;  /* events of a service beyond ENDPOINTS_MAX */
};

/*
 * Takes a finished span. The span and all it points to are valid during the call only; the endpoint
 * lives as long as the assembler. It may tag the span.
 */
typedef void assembler_sink_fn(void *context, struct span *span);

struct assembler;

/* Returns NULL when out of memory. */
struct assembler *assembler_new(const struct assembler_options *options, assembler_sink_fn *sink,
                                void *context);

/* Frees everything; spans still open are not given out (see assembler_flush()). NULL is allowed. */
void assembler_free(struct assembler *assembler);

/* For who takes a span: tags it, if value is not empty. What finds no room is counted. */
void assembler_tag(struct assembler *assembler, struct span *span, const char *key,
                   struct text value);

/* What an event of a process tells of its host's clock: assembler_add() does it, too. */
void assembler_note_clock(struct assembler *assembler, const struct event *event);

/* Adds an event, after finishing what its time shows to be over. What fails is counted. */
void assembler_add(struct assembler *assembler, const struct event *event);

/* Trace time has reached now_ns: finishes what is over by then. Time that goes back is ignored. */
void assembler_advance(struct assembler *assembler, int64_t now_ns);

/*
 * Events or packets that were lost at a host, in whichever of its processes, between two moments of
 * trace time; without has_times: about now.
 *
 * A span that may have been touched is tagged "blkin.lost", with how much was lost where:
 * - a span of the original's or of streaming events that was open at the time: annotations, tags or
 *   its end may be missing. It is taken for open until now, if no end was seen.
 * - a whole span (blkin:span) is complete in itself, so what it may lack are the spans below it.
 *   For these one span per trace and process answers, the one through which the trace came in: it
 *   has no parent, or is a server's or a consumer's, or its parent is in another process. To tag
 *   each of the thousands of spans of an overload would bury what the tag is for.
 *
 * Gaps in sequence numbers are noted without this call, and tag streamed spans of the process only.
 * They tell nothing of a whole span, and too often nothing was lost: a session that records slow
 * spans only (enable-event --filter), or one form of the two, has a gap before nearly each event.
 */
struct loss {
    struct origin origin;
    bool has_times;
    int64_t begin_ns;
    int64_t end_ns;
    uint64_t events; /* this and packets 0: not known how much */
    uint64_t packets;
};

void assembler_note_loss(struct assembler *assembler, const struct loss *loss);

/*
 * Finishes open spans, oldest first, but no more than so many: who has to heed something else looks
 * at it in between. Returns whether there are more.
 */
bool assembler_flush_some(struct assembler *assembler, unsigned spans);

/* Finishes every open span. */
void assembler_flush(struct assembler *assembler);

/* ---- for makers of spans from other events: rules/ ------------------------------------------- */

/* Where events of this origin come from; lives as long as the assembler. */
struct event_source *assembler_source(struct assembler *assembler, const struct origin *origin);

/* The endpoints of all spans that go through this assembler's pipeline; see struct span. */
struct endpoint_table *assembler_endpoints(struct assembler *assembler);

/* The endpoint of a service without an address; NULL when out of memory. */
const struct endpoint *assembler_service(struct assembler *assembler, struct text service);

/* Gives out a span of a process (0: not known) of that source: tagged with what was lost while it
 * was open, and by the wall clock. */
void assembler_give_span(struct assembler *assembler, struct span *span,
                         const struct event_source *source, uint64_t process);

/* As in the options. */
struct marks *assembler_marks(const struct assembler *assembler);

/* Trace time; 0 before any. */
int64_t assembler_now(const struct assembler *assembler);

/* Valid until the next call. */
const struct assembler_counts *assembler_counts(struct assembler *assembler);

#endif
