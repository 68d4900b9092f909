/*
 * What is told of a host on a span: the tags (doc/host.md lists them), and in a sentence what stood
 * out.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_HOST_TAGS_H
#define BLKIN_CORE_HOST_TAGS_H

#include "babeltrace-plugin/spans/span.h"
#include "host_history.h"

/* The groups that are of use here; of the others nothing is kept. */
enum host_group {
    GROUP_DISK,
    HOST_GROUP_CPU,
    GROUP_PRESSURE,
    GROUP_RUN_QUEUE,
    HOST_GROUP_MEMORY,
    GROUP_TCP,
    HOST_GROUPS
};

/* No span waits for one that is read more rarely. */
#define HOST_WAIT_PERIOD_NS INT64_C(5000000000)

/* Is it one of these? Of a group that is the whole host's, instances are not. */
bool host_group_find(struct text group, struct text instance, enum host_group *found);

/* What is computed of a group; NULL: nothing more. */
void host_group_views(enum host_group group, const struct host_view *views[HISTORY_VIEWS_MAX]);

/* A group's instance. */
struct host_part {
    struct host_part *next; /* of the host and the group, in the order in which they came */
    enum host_group group;
    struct history history;
    int64_t heard_ns; /* trace time of the last sample */
    uint32_t instance_length;
    char instance[];
};

/*
 * Tags the span, whose log is malloc's, with what is known of the time that it took. Returns how
 * many tags found no room; *is_tagged: something was known.
 */
unsigned host_tag(struct span *span, struct host_part *const parts[HOST_GROUPS], bool *is_tagged);

#endif
