/*
 * The assembler makes finished spans of decoded events, and counts each event that it loses.
 *
 * A blkin:span event is a whole span. The assembler finishes the span at once, after the steps in
 * its log, each of which is a span. The assembler adds up a streamed span's events until its
 * blkin:end. Without blkin:end, a time-out finishes the span, marked incomplete.
 *
 * If both forms are recorded, the assembler gives out the streamed span, and counts the whole one
 * as a duplicate. The library records the whole span before blkin:end, so the streamed span is
 * still open then. Trace id, span id, kind and host identify the streamed span. In two sessions,
 * whose clocks may differ by some microseconds, the whole span may arrive just after blkin:end:
 * struct recent (open_spans.h) finds that case. A whole span that follows an incomplete streamed
 * one is given out, too.
 *
 * The original's events make one span per (trace id, span id, endpoint). These events have no end.
 * Trace time finishes such a span: a short while after a closing annotation
 * (assembler_options.closing), which leaves time for late tags; after a long silence; or at the end
 * of the trace. Trace time is the time of events and of inactivity beacons, never the host's clock.
 * So a recorded trace gives the same spans as the live one.
 *
 * With the original API, a server may record under the span id of its client. Zipkin must know such
 * spans (`shared` in struct span), but no event marks them. A server's span is shared if the
 * client's span, at another endpoint, is open or was given out recently. Late events of a shared
 * span, after its time-out, make a shared span, too. A blkin:span is never shared: a server of
 * libblkin gives its span a new id.
 *
 * Not thread-safe: one thread drives an assembler.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SPANS_ASSEMBLER_H
#define BLKIN_SPANS_ASSEMBLER_H

#include "babeltrace-plugin/base/text.h"
#include "event.h"
#include "span.h"

#include <stdint.h>

#define CLOSING_MAX      16
#define CLOSING_TEXT_MAX 63

/* The annotations that close a span of the original's events. Zeros: none. */
struct closing {
    uint64_t lengths; /* bit n: an annotation has n bytes. This test rejects most annotations */
    unsigned count;
    uint8_t length[CLOSING_MAX];
    char texts[CLOSING_MAX][CLOSING_TEXT_MAX];
};

/* Returns false for an empty text, one of more than CLOSING_TEXT_MAX bytes, or a full list. */
static inline bool closing_add(struct closing *closing, struct text text)
{
    if (text.length == 0 || text.length > CLOSING_TEXT_MAX || closing->count >= CLOSING_MAX)
        return false;
    memcpy(closing->texts[closing->count], text.data, text.length);
    closing->length[closing->count++] = (uint8_t)text.length;
    closing->lengths |= UINT64_C(1) << text.length;
    return true;
}

static inline bool closing_has(const struct closing *closing, struct text text)
{
    if (text.length > CLOSING_TEXT_MAX || !(closing->lengths >> text.length & 1))
        return false;
    for (unsigned i = 0; i < closing->count; i++) {
        if (closing->length[i] == text.length && closing->texts[i][0] == text.data[0] &&
            memcmp(closing->texts[i], text.data, text.length) == 0)
            return true;
    }
    return false;
}

/* Takes a sample of a host's metrics. time_ns: the sample's time, by the clock of the spans. */
typedef void assembler_metric_fn(void *context, const struct event *event, int64_t time_ns);

/* Takes an event that a rule names. */
typedef void assembler_rule_fn(void *context, const struct event *event);

struct assembler_options {
    int64_t idle_timeout_ns; /* finishes a span this long after its last event */
    int64_t end_timeout_ns;  /* after a closing annotation */
    int64_t open_timeout_ns; /* for a streamed span */
    uint64_t max_open_spans; /* above, spans are finished early: incomplete if they have no end */
    uint64_t max_open_bytes; /* same, for the memory of open spans */
    bool correct_clocks;     /* moves times to the wall clock: see source.h */
    int64_t wall_clock_ns;   /* wall clock minus CLOCK_MONOTONIC; 0: as blkin:process says */
    bool is_filtered;        /* events are filtered on purpose: a gap in their numbers is no loss */
    int64_t resumed_ns;      /* trace time: an earlier process has got the events before; 0: none */
    struct marks *marks;     /* NULL: no marks */
    struct closing closing;  /* annotations that close an original's span; none: "cr" and "ss" */
    /* The table for the endpoints of spans, which outlives the assembler; NULL: a table of its own,
     * freed with the assembler. */
    struct endpoint_table *endpoints;
    assembler_metric_fn *metric; /* gets the assembler's context; NULL: metrics are only counted */
    assembler_rule_fn *rule;     /* same */
};

struct assembler_counts {
    uint64_t events;           /* given to assembler_add() */
    uint64_t events_in_span;   /* part of a span; the other events are in the counters below */
    uint64_t events_invalid;   /* without trace id or span id */
    uint64_t events_no_room;   /* no memory, or the span has reached SPAN_LOG_MAX */
    uint64_t events_late;      /* of a streamed span that has ended, or whose begin is missing */
    uint64_t events_duplicate; /* whole spans that were streamed, too */
    uint64_t events_process;   /* about a process, not about a span */
    uint64_t events_metric;    /* about a host, not about a span */
    uint64_t events_rule;      /* of other providers, named by a rule */
    uint64_t metrics_missing;  /* missing sequence numbers of metrics */
    uint64_t events_missing;   /* missing sequence numbers of other events */
    uint64_t events_unsure;    /* of events_missing: an earlier process may have got them */
    uint64_t events_awaited;   /* missing sequence numbers that may still arrive */
    uint64_t log_errors;       /* annotations, tags and steps lost: no room, or unreadable */
    uint64_t spans_open;
    uint64_t open_bytes;       /* memory of open spans */
    uint64_t spans_finished;   /* each step is a span */
    uint64_t spans_incomplete; /* of the finished spans: without an end */
    uint64_t spans_evicted;    /* of the finished spans: early, to make room */
    uint64_t steps_spilled;    /* steps that arrived in events of their own */
    uint64_t spans_duplicate;  /* not given out: the span or step was streamed, too */
    uint64_t spans_with_loss;  /* tagged blkin.lost, see assembler_note_loss() */
    uint64_t spans_corrected;  /* moved by a clock correction */
    uint64_t not_noted;        /* losses and clock samples: no memory, or beyond SOURCES_MAX */
    uint64_t services_merged;  /* endpoints with a part left out: see endpoint_take_merged() */
};

/* Takes a finished span, and may tag it. The span and all that it points to are valid during the
 * call only; the endpoint lives as long as the assembler. */
typedef void assembler_give_fn(void *context, struct span *span);

struct assembler;

/* Returns NULL when out of memory. */
struct assembler *assembler_new(const struct assembler_options *options, assembler_give_fn *give,
                                void *context);

/* Frees everything. Open spans are dropped: see assembler_flush_some(). NULL is allowed. */
void assembler_free(struct assembler *assembler);

/* Tags a span that was given out, unless the value is empty. A tag without room is counted. */
void assembler_tag(struct assembler *assembler, struct span *span, const char *key,
                   struct text value);

/* Reads the clock in a process event. assembler_add() does so, too. */
void assembler_note_clock(struct assembler *assembler, const struct event *event);

/* Finishes spans whose time is over, then adds the event. Failures are counted. */
void assembler_add(struct assembler *assembler, const struct event *event);

/* Sets trace time to now_ns, and finishes spans whose time is over. An earlier time is ignored. */
void assembler_advance(struct assembler *assembler, int64_t now_ns);

/*
 * Events or packets that a host lost between two moments of trace time. Without has_times: about
 * now.
 *
 * Each span that may lack data gets the tag "blkin.lost", with the number of lost events and their
 * host:
 * - A span of the original's or of streaming events that was open then: annotations, tags or its
 *   end may be missing. If no end was seen, the span counts as open until now.
 * - A whole span (blkin:span) is complete, but spans below it may be missing. Only the entry span
 *   of a trace in a process gets the tag: a span without a parent, a server's or a consumer's span,
 *   or one whose parent is in another process. In an overload, tags on all other spans would hide
 *   these tags.
 *
 * Gaps in sequence numbers are noted without this call, and tag only streamed spans of the process.
 * A gap says nothing about a whole span, and is often no loss: a session that records only slow
 * spans (enable-event --filter) has a gap before nearly each event.
 */
struct loss {
    struct origin origin;
    bool has_times;
    int64_t begin_ns;
    int64_t end_ns;
    uint64_t events; /* events and packets both 0: unknown */
    uint64_t packets;
};

void assembler_note_loss(struct assembler *assembler, const struct loss *loss);

/* Finishes up to `spans` open spans, in each queue the oldest first. Returns whether there are
 * more. The caller can do other work between two calls. */
bool assembler_flush_some(struct assembler *assembler, unsigned spans);

/* ---- for rules/, which makes spans from other events ----------------------------------------- */

/* Returns the source of events with this origin. The source lives as long as the assembler. */
struct event_source *assembler_source(struct assembler *assembler, const struct origin *origin);

/* Returns the endpoints of all spans in this assembler's pipeline; see struct span. */
struct endpoint_table *assembler_endpoints(struct assembler *assembler);

/* Tags the span with its host, process and thread. */
void assembler_tag_origin(struct assembler *assembler, struct span *span,
                          const struct origin *origin);

/* Returns the endpoint of a service without an address; NULL when out of memory. */
const struct endpoint *assembler_service(struct assembler *assembler, struct text service);

/* Tags a span with the losses during its time, moves its times to the wall clock, and gives it out.
 * process: 0 if not known. */
void assembler_give_span(struct assembler *assembler, struct span *span,
                         const struct event_source *source, uint64_t process);

/* Returns the marks of the options. */
struct marks *assembler_marks(const struct assembler *assembler);

/* Returns trace time; INT64_MIN before the first event or beacon. */
int64_t assembler_now(const struct assembler *assembler);

/* Returns the counts, which are valid until the next call. */
const struct assembler_counts *assembler_counts(struct assembler *assembler);

#endif
