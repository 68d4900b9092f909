/*
 * Inside of hosts.h: what its parts share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_STAGES_HOSTS_PARTS_H
#define BLKIN_STAGES_HOSTS_PARTS_H

#include "babeltrace-plugin/base/table.h"
#include "babeltrace-plugin/hosts/host_tags.h"
#include "hosts.h"

#include <urcu/list.h>

/* Most that a group's instance takes for its samples. */
#define HISTORY_BYTES_MAX \
    (HISTORY_SAMPLES * (sizeof(struct history_sample) + HISTORY_VALUES_MAX * sizeof(uint64_t)))

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

struct stage_host {
    struct table_link in_table;  /* by its name */
    struct cds_list_head in_all; /* in the order in which they came */
    struct cds_list_head in_waiting;
    struct host_part *parts[HOST_GROUPS];
    unsigned part_count[HOST_GROUPS];
    struct host_part *next[HOST_GROUPS]; /* whose sample comes next, as they are read in an order */
    struct kept_span *first;             /* the one that has waited for longest, in trace time; */
    struct kept_span *last;              /* NULL: the host is not in `waiting` */
    int64_t complete_ns;                 /* all samples of before have come */
    int64_t wait_ns;                     /* no span waits for longer */
    uint32_t name_length;
    char name[];
};

struct hosts {
    struct stage stage;
    struct hosts_options options;
    bool is_open; /* metrics of any host have come */
    struct table table;
    struct cds_list_head all;
    struct cds_list_head waiting; /* hosts that have spans which wait, in the order of that */
    struct layouts layouts;
    const struct host_view *views[HOST_GROUPS][HISTORY_VIEWS_MAX];
    int64_t swept_ns; /* when what is silent was looked for */
    bool has_swept;
    struct hosts_counts counts;
};

static inline struct hosts *hosts_of(const struct stage *stage)
{
    return (struct hosts *)(uintptr_t)stage;
}

/* The host that the span is of. */
bool hosts_knows(const struct hosts *hosts, const struct span *span);

/* Is the span to be tagged? Inline: asked for each span. */
static inline bool hosts_wants(const struct hosts *hosts, const struct span *span)
{
    return hosts->is_open &&
           (uint64_t)span->end_ns - (uint64_t)span->start_ns >= (uint64_t)hosts->options.min_ns &&
           hosts_knows(hosts, span);
}

#endif
