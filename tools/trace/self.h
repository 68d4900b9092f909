/*
 * Self time: what a span takes by itself, apart from its children.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SELF_H
#define BLKIN_TOOLS_SELF_H

#include "tree.h"

/*
 * In us: the duration without the times in which some child is under way. Of a client's span whose
 * child is the server's it is the time on the network, and in the server's queues.
 */
int64_t self_time(const struct node *node);

/* The node of the longest self time; NULL if none has any. After trace_arrange(). */
const struct node *self_longest(const struct trace *trace);

#endif
