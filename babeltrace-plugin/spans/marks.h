/*
 * Marks: which part of a trace need not be read again.
 *
 * A mark is a position in the trace. A span carries the number of the last mark before its first
 * event, from then until it is given to the exporter or left out, and counts there. Where nothing
 * counts at a mark and at those before it, all that began before the next mark has been given out.
 *
 * All functions take NULL, where nobody asks.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_MARKS_H
#define BLKIN_CORE_MARKS_H

#include <stdbool.h>
#include <stdint.h>

/* After all events before time_ns, and so many that have this very time. */
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
    uint64_t sent;   /* spans of which the sending had begun by then, at most */
    uint64_t counts; /* what began here, before the next mark, and has not been given out */
};

#define MARKS 64

struct marks {
    struct mark ring[MARKS];
    uint64_t first, last; /* numbers of the marks that are in use */
};

/* mark: what to carry, or 0: of what begins now. Returns what to carry. */
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

/* The trace was read up to here. Returns the mark before which all has been given out. */
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
