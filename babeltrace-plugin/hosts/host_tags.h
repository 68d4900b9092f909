/*
 * The tags that describe a span's host (doc/host.md lists them), with the findings in a sentence.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_HOST_TAGS_H
#define BLKIN_CORE_HOST_TAGS_H

#include "babeltrace-plugin/spans/span.h"
#include "host_history.h"

/* The groups that give tags. Other groups are dropped. */
enum host_group {
    GROUP_DISK,
    HOST_GROUP_CPU,
    GROUP_PRESSURE,
    GROUP_RUN_QUEUE,
    HOST_GROUP_MEMORY,
    GROUP_TCP,
    HOST_GROUPS
};

/* No span waits for a group with a longer period. */
#define HOST_WAIT_PERIOD_NS INT64_C(5000000000)

/* Finds the group by its name. A group of the whole host has no instances. */
bool host_group_find(struct text group, struct text instance, enum host_group *found);

/* The views to compute for a group; NULL: no further view. */
void host_group_views(enum host_group group, const struct host_view *views[HISTORY_VIEWS_MAX]);

/* An instance of a group. */
struct host_part {
    struct host_part *next; /* of the host and the group, in order of creation */
    enum host_group group;
    struct history history;
    int64_t heard_ns; /* trace time of the last sample */
    uint32_t instance_length;
    char instance[];
};

/* Tags the span with the state of the host during the span. malloc() made the span's log. Returns
 * how many tags found no room. *is_tagged: the state was known. */
unsigned host_tag(struct span *span, struct host_part *const parts[HOST_GROUPS], bool *is_tagged);

#endif
