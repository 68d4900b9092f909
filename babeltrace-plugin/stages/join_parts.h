/*
 * Private declarations of join.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_STAGES_JOIN_PARTS_H
#define BLKIN_STAGES_JOIN_PARTS_H

#include "join.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/table.h"

#include <urcu/list.h>

#define JOINED_ROOM 80U /* of a log entry for JOINED_TAG */

/* The queues, oldest first. The flush empties them in this order: traces near a decision come
 * first. */
enum queue_kind {
    SETTLING,     /* traces whose root has found a client's half */
    JOIN_WAITING, /* traces whose root has not found a client's half */
    OPEN,         /* traces without a root, by their last span */
    JOIN_DECIDED, /* traces that were given out, for late spans */
    JOIN_CLIENTS, /* clients' halves */
    QUEUES
};

struct queued {
    struct cds_list_head link;
    int64_t since_ns;
};

struct join_client {
    struct queued queued;
    struct join_half half;
};

/* A trace with a marked id. */
struct join_group {
    struct queued queued;
    struct table_link in_table;
    uint64_t id;
    enum queue_kind kind;       /* its queue; not used if the group is below another group */
    struct join_group *above;   /* the group that has joined this group's spans; NULL: none */
    struct cds_list_head below; /* of a topmost group: all groups that joined it */
    struct cds_list_head in_below;
    struct span_copy *first, *last; /* of a topmost group */
    struct span_copy *root;         /* NULL: not arrived, or given out */
    bool has_half;
    bool is_unjoined;
    struct join_half half;          /* of the root */
    uint64_t final_high, final_low; /* the decided trace id */
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

/* See struct stage_kind. */
void join_advance(struct stage *stage);
bool join_flush_some(struct stage *stage, unsigned traces);

static inline size_t copy_bytes(const struct span_copy *copy)
{
    return sizeof(*copy) + copy->span.log_capacity;
}

/* Returns NULL if the queue is empty. */
struct queued *join_first_of(const struct join *join, enum queue_kind kind);

struct join_group *join_find_group(const struct join *join, uint64_t id);

/* Appends a list of spans that are counted already. */
void join_append(struct join_group *top, struct span_copy *first, struct span_copy *last);

/* Appends an entry that is in no queue to a queue. */
void join_queue_up(struct join *join, enum queue_kind kind, struct queued *queued);

/* Moves the group from its queue to the end of a queue. */
void join_set_kind(struct join *join, struct join_group *group, enum queue_kind kind);

static inline struct join_group *join_topmost(struct join_group *group)
{
    struct join_group *top = group;

    while (top->above)
        top = top->above;
    while (group->above) { /* shortens the path for the next search */
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

/* Gives the spans of a trace out under the id that they have. */
void join_decide_as_is(struct join *join, struct join_group *group);

/* Gives out the longest held traces until there is room for `bytes` bytes. */
void join_make_room(struct join *join, size_t bytes);

void join_forget_client(struct join *join, struct join_client *client);

/* ---- matching halves ------------------------------------------------------------------------- */

/* Enumerates the fitting halves of the other side. */
struct join_search {
    int64_t skew_ns;
    const struct join_half *half;
    struct table_link *next;
    unsigned seen;
};

static inline struct join_search join_search(const struct table *halves, int64_t skew_ns,
                                             const struct join_half *half)
{
    const uint64_t hash = hash_number(halves->seed, half->key);

    return (struct join_search){skew_ns, half, table_first_of(halves, hash), 0};
}

static inline bool join_search_is_crowded(const struct join_search *search)
{
    return search->seen > JOIN_CANDIDATES_MAX;
}

/* Returns NULL at the end, or if the key has too many halves. */
static inline struct join_half *join_search_next(struct join_search *search)
{
    const struct join_half *half = search->half;

    while (search->next && !join_search_is_crowded(search)) {
        struct join_half *other = caa_container_of(search->next, struct join_half, in_table);

        search->next = table_from(search->next->next, search->next->hash);
        if (other->key != half->key)
            continue;
        search->seen++;
        if (!join_search_is_crowded(search) && join_half_fits(half, other, search->skew_ns))
            return other;
    }
    return NULL;
}

/* Returns JOIN_PAIR if exactly one half fits. *found: the first half that fits, or NULL. */
static inline enum join_verdict join_search_all(const struct table *halves, int64_t skew_ns,
                                                const struct join_half *half,
                                                struct join_half **found)
{
    struct join_search search = join_search(halves, skew_ns, half);
    struct join_half *more;

    *found = join_search_next(&search);
    more = *found ? join_search_next(&search) : NULL;
    if (join_search_is_crowded(&search) || more)
        return JOIN_UNSURE;
    return *found ? JOIN_PAIR : JOIN_ALONE;
}

#endif
