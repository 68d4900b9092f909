/*
 * Private declarations of hosts.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_STAGES_HOSTS_PARTS_H
#define BLKIN_STAGES_HOSTS_PARTS_H

#include "babeltrace-plugin/base/table.h"
#include "babeltrace-plugin/hosts/host_tags.h"
#include "hosts.h"

#include <urcu/list.h>

/* The most bytes of samples that an instance of a group has. */
#define HISTORY_BYTES_MAX \
    (HISTORY_SAMPLES * (sizeof(struct history_sample) + HISTORY_VALUES_MAX * sizeof(uint64_t)))

/* The most instances of one host and group. Each sample and each span searches their list, so a
 * trace with made-up names must not make the list long. */
#define HOST_INSTANCES_MAX 256U

/* The most bytes of a host's name, and of an instance's name. */
#define HOST_TEXT_MAX 255U

/* The room for tags in the log of a span: their usual size. */
#define TAGS_ROOM 2048U

/* a is not after b. Unsigned, because a trace may have any times. */
static inline uint64_t host_distance(int64_t a, int64_t b)
{
    return (uint64_t)b - (uint64_t)a;
}

struct stage_host {
    struct table_link in_table;  /* by its name */
    struct cds_list_head in_all; /* in order of creation */
    struct cds_list_head in_waiting;
    struct host_part *parts[HOST_GROUPS];
    unsigned part_count[HOST_GROUPS];
    struct host_part *next[HOST_GROUPS]; /* of the next sample: samples arrive in a fixed order */
    struct span_copy *first;             /* the longest held span, in trace time */
    struct span_copy *last;              /* NULL: the host is not in `waiting` */
    int64_t complete_ns;                 /* each group has a sample of this time or later */
    int64_t wait_ns;                     /* the longest wait of a span */
    uint32_t name_length;
    char name[];
};

struct hosts {
    struct stage stage;
    struct hosts_options options;
    bool is_open; /* metrics of a host have arrived */
    struct table table;
    struct cds_list_head all;
    struct cds_list_head waiting; /* hosts with held spans, in the order of their first span */
    struct layouts layouts;
    const struct host_view *views[HOST_GROUPS][HISTORY_VIEWS_MAX];
    int64_t swept_ns; /* the last search for silent hosts */
    bool has_swept;
    struct hosts_counts counts;
};

static inline struct hosts *hosts_of(const struct stage *stage)
{
    return (struct hosts *)(uintptr_t)stage;
}

/* Returns true if the span's host is known. */
bool hosts_knows(const struct hosts *hosts, const struct span *span);

/* Returns true if the span gets tags. Inline, because the stage asks for every span. */
static inline bool hosts_wants(const struct hosts *hosts, const struct span *span)
{
    return hosts->is_open &&
           (uint64_t)span->end_ns - (uint64_t)span->start_ns >= (uint64_t)hosts->options.min_ns &&
           hosts_knows(hosts, span);
}

#endif
