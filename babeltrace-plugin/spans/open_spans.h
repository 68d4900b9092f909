/*
 * The table of open spans, the queues in which they wait for their end, and their pool; the spans
 * that were given out recently.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SPANS_OPEN_SPANS_H
#define BLKIN_SPANS_OPEN_SPANS_H

#include "babeltrace-plugin/base/table.h"
#include "event.h"
#include "source.h"
#include "span.h"

#include <urcu/list.h>

/*
 * A streamed step is given out at its end. The same step may arrive much later in the event of its
 * span, or of a step around the step. So the step is noted in all open spans around it, by its
 * number there and its kind. STEPS_NOTED covers most spans; struct recent has other steps for a
 * while.
 */
#define STEPS_NOTED 64

struct steps_given {
    uint64_t bits[3]; /* bit n - 1 of each: a bit of the kind of number n, plus 1; 0: not noted */
};

bool steps_given_has(const struct steps_given *given, uint64_t number, enum span_kind kind);

struct open_span {
    struct table_link in_table; /* in one cache line with the ids, for the search */
    struct span span;           /* without a timestamp, start_ns is the time of the first event */
    struct cds_list_head in_queue;
    struct event_source *source;
    uint64_t thread;  /* the thread that began the span; 0: not known */
    uint64_t process; /* origin_process(); 0: not known */
    uint32_t events;  /* number of events in the span */
    bool has_timestamp;
    bool closing;
    bool streaming; /* began with blkin:begin; ends with blkin:end */
    bool evicted;   /* finished early */
    bool left_open; /* a step that ended only with its span */
    bool given_out; /* a step of a whole span that was streamed and given out before */
    struct steps_given steps_given; /* of a streamed span */
};

struct open_spans {
    struct table table;
    struct marks *marks;       /* NULL: no marks */
    struct cds_list_head pool; /* finished spans, for reuse */
    size_t pool_length;
    bool has_halves; /* two spans may have the same ids */
};

/* Returns false when out of memory. */
bool open_spans_init(struct open_spans *spans);

/* Frees the table and the pool. The caller frees the spans in the table, by way of its queues. */
void open_spans_destroy(struct open_spans *spans);

/* Returns the original's span with the event's ids and endpoint, or NULL. */
struct open_span *open_spans_find(struct open_spans *spans, const struct event *event);

/* Same, with the event's ids and the given endpoint. */
struct open_span *open_spans_find_at(struct open_spans *spans, const struct event *event,
                                     const struct endpoint *endpoint);

/*
 * Returns the streamed span of an event, or NULL. Detail events do not repeat the endpoint. If
 * client and server halves have the same ids, the event belongs to the half of its thread; else of
 * its process; else of its host.
 */
struct open_span *open_spans_find_streamed(struct open_spans *spans, const struct event *event);

/* Returns the streamed span of this host that the whole span repeats, or NULL. */
struct open_span *open_spans_find_repeated(struct open_spans *spans, const struct span *span,
                                           struct text host);

/* Notes a step that was given out in the open spans around it. */
void open_spans_note_step(struct open_spans *spans, const struct open_span *step);

/* Returns true if the client's half of this span is open, at another endpoint. */
bool open_spans_has_client(struct open_spans *spans, const struct span *span);

/*
 * Adds a span with the event's ids and name to the table. Returns NULL when out of memory.
 *
 * Spans with the same ids are searched one by one. If there are more than OPEN_SAME_IDS_MAX,
 * *surplus is the span whose last event is oldest: the caller evicts that span. If not, *surplus is
 * NULL. An honest request may reach 16 services that all record under its ids.
 */
#ifndef OPEN_SAME_IDS_MAX
#define OPEN_SAME_IDS_MAX 64
#endif

struct open_span *open_spans_add(struct open_spans *spans, const struct event *event,
                                 const struct endpoint *endpoint, struct event_source *source,
                                 struct open_span **surplus);

/* Removes the span from the table. */
void open_spans_remove(struct open_spans *spans, struct open_span *open);

/* Take a cleared span from the pool (NULL when out of memory), and give it back. */
struct open_span *open_spans_take(struct open_spans *spans);
void open_spans_give(struct open_spans *spans, struct open_span *open);

/* All spans of a queue have the same time-out, so the first span expires first. */
struct open_queue {
    struct cds_list_head spans; /* by span.recorded_ns */
    int64_t timeout_ns;
};

void open_queue_init(struct open_queue *queue, int64_t timeout_ns);

/* Moves the span to the end of this queue. */
void open_queue_append(struct open_queue *queue, struct open_span *open, int64_t now_ns);

/* Returns the longest waiting span if its time-out is over; else NULL. */
struct open_span *open_queue_expired(struct open_queue *queue, int64_t now_ns);

/* Returns the longest waiting span, or NULL. */
struct open_span *open_queue_first(struct open_queue *queue);

void open_queue_free(struct open_queue *queue);

/* ---- the ids of spans that were given out recently, to recognise repetitions ----------------- */

/*
 * One slot for each value of a hash of the ids; a newer span replaces an older one. After n other
 * spans, a span is still known with a probability of (1 - 1/RECENT_SLOTS)^n. A repetition arrives
 * soon: both forms of a span are recorded one after the other, and the two halves of a span end one
 * after the other. A slot has 64 bits of hash, which identify the ids well enough and make the
 * table small.
 */
#ifndef RECENT_SLOTS
#define RECENT_SLOTS 8192 /* a power of two */
#endif

struct recent_client {
    uint64_t hash;
    const struct endpoint *endpoint;
};

/* Zeros: none. */
struct recent {
    uint64_t streamed[RECENT_SLOTS];
    struct recent_client clients[RECENT_SLOTS];
    bool has_clients; /* a client's span was noted: many traces have only servers */
    uint32_t *shared; /* NULL: none */
};

void recent_destroy(struct recent *recent);

/* Notes a streamed span that was given out with its end. */
void recent_note_streamed(struct recent *recent, const struct span *span,
                          const struct event_source *source);

/* Returns whether a streamed span of the same ids, kind and host was noted, in any session. The
 * note is removed: a span has one duplicate at most. */
bool recent_take_streamed(struct recent *recent, const struct span *span,
                          const struct event_source *source);

/* Notes a client's span that was given out. */
void recent_note_client(struct recent *recent, const struct span *span);

/* Returns whether a client's span of the same ids, from another endpoint, was noted. */
bool recent_has_client(const struct recent *recent, const struct span *span);

/* Notes a server's half that was given out as shared. Its late events come seconds after its
 * time-out. So this table has more slots, of 32 bits, and is allocated when first needed. */
#ifndef RECENT_SHARED_SLOTS
#define RECENT_SHARED_SLOTS (1U << 17)
#endif

void recent_note_shared(struct recent *recent, const struct span *span);

/* Returns whether a half of the same ids and endpoint was noted. */
bool recent_has_shared(const struct recent *recent, const struct span *span);

#endif
