/*
 * What joining is made of, for those of its files that are about more than one of these.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_JOIN_PARTS_H
#define BLKIN_CORE_JOIN_PARTS_H

#include "join.h"

#include "babeltrace-plugin/base/table.h"

#include <urcu/list.h>

#define JOINED_ROOM 80U /* that an entry of a log for the tag blkin.joined takes */

/* All that waits is in one of these, the first in first. What is nearer to a decision comes first:
 * so it is flushed. */
enum queue_kind {
    SETTLING, /* traces whose root has found a client's half */
    WAITING,  /* those whose root has not */
    OPEN,     /* those whose root has not come yet; by the last span */
    DECIDED,  /* those that were given out, for what comes later */
    CLIENTS,  /* clients' halves */
    QUEUES
};

struct queued {
    struct cds_list_head link;
    int64_t since_ns;
};

struct half {
    struct cds_hlist_node in_table;
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

struct client {
    struct queued queued;
    struct half half;
};

/* A trace whose id is marked. */
struct group {
    struct queued queued;
    struct cds_hlist_node in_table;
    uint64_t id;
    enum queue_kind kind;       /* of the queue; without meaning if it is below another one */
    struct group *above;        /* the one whose spans it has become part of; NULL: none */
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
    struct join_options options;
    join_deliver_fn *deliver;
    void *context;
    int64_t now_ns;
    struct cds_list_head queues[QUEUES];
    struct table groups;
    struct table halves;
    struct join_counts counts;
};

static inline size_t kept_bytes(const struct kept_span *kept)
{
    return sizeof(*kept) + kept->span.log_capacity;
}

struct group *join_find_group(const struct join *join, uint64_t id);

/* In no queue yet. Returns NULL when out of memory. */
struct group *join_new_group(struct join *join, uint64_t id);

/* So that it is found by its key. */
void join_add_half(struct join *join, struct half *half);

/* A list of spans, which are counted already. */
void join_append(struct group *top, struct kept_span *first, struct kept_span *last);

#endif
