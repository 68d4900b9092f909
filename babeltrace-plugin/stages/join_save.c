/*
 * Joining, from one trace of a recording to the next: the queues one after the other.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/spans/assembler_parts.h"
#include "babeltrace-plugin/spans/save.h"
#include "join_parts.h"

#include <stdlib.h>

/* ---- a span that is held --------------------------------------------------------------------- */

static void restore_kept(struct join *join, struct group *top, struct assembler *assembler,
                         struct state_reader *reader)
{
    struct span span = {.log = NULL};
    struct kept_span *kept = NULL;

    span_restore(&span, assembler, reader);
    if (state_is_good(reader)) {
        kept = span_keep(&span, JOINED_ROOM);
        if (!kept)
            state_set_no_memory(reader);
    }
    free(span.log);
    if (!kept)
        return;
    join_append(top, kept, kept);
    join->counts.spans_held++;
    join->counts.held_bytes += kept_bytes(kept);
    if (top->has_half && kept->span.id == top->half.span_id && !kept->span.parent_id)
        top->root = kept;
}

/* ---- a half ---------------------------------------------------------------------------------- */

static void save_half(const struct half *half, struct state_writer *writer)
{
    state_put_number(writer, half->is_taken);
    state_put_number(writer, half->is_late);
    state_put_number(writer, half->key);
    state_put_number(writer, half->place);
    state_put_number(writer, half->sizes);
    state_put_number(writer, half->trace_id_high);
    state_put_number(writer, half->trace_id);
    state_put_number(writer, half->span_id);
    state_put_signed(writer, half->start_ns);
    state_put_signed(writer, half->end_ns);
}

static void restore_half(struct half *half, struct state_reader *reader)
{
    half->is_taken = state_get_bool(reader);
    half->is_late = state_get_bool(reader);
    half->key = state_get_number(reader);
    half->place = state_get_number(reader);
    half->sizes = state_get_number(reader);
    half->trace_id_high = state_get_number(reader);
    half->trace_id = state_get_number(reader);
    half->span_id = state_get_number(reader);
    half->start_ns = state_get_signed(reader);
    half->end_ns = state_get_signed(reader);
}

/* Since when something waits: in a queue never before the one before. */
static void restore_queued(struct join *join, enum queue_kind kind, struct queued *queued,
                           struct state_reader *reader)
{
    struct cds_list_head *queue = &join->queues[kind];

    queued->since_ns = state_get_signed(reader);
    if (queued->since_ns > join->now_ns ||
        (!cds_list_empty(queue) &&
         queued->since_ns < cds_list_entry(queue->prev, struct queued, link)->since_ns))
        state_set_damaged(reader);
    cds_list_add_tail(&queued->link, queue);
}

/* ---- a trace --------------------------------------------------------------------------------- */

static void save_group(const struct group *group, struct state_writer *writer)
{
    state_put_number(writer, group->id);
    state_put_number(writer, group->is_unjoined);
    state_put_number(writer, group->final_high);
    state_put_number(writer, group->final_low);
    state_put_number(writer, group->has_half);
    if (group->has_half)
        save_half(&group->half, writer);
}

/* Returns NULL if the reader is not good. */
static struct group *restore_group(struct join *join, struct state_reader *reader)
{
    const uint64_t id = state_get_number(reader);
    struct group *group;

    if (join_find_group(join, id))
        state_set_damaged(reader);
    group = state_is_good(reader) ? join_new_group(join, id) : NULL;
    if (!group) {
        if (state_is_good(reader))
            state_set_no_memory(reader);
        return NULL;
    }
    CDS_INIT_LIST_HEAD(&group->queued.link);
    group->is_unjoined = state_get_bool(reader);
    group->final_high = state_get_number(reader);
    group->final_low = state_get_number(reader);
    group->has_half = state_get_bool(reader);
    if (group->has_half) {
        restore_half(&group->half, reader);
        join_add_half(join, &group->half);
    }
    return group;
}

static void save_top(const struct group *top, struct assembler *assembler,
                     struct state_writer *writer)
{
    const struct group *group;

    save_group(top, writer);
    state_put_signed(writer, top->queued.since_ns);
    cds_list_for_each_entry(group, &top->below, in_below)
    {
        state_put_number(writer, true);
        save_group(group, writer);
    }
    state_put_number(writer, false);
    for (const struct kept_span *kept = top->first; kept; kept = kept->next) {
        state_put_number(writer, true);
        span_save(&kept->span, assembler, writer);
    }
    state_put_number(writer, false);
}

static void restore_below(struct join *join, struct group *top, struct state_reader *reader)
{
    while (state_get_bool(reader)) {
        struct group *group = restore_group(join, reader);

        if (!group)
            return;
        group->above = top;
        cds_list_add_tail(&group->in_below, &top->below);
        if (!group->has_half || top->kind == DECIDED)
            state_set_damaged(reader);
    }
}

static void restore_top(struct join *join, enum queue_kind kind, struct assembler *assembler,
                        struct state_reader *reader)
{
    const bool has_half = kind == SETTLING || kind == WAITING;
    struct group *top = restore_group(join, reader);

    if (!top)
        return;
    top->kind = kind;
    restore_queued(join, kind, &top->queued, reader);
    restore_below(join, top, reader);
    while (state_get_bool(reader))
        restore_kept(join, top, assembler, reader);
    if (has_half) {
        join->counts.halves++;
        join->counts.waiting++;
    }
    if (has_half ? !top->root : top->root || (kind == DECIDED && top->first))
        state_set_damaged(reader);
}

/* ---- clients' halves ------------------------------------------------------------------------- */

static void restore_client(struct join *join, struct state_reader *reader)
{
    struct client *client = calloc(1, sizeof(*client));

    if (!client) {
        state_set_no_memory(reader);
        return;
    }
    client->half.is_client = true;
    restore_queued(join, CLIENTS, &client->queued, reader);
    restore_half(&client->half, reader);
    join_add_half(join, &client->half);
    join->counts.held_bytes += sizeof(*client);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void join_hand_over(struct join *join)
{
    join->counts.halves -= join->counts.waiting;
    join->counts.waiting = join->counts.spans_held = join->counts.held_bytes = 0;
}

void join_save(const struct join *join, struct assembler *assembler, struct state_writer *writer)
{
    const struct group *top;
    const struct client *client;

    state_put_signed(writer, join->now_ns);
    for (enum queue_kind kind = 0; kind < CLIENTS; kind++) {
        cds_list_for_each_entry(top, &join->queues[kind], queued.link)
        {
            state_put_number(writer, true);
            save_top(top, assembler, writer);
        }
        state_put_number(writer, false);
    }
    cds_list_for_each_entry(client, &join->queues[CLIENTS], queued.link)
    {
        state_put_number(writer, true);
        state_put_signed(writer, client->queued.since_ns);
        save_half(&client->half, writer);
    }
    state_put_number(writer, false);
}

void join_restore(struct join *join, struct assembler *assembler, struct state_reader *reader)
{
    join->now_ns = state_get_signed(reader);
    for (enum queue_kind kind = 0; kind < CLIENTS; kind++) {
        while (state_get_bool(reader))
            restore_top(join, kind, assembler, reader);
    }
    while (state_get_bool(reader))
        restore_client(join, reader);
}
