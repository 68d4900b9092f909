/*
 * The spans given out last, by their ids: what comes later may be about the same ones.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_RECENT_H
#define BLKIN_CORE_RECENT_H

#include "source.h"
#include "span.h"

/*
 * One place for each value of a hash of the ids: the newer span takes the place of the older one.
 * A span is found for sure only as the last one; after n others, with a chance of (1 - 1/PLACES)^n.
 * What is looked for comes soon: the two forms of a span's end are recorded one after the other,
 * and the two halves of a span end one after the other. A place holds 64 bits of hash instead of
 * the ids, which is as good, and as small as a table must be that is read for each span.
 */
#ifndef RECENT_PLACES
#define RECENT_PLACES 8192 /* a power of two */
#endif

struct recent_client {
    uint64_t hash;
    const struct endpoint *endpoint;
};

/* All zero: none. */
struct recent {
    uint64_t streamed[RECENT_PLACES];
    struct recent_client clients[RECENT_PLACES];
    bool has_clients; /* any: many a trace has servers only */
    uint32_t *shared; /* NULL: none */
};

void recent_destroy(struct recent *recent);

/* A streamed span was given out, with its end. */
void recent_note_streamed(struct recent *recent, const struct span *span,
                          const struct event_source *source);

/*
 * Whether a streamed span of the same ids and kind from the same host was noted, in whichever
 * session; if so it is forgotten, since a span has one duplicate at the most.
 */
bool recent_take_streamed(struct recent *recent, const struct span *span,
                          const struct event_source *source);

/* A client's span was given out. */
void recent_note_client(struct recent *recent, const struct span *span);

/* Whether a client's span of the same ids, from another endpoint, was noted. */
bool recent_has_client(const struct recent *recent, const struct span *span);

/*
 * A server's half was given out as shared. What is looked for here may come much later than a half
 * or a form of a span does, seconds after the time-out that has ended it: so there are more places,
 * of 32 bits, made when the first is needed.
 */
#ifndef RECENT_SHARED_PLACES
#define RECENT_SHARED_PLACES (1U << 17)
#endif

void recent_note_shared(struct recent *recent, const struct span *span);

/* Whether one of the same ids and endpoint was noted. */
bool recent_has_shared(const struct recent *recent, const struct span *span);

#endif
