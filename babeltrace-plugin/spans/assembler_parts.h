/*
 * Inside of the assembler: what its parts share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_ASSEMBLER_PARTS_H
#define BLKIN_CORE_ASSEMBLER_PARTS_H

#include "assembler.h"
#include "log.h"
#include "open_spans.h"
#include "recent.h"
#include "source.h"

#ifndef SEQUENCE_PLACES
#define SEQUENCE_PLACES 16384 /* a power of two */
#endif

/* What was seen of each thread's numbers, by the thread's hash. */
struct sequences {
    struct sequence_place {
        uint64_t series;   /* 0: free; threads are never numbered 0 */
        uint64_t first;    /* that was seen */
        uint64_t sequence; /* the highest that was seen, */
        int64_t time_ns;   /* and the time of its event */
        uint64_t seen;     /* bit i: the number that is i less than the highest */
        uint64_t awaited;  /* numbers in between that have not come yet, */
        int64_t since_ns;  /* when the first of these was skipped */
        uint64_t missing;  /* numbers in between that are counted as missing */
    } places[SEQUENCE_PLACES];
    uint64_t awaited; /* of all of them */
};

struct assembler {
    struct assembler_options options;
    struct open_spans open;
    struct open_queue idle;
    struct open_queue closing;
    struct open_queue streaming;
    struct endpoint_table *endpoints;
    struct source_table *sources;
    bool has_offsets;  /* any clock that is off */
    bool has_losses;   /* any that LTTng tells of, from anywhere */
    bool has_gaps;     /* any in sequence numbers */
    bool has_original; /* any event of the original's */
    int64_t now_ns;
    assembler_sink_fn *sink;
    void *sink_context;
    struct assembler_counts counts;
    struct recent recent;
    struct sequences sequences;
};

/* Counts numbers as missing that have been awaited since then, or for longer; those for too long.
 */
void assembler_count_missing(struct assembler *assembler, int64_t since_ns);
void assembler_count_late(struct assembler *assembler);

/* A part of a span had no room. */
static inline void assembler_lose_part(struct assembler *assembler)
{
    assembler->counts.log_errors++;
}

/* The event's endpoint, or NULL when out of memory. */
const struct endpoint *assembler_endpoint(struct assembler *assembler, const struct event *event);

/* Counts the event as in the span, or as lost for lack of room. */
void assembler_count(struct assembler *assembler, struct open_span *open, bool in_span);

/* Tags the span with where it was recorded. */
void assembler_tag_origin(struct assembler *assembler, struct span *span,
                          const struct origin *origin);

/* A new open span for the event, for which an older one may have to go. NULL when out of memory. */
struct open_span *assembler_open(struct assembler *assembler, const struct event *event,
                                 const struct endpoint *endpoint);

/* The span to end next, of those that are over the one silent longest; never this one. Or NULL. */
struct open_span *assembler_oldest_but(struct assembler *assembler, const struct open_span *but);

/* The span has grown from a log of so many bytes: counts it, and makes room if that is too much. */
void assembler_account(struct assembler *assembler, const struct open_span *open,
                       uint32_t capacity_before);

/* Gives the span out, if it is no duplicate, and drops it from the table and its queue. */
void assembler_finish(struct assembler *assembler, struct open_span *open);

/* Counts and notes events of its thread that are missing before this event of the span API, or of a
 * host. */
void assembler_note_sequence(struct assembler *assembler, const struct event *event);

/* Tags a span with what was lost while it was open, if anything: of itself, or of spans below. */
void assembler_tag_loss_in(struct assembler *assembler, struct open_span *open);
void assembler_tag_loss_below(struct assembler *assembler, struct span *span,
                              const struct origin *origin);

/* Tags the span, and counts it. */
void assembler_mark_incomplete(struct assembler *assembler, struct span *span, const char *why);

/* Of a step. */
#define ENDED_WITH_SPAN "it ended only with its span"

/* Moves the span's times to the wall clock, if they are off it. The last thing done to it. */
void assembler_correct_times(struct assembler *assembler, struct span *span,
                             const struct event_source *source);

/* What is to be added to trace time for that: 0 if its clock is not off. */
int64_t assembler_offset(const struct assembler *assembler, const struct event_source *source,
                         int64_t start_ns);

/* The two families of events, each in a file of its own. */
void assembler_add_original(struct assembler *assembler, const struct event *event);
void assembler_add_span_api(struct assembler *assembler, const struct event *event);

/* Of the span API's: blkin:span. */
void assembler_add_whole_span(struct assembler *assembler, const struct event *event);

/*
 * A record of a log, but for those that make steps, into the span; annotations are that long after
 * from_ns. False: there is no room for it, or it is none that a span has.
 */
bool assembler_add_record(struct assembler *assembler, struct open_span *open,
                          const struct log_record *record, int64_t from_ns);

/* The moment so long before the one that an event tells of. */
int64_t assembler_moment_of(const struct event *event, uint64_t before_ns);

/* Unsigned: a trace may claim any. */
static inline int64_t assembler_moment_after(int64_t from_ns, int64_t offset_ns)
{
    return (int64_t)((uint64_t)from_ns + (uint64_t)offset_ns);
}

static inline enum span_kind assembler_kind_of(uint64_t number)
{
    return number <= SPAN_CONSUMER ? (enum span_kind)number : SPAN_LOCAL;
}

/* It may be before what came last: blkin_span_end_at(). */
static inline void assembler_set_end(struct span *span, int64_t end_ns)
{
    span->end_ns = end_ns > span->start_ns ? end_ns : span->start_ns;
}

#endif
