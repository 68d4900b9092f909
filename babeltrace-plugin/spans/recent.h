/*
 * The ids of spans that were given out recently, to recognise repetitions.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_RECENT_H
#define BLKIN_CORE_RECENT_H

#include "source.h"
#include "span.h"

/*
 * One slot for each value of a hash of the ids; a newer span replaces an older one. After n other
 * spans, a span is still known with a probability of (1 - 1/RECENT_SLOTS)^n. Repetitions come soon:
 * both forms of a span are recorded one after the other, and the two halves of a span end one after
 * the other. A slot has 64 bits of hash, which identify the ids well enough and make the table
 * small.
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
    bool has_clients; /* any client's span; many traces have only servers */
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
