/*
 * Private declarations of the assembler's files.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SPANS_ASSEMBLER_PARTS_H
#define BLKIN_SPANS_ASSEMBLER_PARTS_H

#include "assembler.h"
#include "open_spans.h"
#include "source.h"

/* ---- the log of a blkin:span or blkin:tag event, in the form of doc/format.md ---------------- */

/* Members that the type does not have are not set. */
struct log_record {
    char type; /* as in format.md; an annotation of any severity is 'a', a number's tag has a small
                  letter, an unknown record is '?' */
    int64_t offset_ns; /* of 'T': from the span's start; of 'a', '(' and ')': from the span's start,
                          or from 'T'; of 't': before the former start */
    uint64_t bits;     /* of 'i', 'u', 'd' and 'b'; of '(': its kind; of '#': the number */
    uint16_t port;     /* of 'r' and 'e' */
    struct text key;   /* of tags; of 'r' and 'e': the ip; of 'a': its severity, empty for info */
    struct text value; /* of 'a', 's', 'n' and '('; of 'r' and 'e': the service */
    struct span_link link; /* of 'l' */
};

/* Reads the next record, and removes it from the log. Returns false at the end of the log, which is
 * empty then, or at invalid bytes, which stay in the log. */
bool log_next(struct text *log, struct log_record *record);

/* ---- the assembler --------------------------------------------------------------------------- */

#ifndef SEQUENCE_SLOTS
#define SEQUENCE_SLOTS 16384 /* a power of two */
#endif

/* The sequence numbers of each thread, by the thread's hash. */
struct sequences {
    struct sequence_slot {
        uint64_t series;   /* 0: free; threads are never numbered 0 */
        uint64_t first;    /* the first number, plus 2^32; after a wrap numbers go on */
        uint64_t sequence; /* the highest number */
        int64_t time_ns;   /* the time of the event with the highest number */
        uint64_t seen;     /* bit i: the event with the number `sequence - i` has arrived */
        uint64_t awaited;  /* missing numbers that may still arrive */
        uint64_t unsure;   /* of the awaited ones: an earlier process may have got the events */
        int64_t since_ns;  /* when the first awaited number was skipped */
        uint64_t missing;  /* missing numbers that were counted */
    } slots[SEQUENCE_SLOTS];
    uint64_t awaited; /* the awaited numbers of all series */
};

struct assembler {
    struct assembler_options options;
    struct open_spans open;
    struct open_queue idle;
    struct open_queue closing;
    struct open_queue streaming;
    struct endpoint_table *endpoints;
    struct source_table *sources;
    bool has_offsets;  /* some host's clock needs a correction */
    bool has_losses;   /* LTTng has reported a loss */
    bool has_gaps;     /* there was a gap in sequence numbers */
    bool has_original; /* there was an event of the original API */
    int64_t now_ns;
    assembler_give_fn *give;
    void *context;
    struct assembler_counts counts;
    struct recent recent;
    struct sequences sequences;
};

/* Counts awaited numbers as missing if they were skipped at since_ns or before. */
void assembler_count_missing(struct assembler *assembler, int64_t since_ns);

/* Same, for numbers that were skipped SEQUENCE_LATE_NS ago or earlier. */
void assembler_count_late(struct assembler *assembler);

/* Counts a part of a span that had no room. */
static inline void assembler_lose_part(struct assembler *assembler)
{
    assembler->counts.log_errors++;
}

/* Returns the event's endpoint, or NULL when out of memory. */
const struct endpoint *assembler_endpoint(struct assembler *assembler, const struct event *event);

/* Counts the event as part of the span, or as lost for lack of room. */
void assembler_count(struct assembler *assembler, struct open_span *open, bool in_span);

/* Opens a span for the event, and may evict older spans. Returns NULL when out of memory. */
struct open_span *assembler_open(struct assembler *assembler, const struct event *event,
                                 const struct endpoint *endpoint);

/* Counts the growth of the span's log since its capacity was capacity_before, and evicts spans
 * above the limit. */
void assembler_account(struct assembler *assembler, const struct open_span *open,
                       uint32_t capacity_before);

/* Removes the span from the table and its queue, and gives the span out. */
void assembler_finish(struct assembler *assembler, struct open_span *open);

/* Counts and notes the events of the thread or host that are missing before this event. */
void assembler_note_sequence(struct assembler *assembler, const struct event *event);

/* Tags a span with the losses of its own data while it was open. */
void assembler_tag_loss_in(struct assembler *assembler, struct open_span *open);

/* Tags an entry span with the losses that may have hit spans below it. */
void assembler_tag_loss_below(struct assembler *assembler, struct span *span,
                              const struct origin *origin);

/* Tags the span, and counts it. */
void assembler_mark_incomplete(struct assembler *assembler, struct span *span, const char *why);

/* The reason that assembler_mark_incomplete() gets for a step. */
#define ENDED_WITH_SPAN "it ended only with its span"

/* Moves the span's times to the wall clock: the last change of a span. */
void assembler_correct_times(struct assembler *assembler, struct span *span,
                             const struct event_source *source);

void assembler_add_span_api(struct assembler *assembler, const struct event *event);

/* Returns the moment before_ns before the moment of the event. */
int64_t assembler_moment_of(const struct event *event, uint64_t before_ns);

/* Adds as unsigned numbers, because a trace may contain any number. */
static inline int64_t assembler_moment_after(int64_t from_ns, int64_t offset_ns)
{
    return (int64_t)((uint64_t)from_ns + (uint64_t)offset_ns);
}

static inline enum span_kind assembler_kind_of(uint64_t number)
{
    return number <= SPAN_CONSUMER ? (enum span_kind)number : SPAN_LOCAL;
}

/* Sets the span's end, which may be before the last event: see blkin_span_end_at(). */
static inline void assembler_set_end(struct span *span, int64_t end_ns)
{
    span->end_ns = end_ns > span->start_ns ? end_ns : span->start_ns;
}

#endif
