/*
 * Joining, from one trace of a recording to the next: the queues one after the other.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/spans/assembler.h"
#include "join_parts.h"

#include <stdlib.h>

/* ---- a half ---------------------------------------------------------------------------------- */

static void half_state(struct half *half, struct state *state)
{
    state_bool(state, &half->is_taken);
    state_bool(state, &half->is_late);
    state_number(state, &half->key);
    state_number(state, &half->place);
    state_number(state, &half->sizes);
    state_number(state, &half->trace_id_high);
    state_number(state, &half->trace_id);
    state_number(state, &half->span_id);
    state_signed(state, &half->start_ns);
    state_signed(state, &half->end_ns);
}

/* Since when something waits: in a queue never before the one before. */
static void restore_queued(struct join *join, enum queue_kind kind, struct queued *queued,
                           struct state *state)
{
    struct cds_list_head *queue = &join->queues[kind];

    queued->since_ns = state_get_signed(state);
    if (queued->since_ns > join->now_ns ||
        (!cds_list_empty(queue) &&
         queued->since_ns < cds_list_entry(queue->prev, struct queued, link)->since_ns))
        state_set_damaged(state);
    cds_list_add_tail(&queued->link, queue);
}

/* ---- a trace --------------------------------------------------------------------------------- */

static void group_state(struct group *group, struct state *state)
{
    state_bool(state, &group->is_unjoined);
    state_number(state, &group->final_high);
    state_number(state, &group->final_low);
    state_bool(state, &group->has_half);
    if (group->has_half)
        half_state(&group->half, state);
}

static void save_group(struct group *group, struct state *state)
{
    state_put_number(state, group->id);
    group_state(group, state);
}

/* Returns NULL if the state is not good. */
static struct group *restore_group(struct join *join, struct state *state)
{
    const uint64_t id = state_get_number(state);
    struct group *group;

    if (join_find_group(join, id))
        state_set_damaged(state);
    group = state_is_good(state) ? join_new_group(join, id) : NULL;
    if (!group) {
        if (state_is_good(state))
            state_set_no_memory(state);
        return NULL;
    }
    CDS_INIT_LIST_HEAD(&group->queued.link);
    group_state(group, state);
    if (group->has_half)
        join_add_half(join, &group->half);
    return group;
}

static void save_top(struct group *top, struct assembler *assembler, struct state *state)
{
    struct group *group;

    save_group(top, state);
    state_put_signed(state, top->queued.since_ns);
    cds_list_for_each_entry(group, &top->below, in_below)
    {
        state_put_bool(state, true);
        save_group(group, state);
    }
    state_put_bool(state, false);
    for (const struct kept_span *kept = top->first; kept; kept = kept->next) {
        state_put_bool(state, true);
        span_save(&kept->span, assembler, state);
    }
    state_put_bool(state, false);
}

static void restore_below(struct join *join, struct group *top, struct state *state)
{
    while (state_get_bool(state)) {
        struct group *group = restore_group(join, state);

        if (!group)
            return;
        group->above = top;
        cds_list_add_tail(&group->in_below, &top->below);
        if (!group->has_half || top->kind == DECIDED)
            state_set_damaged(state);
    }
}

static void restore_kept(struct join *join, struct group *top, struct assembler *assembler,
                         struct state *state)
{
    struct kept_span *kept = span_restore(assembler, JOINED_ROOM, state);

    if (!kept)
        return;
    join_append(top, kept, kept);
    join->counts.spans_held++;
    join->counts.held_bytes += kept_bytes(kept);
    if (top->has_half && kept->span.id == top->half.span_id && !kept->span.parent_id)
        top->root = kept;
}

static void restore_top(struct join *join, enum queue_kind kind, struct assembler *assembler,
                        struct state *state)
{
    const bool has_half = kind == SETTLING || kind == WAITING;
    struct group *top = restore_group(join, state);

    if (!top)
        return;
    top->kind = kind;
    restore_queued(join, kind, &top->queued, state);
    restore_below(join, top, state);
    while (state_get_bool(state))
        restore_kept(join, top, assembler, state);
    if (has_half) {
        join->counts.halves++;
        join->counts.waiting++;
    }
    if (has_half ? !top->root : top->root || (kind == DECIDED && top->first))
        state_set_damaged(state);
}

/* ---- clients' halves ------------------------------------------------------------------------- */

static void restore_client(struct join *join, struct state *state)
{
    struct client *client = calloc(1, sizeof(*client));

    if (!client) {
        state_set_no_memory(state);
        return;
    }
    client->half.is_client = true;
    restore_queued(join, CLIENTS, &client->queued, state);
    half_state(&client->half, state);
    join_add_half(join, &client->half);
    join->counts.held_bytes += sizeof(*client);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void join_hand_over(struct stage *stage)
{
    struct join_counts *counts = &join_of(stage)->counts;

    counts->halves -= counts->waiting;
    counts->waiting = counts->spans_held = counts->held_bytes = 0;
}

void join_save(struct stage *stage, struct assembler *assembler, struct state *state)
{
    struct join *join = join_of(stage);
    struct group *top;
    struct client *client;

    state_put_signed(state, join->now_ns);
    for (enum queue_kind kind = 0; kind < CLIENTS; kind++) {
        cds_list_for_each_entry(top, &join->queues[kind], queued.link)
        {
            state_put_bool(state, true);
            save_top(top, assembler, state);
        }
        state_put_bool(state, false);
    }
    cds_list_for_each_entry(client, &join->queues[CLIENTS], queued.link)
    {
        state_put_bool(state, true);
        state_put_signed(state, client->queued.since_ns);
        half_state(&client->half, state);
    }
    state_put_bool(state, false);
}

void join_restore(struct stage *stage, struct assembler *assembler, struct state *state)
{
    struct join *join = join_of(stage);

    join->now_ns = state_get_signed(state);
    for (enum queue_kind kind = 0; kind < CLIENTS; kind++) {
        while (state_get_bool(state))
            restore_top(join, kind, assembler, state);
    }
    while (state_get_bool(state))
        restore_client(join, state);
}
