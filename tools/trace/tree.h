/*
 * Spans sorted into traces, and a trace into a tree.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_TREE_H
#define BLKIN_TOOLS_TREE_H

#include "load.h"

struct node {
    const struct span *span;
    struct node *parent; /* NULL: at the top */
    struct node *child;  /* the first one */
    struct node *last_child;
    struct node *next; /* of the same parent, or the next one at the top */
    int depth;
    bool orphan; /* has a parent that is not in the trace, or is its own ancestor */
};

struct trace {
    const char *id;
    struct node *nodes; /* by time; those without a time last */
    size_t count;
    struct node *top; /* after trace_arrange() */
    int64_t start;    /* of the first span that has a time; 0: none has */
    int64_t end;
    size_t errors;
};

struct trace_list {
    struct trace *traces; /* by time */
    size_t count;
    struct node *nodes; /* of all of them */
};

/* Out of memory: returns false. */
bool traces_sort(const struct span_list *spans, struct trace_list *list);
void traces_free(struct trace_list *list);

/* Links the nodes of a trace. Out of memory: returns false. */
bool trace_arrange(struct trace *trace);

/* The node after this one, children before siblings; NULL after the last one. */
struct node *node_after(const struct node *node);

/* How many different services have spans in it. */
size_t trace_services(const struct trace *trace);

#endif
