/*
 * Follows rings of events: gives the events of all rings, merged by time.
 *
 * A program may write an event into one ring after a later event was written into another. So
 * events younger than the grace period wait in their rings for a later look.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_FOLLOW_H
#define BLKIN_TOOLS_RINGS_FOLLOW_H

#include "ring_event.h"

struct follow_calls {
    /* Gets an event, which is valid until the call returns. The callee may change the event. */
    void (*event)(void *context, struct event *event);
    /* Called when unread records were overwritten, between these times since 1970. */
    void (*lost)(void *context, int64_t begin_ns, int64_t end_ns);
    void *context;
};

struct follow_counts {
    struct ring_counts rings; /* of all rings, also of dropped memories */
    uint64_t foreign;         /* records of other kinds */
    uint64_t unreadable;
    uint64_t newer; /* records of a newer format */
};

struct follow;

/* from_ns: CLOCK_MONOTONIC. A span's event before from_ns - grace_ns, or before the result of the
 * last look, gets that time and an age. offset_ns: see ring_clock. NULL: out of memory. */
struct follow *follow_new(const struct follow_calls *calls, int64_t from_ns, int64_t grace_ns,
                          int64_t offset_ns);
void follow_free(struct follow *follow);

/* Follows a memory from its current end on (from_now), or from its oldest record on. The memory
 * must live until follow_drop() or follow_free(). Returns false when out of memory. */
bool follow_add(struct follow *follow, const struct memory *memory, bool from_now);

/* Returns the position of a CPU's ring before which all events were given; 0: there is no such
 * ring. */
uint64_t follow_position(const struct follow *follow, const struct memory *memory, uint32_t cpu);
/* Sets this position. Called after follow_add(), before the next look. */
void follow_begin_at(struct follow *follow, const struct memory *memory, uint32_t cpu, uint64_t at);

/* Gives all remaining events of all rings, without a grace period. Then stops following this
 * memory. */
void follow_drop(struct follow *follow, const struct memory *memory);

/* Returns the time (CLOCK_MONOTONIC) up to which all events were given. */
int64_t follow_done_ns(const struct follow *follow);

/* Gives the events that are due. Returns the same time since 1970. */
int64_t follow_look(struct follow *follow);

/* Gives all events, without a grace period. Returns the same as follow_look(). */
int64_t follow_look_at_all(struct follow *follow);

/* Returns the time until the next look, at most poll_ms. Until then no ring fills by more than a
 * quarter, if programs write at the rate of the last interval. */
int64_t follow_next_ms(const struct follow *follow, int64_t poll_ms);

struct follow_counts follow_counts(const struct follow *follow);

#endif
