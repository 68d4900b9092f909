/*
 * Self time: what a span takes by itself, apart from its children.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "self.h"

/* Children are in the order of their starts, those without one last. */
int64_t self_time(const struct node *node)
{
    const struct span *span = node->span;
    const int64_t end = span->start + span->duration;
    int64_t reached = span->start; /* until here it is known who had the time */
    int64_t self = 0;

    if (span->start == 0)
        return span->duration;
    for (const struct node *child = node->child; child && child->span->start; child = child->next) {
        const int64_t from = child->span->start < end ? child->span->start : end;
        const int64_t to = child->span->start + child->span->duration;

        if (from > reached)
            self += from - reached;
        if (to > reached)
            reached = to < end ? to : end;
    }
    return self + end - reached;
}

const struct node *self_longest(const struct trace *trace)
{
    const struct node *found = NULL;
    int64_t longest = 0;

    for (const struct node *node = trace->top; node; node = node_after(node)) {
        const int64_t self = self_time(node);

        if (self > longest) {
            longest = self;
            found = node;
        }
    }
    return found;
}
