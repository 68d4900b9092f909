/*
 * Follows rings of events: gives each event as it comes, those of all rings in the order of their
 * times.
 *
 * An event that was written just now may have an earlier time than one of another ring that was
 * read already. So what is younger than the grace waits in its ring until the next look.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_FOLLOW_H
#define BLKIN_TOOLS_RINGS_FOLLOW_H

#include "ring_event.h"

struct follow_calls {
    /* An event of the rings. It may be changed, and lives until the call returns. */
    void (*event)(void *context, struct event *event);
    /* Something was overwritten that nobody has read, in a time since 1970. */
    void (*lost)(void *context, int64_t begin_ns, int64_t end_ns);
    void *context;
};

struct follow_counts {
    struct ring_counts rings; /* of all of them, with those that are gone */
    uint64_t foreign;         /* records that are none of ours */
    uint64_t unreadable;
    uint64_t newer; /* of a newer version of the format */
};

struct follow;

/* offset_ns: see ring_clock. Returns NULL when out of memory. */
struct follow *follow_new(const struct follow_calls *calls, int64_t grace_ns, int64_t offset_ns);
void follow_free(struct follow *follow);

/* From now on, or from all that it holds. The memory lives longer. Returns false when out of
 * memory. */
bool follow_add(struct follow *follow, const struct memory *memory, bool from_now);

/* Reads it to its end, and the others as far: no grace. */
void follow_drop(struct follow *follow, const struct memory *memory);

/* Looks once. Returns the time since 1970 up to which all events were given. */
int64_t follow_look(struct follow *follow);

/* The same without grace: at the end. */
int64_t follow_look_at_all(struct follow *follow);

/*
 * When to look again: in poll_ms, or so much sooner that, at the rate of the last look, no ring has
 * more than a quarter of new records by then.
 */
int64_t follow_next_ms(const struct follow *follow, int64_t poll_ms);

struct follow_counts follow_counts(const struct follow *follow);

#endif
