/*
 * Joining: at the end of its wait, a trace becomes part of the trace of its client, or keeps its
 * id.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "join_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The tag of a joined trace's root: the former trace id, which the program knows. */
#define JOINED_TAG "blkin.joined"

/* ---- the client of a server ------------------------------------------------------------------ */

/* Many networks have the same private addresses. Within one network, equal addresses mean the same
 * connection. Between two networks, the byte counts must agree, too. A server may answer before it
 * has read the end of the request, as php-fpm does. */
static bool join_is_proven(const struct join_half *client, const struct join_half *server)
{
    return client->network == server->network ||
           (client->network && server->network &&
            client->response_bytes == server->response_bytes &&
            client->request_bytes >= server->request_bytes);
}

enum join_verdict join_find_client(const struct table *halves, int64_t skew_ns,
                                   const struct join_half *server, struct join_half **client)
{
    const enum join_verdict verdict = join_search_all(halves, skew_ns, server, client);
    struct join_half *other;

    if (verdict != JOIN_PAIR)
        return verdict;
    return !(*client)->is_taken && join_is_proven(*client, server) &&
                   join_search_all(halves, skew_ns, *client, &other) == JOIN_PAIR
               ? JOIN_PAIR
               : JOIN_UNSURE;
}

/* ---- the id of a trace ----------------------------------------------------------------------- */

static void join_give_out(struct join *join, struct join_group *top, uint64_t high, uint64_t low)
{
    struct span_copy *copy = top->first, *next;

    top->first = top->last = NULL;
    for (; copy; copy = next) {
        next = copy->next;
        join->counts.spans_held--;
        join->counts.held_bytes -= copy_bytes(copy);
        join_set_trace(&copy->span, high, low);
        stage_pass(&join->stage, &copy->span);
        free(copy);
    }
}

static void join_note_decided(struct join_group *group, uint64_t high, uint64_t low)
{
    group->above = NULL;
    group->root = NULL;
    group->final_high = high;
    group->final_low = low;
}

/* Sets the final id of the trace and of all traces below. */
static void join_decide(struct join *join, struct join_group *top, uint64_t high, uint64_t low)
{
    struct join_group *group, *next;

    cds_list_for_each_entry_safe(group, next, &top->below, in_below)
    {
        cds_list_del(&group->in_below);
        join_note_decided(group, high, low);
        group->kind = JOIN_DECIDED;
        join_queue_up(join, JOIN_DECIDED, &group->queued);
    }
    CDS_INIT_LIST_HEAD(&top->below);
    join_note_decided(top, high, low);
    join_set_kind(join, top, JOIN_DECIDED);
    join_give_out(join, top, high, low);
}

void join_decide_as_is(struct join *join, struct join_group *group)
{
    join_decide(join, group, JOIN_TRACE_HIGH, group->id);
}

/* ---- joining --------------------------------------------------------------------------------- */

/* If the root is held, span_copy_new() has reserved room for the tag. */
static void join_set_parent(struct span *root, uint64_t trace_id, uint64_t parent_id)
{
    char value[33];

    (void)snprintf(value, sizeof(value), "%016" PRIx64 "%016" PRIx64, JOIN_TRACE_HIGH, trace_id);
    (void)span_add(root, SPAN_TAG_TEXT, text_of(JOINED_TAG), text_of(value), 0);
    root->parent_id = parent_id;
}

void join_put_span(struct span *span, const struct join_place *place)
{
    if (place->verdict == JOIN_PAIR && span->parent_id == 0 && span->kind == SPAN_SERVER)
        join_set_parent(span, span->trace_id, place->parent_id);
    join_set_trace(span, place->trace_id_high, place->trace_id);
    span->is_joined = true;
}

static void join_put_below(struct join_group *group, struct join_group *top)
{
    cds_list_del(&group->queued.link);
    join_append(top, group->first, group->last);
    group->first = group->last = NULL;
    cds_list_splice(&group->below, &top->below);
    CDS_INIT_LIST_HEAD(&group->below);
    cds_list_add(&group->in_below, &top->below);
    group->above = top;
}

/* Returns false if joining would make a cycle. */
static bool join_to(struct join *join, struct join_group *group, struct join_half *client)
{
    /* the group of the client's trace, if that trace is or was held */
    struct join_group *above = client->trace_id_high == JOIN_TRACE_HIGH
                                   ? join_find_group(join, client->trace_id)
                                   : NULL,
                      *top = above ? join_topmost(above) : NULL;

    if (top == group)
        return false;
    client->is_taken = true;
    join_set_parent(&group->root->span, group->id, client->span_id);
    if (!top)
        join_decide(join, group, client->trace_id_high, client->trace_id);
    else if (top->kind == JOIN_DECIDED)
        join_decide(join, group, top->final_high, top->final_low);
    else
        join_put_below(group, top);
    return true;
}

static void join_decide_by_client(struct join *join, struct join_group *group)
{
    struct join_half *client;
    enum join_verdict verdict =
        join_find_client(&join->halves, join->options.skew_ns, &group->half, &client);

    join->counts.waiting--;
    if (verdict == JOIN_PAIR && !join_to(join, group, client))
        verdict = JOIN_UNSURE;
    switch (verdict) {
    case JOIN_PAIR:
        join->counts.joined++;
        return;
    case JOIN_UNSURE:
        join->counts.ambiguous++;
        break;
    case JOIN_ALONE:
        join->counts.unjoined++;
        group->is_unjoined = true;
        break;
    }
    join_decide_as_is(join, group);
}

/* ---- the end of a wait ----------------------------------------------------------------------- */

static int64_t join_wait_of(const struct join *join, enum queue_kind kind)
{
    const int64_t wait_ns = join->options.wait_ns;
    const int64_t settle_ns = wait_ns > JOIN_SETTLE_NS ? JOIN_SETTLE_NS : wait_ns;

    switch (kind) {
    case SETTLING:
        return settle_ns;
    case OPEN:
        return join->options.root_wait_ns;
    case JOIN_CLIENTS: /* a server's half that arrives in time is compared again */
        return wait_ns + settle_ns;
    default:
        return wait_ns;
    }
}

static void join_forget_group(struct join *join, struct join_group *group)
{
    cds_list_del(&group->queued.link);
    table_remove(&join->groups, &group->in_table);
    if (group->has_half)
        table_remove(&join->halves, &group->half.in_table);
    join->counts.held_bytes -= sizeof(*group);
    free(group);
}

void join_forget_client(struct join *join, struct join_client *client)
{
    cds_list_del(&client->queued.link);
    table_remove(&join->halves, &client->half.in_table);
    join->counts.held_bytes -= sizeof(*client);
    free(client);
}

static void join_end_wait(struct join *join, enum queue_kind kind, struct queued *queued)
{
    switch (kind) {
    case SETTLING:
    case JOIN_WAITING:
        join_decide_by_client(join, cds_list_entry(&queued->link, struct join_group, queued.link));
        break;
    case OPEN:
        join->counts.rootless++;
        join_decide_as_is(join, cds_list_entry(&queued->link, struct join_group, queued.link));
        break;
    case JOIN_DECIDED:
        join_forget_group(join, cds_list_entry(&queued->link, struct join_group, queued.link));
        break;
    default:
        join_forget_client(join, cds_list_entry(&queued->link, struct join_client, queued.link));
        break;
    }
}

static void join_end_waits(struct join *join, enum queue_kind kind)
{
    const uint64_t wait_ns = (uint64_t)join_wait_of(join, kind);
    struct queued *first;

    while ((first = join_first_of(join, kind)) &&
           (uint64_t)join->now_ns - (uint64_t)first->since_ns >= wait_ns)
        join_end_wait(join, kind, first);
}

void join_advance(struct stage *stage)
{
    struct join *join = join_of(stage);

    if (stage_now(stage) > join->now_ns)
        join->now_ns = stage_now(stage);
    for (enum queue_kind kind = 0; kind < QUEUES; kind++)
        join_end_waits(join, kind);
}

bool join_flush_some(struct stage *stage, unsigned traces)
{
    struct join *join = join_of(stage);
    struct queued *first = NULL;

    for (enum queue_kind kind = SETTLING; kind <= OPEN; kind++) {
        while ((first = join_first_of(join, kind)) && traces) {
            join_end_wait(join, kind, first);
            traces--;
        }
        if (first)
            break;
    }
    return first != NULL;
}

void join_make_room(struct join *join, size_t bytes)
{
    while (join->counts.held_bytes + bytes > join->options.max_bytes) {
        struct queued *oldest = NULL;
        enum queue_kind kind = QUEUES;

        for (enum queue_kind i = 0; i < QUEUES; i++) {
            struct queued *first = join_first_of(join, i);

            if (first && (!oldest || first->since_ns < oldest->since_ns)) {
                oldest = first;
                kind = i;
            }
        }
        if (!oldest)
            break;
        join->counts.early += kind <= OPEN;
        join_end_wait(join, kind, oldest);
    }
}
