/*
 * What joining is made of, for those of its files that are about more than one of these.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_JOIN_PARTS_H
#define BLKIN_CORE_JOIN_PARTS_H

#include "join.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/table.h"

#include <urcu/list.h>

#define JOINED_ROOM 80U /* that an entry of a log for the tag blkin.joined takes */

/* All that waits is in one of these, the first in first. What is nearer to a decision comes first:
 * so it is flushed. */
enum queue_kind {
    SETTLING,     /* traces whose root has found a client's half */
    JOIN_WAITING, /* those whose root has not */
    OPEN,         /* those whose root has not come yet; by the last span */
    JOIN_DECIDED, /* those that were given out, for what comes later */
    JOIN_CLIENTS, /* clients' halves */
    QUEUES
};

struct queued {
    struct cds_list_head link;
    int64_t since_ns;
};

struct half {
    struct table_link in_table;
    bool is_client;
    bool is_taken; /* a client's: it is a parent */
    bool is_late;  /* a server's: it was counted as such */
    uint64_t key;
    uint64_t place; /* 0: a key that is proof enough; see JOIN_TAG */
    uint64_t
        sizes; /* hash of the request's and the answer's; without meaning if there is no place */
    uint64_t trace_id_high;
    uint64_t trace_id;
    uint64_t span_id;
    int64_t start_ns;
    int64_t end_ns;
};

struct join_client {
    struct queued queued;
    struct half half;
};

/* A trace whose id is marked. */
struct join_group {
    struct queued queued;
    struct table_link in_table;
    uint64_t id;
    enum queue_kind kind;       /* of the queue; without meaning if it is below another one */
    struct join_group *above;   /* the one whose spans it has become part of; NULL: none */
    struct cds_list_head below; /* of the topmost one: all that have come below it */
    struct cds_list_head in_below;
    struct kept_span *first, *last; /* of the topmost one */
    struct kept_span *root;         /* NULL: not come, or given out */
    bool has_half;
    bool is_unjoined;
    struct half half;               /* the root's */
    uint64_t final_high, final_low; /* the trace's id, once it is decided */
};

struct join {
    struct stage stage;
    struct join_options options;
    int64_t now_ns;
    struct cds_list_head queues[QUEUES];
    struct table groups;
    struct table halves;
    struct join_counts counts;
};

static inline struct join *join_of(const struct stage *stage)
{
    return (struct join *)(uintptr_t)stage;
}

/* Of the stage: see struct stage_kind. */
void join_advance(struct stage *stage);
bool join_flush_some(struct stage *stage, unsigned traces);

static inline size_t kept_bytes(const struct kept_span *kept)
{
    return sizeof(*kept) + kept->span.log_capacity;
}

/* NULL: there is none. */
struct queued *join_first_of(const struct join *join, enum queue_kind kind);

struct join_group *join_find_group(const struct join *join, uint64_t id);

/* A list of spans, which are counted already. */
void join_append(struct join_group *top, struct kept_span *first, struct kept_span *last);

/* The last of its queue, from now on. */
void join_queue_up(struct join *join, enum queue_kind kind, struct queued *queued);
void join_set_kind(struct join *join, struct join_group *group, enum queue_kind kind);

static inline struct join_group *join_topmost(struct join_group *group)
{
    struct join_group *top = group;

    while (top->above)
        top = top->above;
    while (group->above) { /* the way will be shorter the next time */
        struct join_group *above = group->above;

        group->above = top;
        group = above;
    }
    return top;
}

static inline void join_set_trace(struct span *span, uint64_t high, uint64_t low)
{
    span->trace_id_high = high;
    span->trace_id = low;
}

/* Nothing is to be found for it: its spans are given out with the id that they have. */
void join_decide_as_is(struct join *join, struct join_group *group);

/* What has waited for longest goes. */
void join_make_room(struct join *join, size_t bytes);

void join_forget_client(struct join *join, struct join_client *client);

/* ---- which halves fit which ------------------------------------------------------------------ */

/* Of the same key, and the server's begins during the client's. Inline: asked for each span. */

static inline bool join_is_before(int64_t a, int64_t b, int64_t skew_ns)
{
    return a <= b || (uint64_t)a - (uint64_t)b <= (uint64_t)skew_ns;
}

/*
 * Its end tells nothing: a server that has to wait for a CPU after its last write may see that
 * return long after the client has read what was written.
 */
static inline bool join_covers(const struct join *join, const struct half *client,
                               const struct half *server)
{
    return join_is_before(client->start_ns, server->start_ns, join->options.skew_ns) &&
           join_is_before(server->start_ns, client->end_ns, join->options.skew_ns);
}

/* Those of the half's key on the other side that fit it; to be asked with one by one. */
struct join_search {
    const struct join *join;
    const struct half *half;
    struct table_link *next;
    unsigned seen;
};

static inline struct join_search join_search(const struct join *join, const struct half *half)
{
    const uint64_t hash = hash_number(join->halves.seed, half->key);

    return (struct join_search){join, half, table_first_of(&join->halves, hash), 0};
}

static inline bool join_search_is_crowded(const struct join_search *search)
{
    return search->seen > JOIN_CANDIDATES_MAX;
}

/* NULL: there are no more, or it is crowded. */
static inline struct half *join_search_next(struct join_search *search)
{
    const struct half *half = search->half;

    while (search->next && !join_search_is_crowded(search)) {
        struct half *other = caa_container_of(search->next, struct half, in_table);

        search->next = table_from(search->next->next, search->next->hash);
        if (other->key != half->key)
            continue;
        search->seen++;
        if (other->is_client != half->is_client && !join_search_is_crowded(search) &&
            (half->is_client ? join_covers(search->join, half, other)
                             : join_covers(search->join, other, half)))
            return other;
    }
    return NULL;
}

enum verdict { ALONE, PAIR, UNSURE };

/* Is there one that fits it, and no other? *found is the first one; NULL: there is none. */
static inline enum verdict join_search_all(const struct join *join, const struct half *half,
                                           struct half **found)
{
    struct join_search search = join_search(join, half);
    struct half *more;

    *found = join_search_next(&search);
    more = *found ? join_search_next(&search) : NULL;
    if (join_search_is_crowded(&search) || more)
        return UNSURE;
    return *found ? PAIR : ALONE;
}

#endif
