/*
 * Spans sorted into traces, and a trace into a tree.
 *
 * A trace can be incomplete, and can be nonsense: a parent may be missing, ids may be there twice,
 * spans may be each other's parents. Every span is in the tree exactly once all the same.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tree.h"

#include <stdlib.h>
#include <string.h>

/* In the order of the file where nothing else decides. */
static int by_address(const void *a, const void *b)
{
    return (a > b) - (a < b);
}

static int by_time(const struct span *a, const struct span *b)
{
    if (!a->start != !b->start)
        return a->start ? -1 : 1;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return by_address(a, b);
}

static int by_trace_and_time(const void *a, const void *b)
{
    const struct span *left = ((const struct node *)a)->span;
    const struct span *right = ((const struct node *)b)->span;
    const int order = strcmp(left->trace_id, right->trace_id);

    return order ? order : by_time(left, right);
}

static int by_first_span(const void *a, const void *b)
{
    return by_time(((const struct trace *)a)->nodes->span, ((const struct trace *)b)->nodes->span);
}

static void measure(struct trace *trace)
{
    trace->id = trace->nodes->span->trace_id;
    trace->start = trace->end = trace->nodes->span->start;
    for (size_t i = 0; i < trace->count; i++) {
        const struct span *span = trace->nodes[i].span;

        trace->errors += span->error != NULL;
        if (span->start && span->start + span->duration > trace->end)
            trace->end = span->start + span->duration;
    }
}

bool traces_sort(const struct span_list *spans, struct trace_list *list)
{
    struct trace *trace = NULL;

    list->nodes = calloc(spans->count, sizeof(*list->nodes));
    list->traces = calloc(spans->count, sizeof(*list->traces));
    list->count = 0;
    if (!list->nodes || !list->traces)
        return false;
    for (size_t i = 0; i < spans->count; i++)
        list->nodes[i].span = &spans->spans[i];
    qsort(list->nodes, spans->count, sizeof(*list->nodes), by_trace_and_time);
    for (size_t i = 0; i < spans->count; i++) {
        struct node *node = &list->nodes[i];

        if (!trace || strcmp(trace->nodes->span->trace_id, node->span->trace_id) != 0) {
            trace = &list->traces[list->count++];
            trace->nodes = node;
        }
        trace->count++;
    }
    for (size_t i = 0; i < list->count; i++)
        measure(&list->traces[i]);
    qsort(list->traces, list->count, sizeof(*list->traces), by_first_span);
    return true;
}

void traces_free(struct trace_list *list)
{
    free(list->nodes);
    free(list->traces);
}

/* ---- the tree of one trace */

static int by_id(const void *a, const void *b)
{
    const struct node *left = *(struct node *const *)a;
    const struct node *right = *(struct node *const *)b;
    const int order = strcmp(left->span->id, right->span->id);

    return order ? order : by_address(left, right);
}

/* The first of the sorted nodes with this id, or the end of them. */
static size_t find(struct node *const *sorted, size_t count, const char *id)
{
    size_t low = 0;

    while (low < count) {
        const size_t middle = low + (count - low) / 2;

        if (strcmp(sorted[middle]->span->id, id) < 0)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/*
 * Client and server may share an id: the server's half goes below the client's, and whatever names
 * that id as its parent below the half of its own service.
 */
static struct node *find_parent(struct node *const *sorted, size_t count, const struct node *node)
{
    const struct span *span = node->span;
    const char *wanted = span->shared ? span->id : span->parent;
    struct node *found = NULL;

    for (size_t i = find(sorted, count, wanted);
         i < count && strcmp(sorted[i]->span->id, wanted) == 0; i++) {
        const struct span *other = sorted[i]->span;

        if (sorted[i] == node || (span->shared && other->shared))
            continue;
        if (!found || strcmp(other->service, span->service) == 0)
            found = sorted[i];
    }
    if (!found && span->shared && span->parent[0]) {
        const size_t i = find(sorted, count, span->parent);

        if (i < count && strcmp(sorted[i]->span->id, span->parent) == 0)
            found = sorted[i];
    }
    return found;
}

/* Nodes are added by time, so each list of children is sorted. */
static void add_child(struct node *parent, struct node *node)
{
    if (parent->last_child)
        parent->last_child->next = node;
    else
        parent->child = node;
    parent->last_child = node;
}

static void remove_child(struct node *parent, struct node *node)
{
    struct node *before = NULL;
    struct node *child = parent->child;

    for (; child != node; child = child->next)
        before = child;
    if (before)
        before->next = node->next;
    else
        parent->child = node->next;
    if (parent->last_child == node)
        parent->last_child = before;
    node->next = NULL;
}

/* The node after this one in the tree below top (NULL: in all trees), children before siblings. */
static struct node *node_below(const struct node *node, const struct node *top)
{
    if (node->child)
        return node->child;
    while (node != top && !node->next)
        node = node->parent;
    return node == top ? NULL : node->next;
}

struct node *node_after(const struct node *node)
{
    return node_below(node, NULL);
}

/* Numbers the depth of all that is below a node at the top; 0 is for those not reached yet. */
static void reach(struct node *top)
{
    for (struct node *node = top; node; node = node_below(node, top))
        node->depth = node == top ? 1 : node->parent->depth + 1;
}

static void link_parents(struct trace *trace, struct node **sorted)
{
    for (size_t i = 0; i < trace->count; i++)
        sorted[i] = &trace->nodes[i];
    qsort(sorted, trace->count, sizeof(struct node *), by_id);
    for (size_t i = 0; i < trace->count; i++) {
        struct node *node = &trace->nodes[i];

        node->parent = find_parent(sorted, trace->count, node);
        node->orphan = !node->parent && node->span->parent[0] && !node->span->shared;
        if (node->parent)
            add_child(node->parent, node);
    }
}

/* What is not below a top node goes round in a circle: cut it at its first span. */
static void cut_circles(struct trace *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        if (!trace->nodes[i].parent)
            reach(&trace->nodes[i]);
    }
    for (size_t i = 0; i < trace->count; i++) {
        struct node *node = &trace->nodes[i];

        if (node->depth)
            continue;
        remove_child(node->parent, node);
        node->parent = NULL;
        node->orphan = true;
        reach(node);
    }
}

bool trace_arrange(struct trace *trace)
{
    struct node **sorted = calloc(trace->count, sizeof(struct node *));
    struct node **end = &trace->top;

    if (!sorted)
        return false;
    link_parents(trace, sorted);
    cut_circles(trace);
    /* Whole trees first. */
    for (int orphans = 0; orphans < 2; orphans++) {
        for (size_t i = 0; i < trace->count; i++) {
            struct node *node = &trace->nodes[i];

            if (node->parent || node->orphan != orphans)
                continue;
            *end = node;
            end = &node->next;
        }
    }
    free(sorted);
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

size_t trace_services(const struct trace *trace)
{
    const char **names = calloc(trace->count, sizeof(char *));
    size_t services = 0;

    if (!names)
        return 0;
    for (size_t i = 0; i < trace->count; i++)
        names[i] = trace->nodes[i].span->service;
    qsort(names, trace->count, sizeof(char *), by_text);
    for (size_t i = 0; i < trace->count; i++)
        services += names[i][0] && (i == 0 || strcmp(names[i - 1], names[i]) != 0);
    free(names);
    return services;
}
