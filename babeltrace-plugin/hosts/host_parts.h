/*
 * Inside of host.h: what its parts share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_HOST_PARTS_H
#define BLKIN_CORE_HOST_PARTS_H

#include "babeltrace-plugin/base/table.h"
#include "host.h"
#include "host_tags.h"

#include <urcu/list.h>

/* Most that a group's instance takes for its samples. */
#define HISTORY_BYTES_MAX \
    (HISTORY_SAMPLES * (sizeof(struct sample) + HISTORY_VALUES_MAX * sizeof(uint64_t)))

/*
 * Of one host and group. Each sample looks its instance up in a list, and each span looks at all of
 * them, so that a trace with made-up names must not make them many.
 */
#define HOST_INSTANCES_MAX 256U

/* Bytes of a host's name, and of a group's instance. */
#define HOST_TEXT_MAX 255U

/* The tags of a span take that as a rule. */
#define SPARE 2048U

/* Times of a trace may be any; a is not after b. */
static inline uint64_t host_distance(int64_t a, int64_t b)
{
    return (uint64_t)b - (uint64_t)a;
}

struct held {
    struct held *next;
    int64_t since_ns; /* trace time */
    struct span span; /* its log is not set */
    char log[];
};

struct host {
    struct cds_hlist_node in_table; /* by its name */
    struct cds_list_head in_all;    /* in the order in which they came */
    struct cds_list_head in_waiting;
    struct host_part *parts[HOST_GROUPS];
    unsigned part_count[HOST_GROUPS];
    struct host_part *next[HOST_GROUPS]; /* whose sample comes next, as they are read in an order */
    struct held
        *first; /* the one that has waited for longest; NULL: the host is not in `waiting` */
    struct held *last;
    int64_t complete_ns; /* all samples of before have come */
    int64_t wait_ns;     /* no span waits for longer */
    uint32_t name_length;
    char name[];
};

struct hosts {
    struct hosts_gate gate; /* first of all */
    struct hosts_options options;
    hosts_deliver_fn *deliver;
    void *context;
    struct table table;
    struct cds_list_head all;
    struct cds_list_head waiting; /* hosts that have spans which wait, in the order of that */
    struct layouts layouts;
    const struct host_view *views[HOST_GROUPS][HISTORY_VIEWS_MAX];
    int64_t swept_ns; /* when what is silent was looked for */
    bool has_swept;
    struct hosts_counts counts;
};

/* NULL: there is none. */
struct host *hosts_find(const struct hosts *hosts, struct text name);
struct host_part *hosts_find_part(struct host *host, enum host_group group, struct text instance);

/* These return NULL when out of memory; they ask for no room. */
struct host *hosts_new_host(struct hosts *hosts, struct text name);
struct host_part *hosts_new_part(struct hosts *hosts, struct host *host, enum host_group group,
                                 struct text instance);
struct held *hosts_append(struct hosts *hosts, struct host *host, const struct span *span,
                          int64_t since_ns);

#endif
