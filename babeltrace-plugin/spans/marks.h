/*
 * Marks: the part of a trace that need not be read again.
 *
 * A mark is a position in the trace. A span carries the number of the last mark before its first
 * event, until the exporter or a stage has taken the span. The mark counts such spans. If a mark
 * and all before it count 0, all spans that began before the next mark were given out.
 *
 * All functions accept NULL: no marks.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_MARKS_H
#define BLKIN_CORE_MARKS_H

#include <stdbool.h>
#include <stdint.h>

/* After all events before time_ns, and `count` events with this very time. */
struct trace_position {
    int64_t time_ns;
    uint64_t events;
};

static inline bool position_is_before(const struct trace_position *a,
                                      const struct trace_position *b)
{
    return a->time_ns < b->time_ns || (a->time_ns == b->time_ns && a->events < b->events);
}

struct mark {
    struct trace_position at;
    uint64_t sent; /* upper bound of the spans whose sending had begun by then */
    uint64_t
        counts; /* spans that began after this mark and before the next, and were not given out */
};

#define MARKS 64

struct marks {
    struct mark ring[MARKS];
    uint64_t first, last; /* numbers of the marks in use */
};

/* Counts a span at a mark; 0: at the newest mark. Returns the mark that the span carries. */
static inline uint8_t marks_hold(struct marks *marks, uint8_t mark)
{
    if (!marks)
        return 0;
    if (!mark)
        mark = (uint8_t)(marks->last % MARKS + 1);
    marks->ring[mark - 1].counts++;
    return mark;
}

static inline void marks_release(struct marks *marks, uint8_t mark)
{
    if (marks && mark)
        marks->ring[mark - 1].counts--;
}

/* Adds a mark at a position. Returns the mark before which all spans were given out. */
static inline const struct mark *marks_advance(struct marks *marks, const struct trace_position *at,
                                               uint64_t sent)
{
    const bool has_room = marks->last - marks->first < MARKS - 1;

    if (has_room && position_is_before(&marks->ring[marks->last % MARKS].at, at))
        marks->ring[++marks->last % MARKS] = (struct mark){.at = *at, .sent = sent};
    while (marks->first < marks->last && marks->ring[marks->first % MARKS].counts == 0)
        marks->first++;
    return &marks->ring[marks->first % MARKS];
}

#endif
