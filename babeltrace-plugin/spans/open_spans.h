/*
 * The table of open spans, the queues in which they wait for their end, and their pool.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_OPEN_SPANS_H
#define BLKIN_CORE_OPEN_SPANS_H

#include "babeltrace-plugin/base/table.h"
#include "event.h"
#include "marks.h"
#include "source.h"
#include "span.h"

#include <urcu/list.h>

struct open_span {
    struct table_link in_table; /* in one cache line with the ids, which the search reads */
    struct span span;           /* while there is no timestamp, start_ns tells of the first event */
    struct cds_list_head in_queue;
    struct event_source *source;
    uint64_t thread;  /* that has begun it; 0: not known */
    uint64_t process; /* origin_process(); 0: not known */
    uint32_t events;  /* that are in it */
    bool has_timestamp;
    bool closing;
    bool streaming;       /* of blkin:begin: has an end of its own */
    bool evicted;         /* finished before its time */
    bool left_open;       /* a step that ended only with its span */
    bool given_out;       /* a step of a whole span, that was streamed and given out before */
    uint64_t steps_given; /* of a streamed span, the first steps that were given out: see below */
};

struct open_spans {
    struct table table;
    struct marks *marks;       /* NULL: nobody asks */
    struct cds_list_head pool; /* finished ones, whose memory is kept for the next */
    size_t pool_length;
    bool has_halves; /* there may have been two spans of the same ids */
};

/* Returns false when out of memory. */
bool open_spans_init(struct open_spans *spans);

/* Frees the table and the pool; spans in the table are the caller's, by way of its queues. */
void open_spans_destroy(struct open_spans *spans);

/* The span of the original's events of this event's ids and endpoint, or NULL. */
struct open_span *open_spans_find(struct open_spans *spans, const struct event *event);

/* The same, of the event's ids and this endpoint. */
struct open_span *open_spans_find_at(struct open_spans *spans, const struct event *event,
                                     const struct endpoint *endpoint);

/*
 * The streamed span that an event is about, or NULL: its later events do not repeat its endpoint.
 * Client and server halves may have the same ids: then the event belongs to the half that was begun
 * by its thread; else by its process; else to any on its host.
 */
struct open_span *open_spans_find_streamed(struct open_spans *spans, const struct event *event);

/* The streamed span that a whole span of this host repeats, or NULL. */
struct open_span *open_spans_find_repeated(struct open_spans *spans, const struct span *span,
                                           struct text host);

/*
 * A streamed step is given out at its end, which may be long before the same step comes again in
 * the event of its span, or of a step around it: notes it with all of these that are open. Of each
 * STEPS_NOTED are, by their numbers counted from its own: number n is bit n - 1 of steps_given.
 * They are what most spans have; recent.h has the others as long as it can.
 */
#define STEPS_NOTED 64

void open_spans_note_step(struct open_spans *spans, const struct open_span *step);

/* Whether the client's half of this span is open, at another endpoint. */
bool open_spans_has_client(struct open_spans *spans, const struct span *span);

/*
 * A span with the event's ids and name, in the table. Returns NULL when out of memory.
 *
 * What has the same ids is searched one by one: of more than OPEN_SAME_IDS_MAX the one that has
 * been silent longest is *surplus, which is to go; else that is NULL. A request to 16 services that
 * all take over its ids is honest.
 */
#ifndef OPEN_SAME_IDS_MAX
#define OPEN_SAME_IDS_MAX 64
#endif

struct open_span *open_spans_add(struct open_spans *spans, const struct event *event,
                                 const struct endpoint *endpoint, struct event_source *source,
                                 struct open_span **surplus);

/* Takes it out of the table. */
void open_spans_remove(struct open_spans *spans, struct open_span *open);

/* A cleared span that is not in the table, and back with it. NULL when out of memory. */
struct open_span *open_spans_take(struct open_spans *spans);
void open_spans_give(struct open_spans *spans, struct open_span *open);

/* Every span of a queue waits equally long, so the first in is the first out. */
struct open_queue {
    struct cds_list_head spans; /* by span.recorded_ns */
    int64_t timeout_ns;
};

void open_queue_init(struct open_queue *queue, int64_t timeout_ns);

/* To the end of this queue, from whichever it is in. */
void open_queue_append(struct open_queue *queue, struct open_span *open, int64_t now_ns);

/* The span that waits longest, if it does so for the time-out or more; else NULL. */
struct open_span *open_queue_expired(struct open_queue *queue, int64_t now_ns);

/* The span that waits longest, or NULL. */
struct open_span *open_queue_first(struct open_queue *queue);

/* Frees the spans in it. */
void open_queue_free(struct open_queue *queue);

#endif
