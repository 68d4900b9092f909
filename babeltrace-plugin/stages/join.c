/*
 * Joining: indexes halves by their keys and traces by their ids, in the order of trace time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "join_parts.h"

#include <stdlib.h>

/* ---- queues ---------------------------------------------------------------------------------- */

void join_queue_up(struct join *join, enum queue_kind kind, struct queued *queued)
{
    queued->since_ns = join->now_ns;
    cds_list_add_tail(&queued->link, &join->queues[kind]);
}

void join_set_kind(struct join *join, struct join_group *group, enum queue_kind kind)
{
    cds_list_del(&group->queued.link);
    group->kind = kind;
    join_queue_up(join, kind, &group->queued);
}

struct queued *join_first_of(const struct join *join, enum queue_kind kind)
{
    struct cds_list_head *first = join->queues[kind].next;

    /* a freed entry has left the list */
    return first == &join->queues[kind] ? NULL : cds_list_entry(first, struct queued, link);
}

/* ---- tables ---------------------------------------------------------------------------------- */

struct join_group *join_find_group(const struct join *join, uint64_t id)
{
    struct join_group *group;

    table_find(group, &join->groups, hash_number(join->groups.seed, id), in_table, group->id == id);
    return group;
}

static void join_add_half(struct join *join, struct join_half *half)
{
    table_add(&join->halves, &half->in_table, hash_number(join->halves.seed, half->key));
}

void join_append(struct join_group *top, struct span_copy *first, struct span_copy *last)
{
    if (!first)
        return;
    if (top->last)
        top->last->next = first;
    else
        top->first = first;
    top->last = last;
}

/* ---- halves ---------------------------------------------------------------------------------- */

/* Returns false if the tag is no valid key. */
static bool join_read_key(struct text value, struct join_half *half)
{
    const struct text key = {value.data, 16}, network = {value.data + 16, 16};

    if (value.length != 16 && value.length != 32)
        return false;
    return hex_read(key, &half->key) && (value.length == 16 || hex_read(network, &half->network));
}

static bool join_has_name(const struct span_entry *entry, enum span_entry_type type,
                          const char *name)
{
    return entry->type == type && text_is(span_entry_key(entry), name);
}

bool join_read_half(const struct span *span, struct join_half *half)
{
    bool has_key = false;

    *half = (struct join_half){
        .is_client = span->kind == SPAN_CLIENT,
        .trace_id_high = span->trace_id_high,
        .trace_id = span->trace_id,
        .span_id = span->id,
        .start_ns = span->start_ns,
        .end_ns = span->end_ns,
    };
    if (span->kind != SPAN_CLIENT && span->kind != SPAN_SERVER)
        return false;
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        if (join_has_name(entry, SPAN_TAG_TEXT, JOIN_TAG))
            has_key = join_read_key(span_entry_value(entry), half);
        else if (join_has_name(entry, SPAN_TAG_INTEGER, "request.bytes"))
            half->request_bytes = (uint64_t)entry->integer;
        else if (join_has_name(entry, SPAN_TAG_INTEGER, "response.bytes"))
            half->response_bytes = (uint64_t)entry->integer;
    }
    return has_key;
}

/* Moves the servers' halves that wait for this client to the queue SETTLING. Counts halves that
 * were decided without this client as late. */
static void join_find_servers(struct join *join, const struct join_half *client)
{
    struct join_search search = join_search(&join->halves, join->options.skew_ns, client);
    struct join_half *server;

    while ((server = join_search_next(&search))) {
        struct join_group *group = caa_container_of(server, struct join_group, half);

        if (!group->above && group->kind == JOIN_WAITING) {
            join_set_kind(join, group, SETTLING);
        } else if (group->is_unjoined && !server->is_late) {
            server->is_late = true;
            join->counts.late++;
        }
    }
}

/* Returns true if the table has the client's half already: two sessions may record one span. */
static bool join_is_known(const struct join *join, const struct join_half *client)
{
    const uint64_t hash = hash_number(join->halves.seed, client->key);
    struct join_half *half;
    unsigned seen = 0;

    table_for_each_of(half, &join->halves, hash, in_table)
    {
        if (half->key != client->key)
            continue;
        if (half->is_client && half->span_id == client->span_id &&
            half->trace_id == client->trace_id)
            return true;
        if (++seen > JOIN_CANDIDATES_MAX)
            break;
    }
    return false;
}

static void join_add_client(struct join *join, const struct join_half *half)
{
    struct join_client *client;

    if (join_is_known(join, half))
        return;
    join_make_room(join, sizeof(*client));
    client = malloc(sizeof(*client));
    if (!client)
        return;
    client->half = *half;
    join->counts.held_bytes += sizeof(*client);
    join_queue_up(join, JOIN_CLIENTS, &client->queued);
    join_add_half(join, &client->half);
    join_find_servers(join, &client->half);
}

static void join_add_server(struct join *join, struct join_group *group, struct span_copy *root,
                            const struct join_half *half)
{
    struct join_half *client;

    group->root = root;
    group->has_half = true;
    group->half = *half;
    join_add_half(join, &group->half);
    join->counts.halves++;
    join->counts.waiting++;
    join_set_kind(join, group,
                  join_search_all(&join->halves, join->options.skew_ns, &group->half, &client) ==
                          JOIN_ALONE
                      ? JOIN_WAITING
                      : SETTLING);
}

/* ---- spans of marked traces ------------------------------------------------------------------ */

static struct join_group *join_new_group(struct join *join, uint64_t id)
{
    struct join_group *group = calloc(1, sizeof(*group));

    if (!group)
        return NULL;
    group->id = id;
    CDS_INIT_LIST_HEAD(&group->below);
    table_add(&join->groups, &group->in_table, hash_number(join->groups.seed, id));
    join->counts.held_bytes += sizeof(*group);
    return group;
}

static struct join_group *join_begin_group(struct join *join, uint64_t id)
{
    struct join_group *group = join_new_group(join, id);

    if (!group)
        return NULL;
    group->kind = OPEN;
    join_queue_up(join, OPEN, &group->queued);
    return group;
}

/* Gives the span the id of its trace, which was given out already. Returns false: the span is not
 * held. */
static bool join_follow(struct join *join, struct join_group *group, struct span *span,
                        bool is_half)
{
    if (is_half && !group->has_half) { /* the trace was decided without this half */
        join->counts.halves++;
        join->counts.unjoined++;
    }
    join_set_trace(span, group->final_high, group->final_low);
    join_set_kind(join, group, JOIN_DECIDED);
    return false;
}

static bool join_hold(struct join *join, struct join_group *group, const struct span *span,
                      const struct join_half *half, bool is_half)
{
    struct span_copy *copy = span_copy_new(span, is_half ? JOINED_ROOM : 0);

    if (!copy) {
        join->counts.unheld++;
        return false;
    }
    join_append(join_topmost(group), copy, copy);
    join->counts.spans_held++;
    join->counts.held_bytes += copy_bytes(copy);
    if (is_half)
        join_add_server(join, group, copy, half);
    else if (!group->above && group->kind == OPEN)
        join_set_kind(join, group, OPEN);
    return true;
}

static bool join_take_marked(struct join *join, struct span *span, const struct join_half *half,
                             bool has_key)
{
    const bool is_root = span->parent_id == 0;
    bool is_half = is_root && has_key && span->kind == SPAN_SERVER;
    struct join_group *group;

    join_make_room(join,
                   sizeof(*group) + sizeof(struct span_copy) + span->log_length + JOINED_ROOM);
    group = join_find_group(join, span->trace_id);
    if (!group)
        group = join_begin_group(join, span->trace_id);
    if (!group) {
        join->counts.unheld++;
        return false;
    }
    if (is_root && !is_half && !group->above && group->kind == OPEN)
        join_decide_as_is(join, group); /* no client's half will arrive for this root */
    if (!group->above && group->kind == JOIN_DECIDED)
        return join_follow(join, group, span, is_half);
    is_half = is_half && !group->has_half; /* a second half would belong to another request */
    return join_hold(join, group, span, half, is_half);
}

/* Returns whether the span is held. If not, the caller passes the span on, perhaps with another
 * trace id. */
static bool join_add(struct join *join, struct span *span)
{
    const bool is_marked = span->trace_id_high == JOIN_TRACE_HIGH && !span->is_joined;
    struct join_half half;
    const bool has_key = join_read_half(span, &half);

    if (!is_marked && !has_key)
        return false;
    join_advance(&join->stage);
    if (span->kind == SPAN_CLIENT && has_key)
        join_add_client(join, &half);
    return is_marked && join_take_marked(join, span, &half, has_key);
}

static void join_take(struct stage *stage, struct span *span)
{
    /* other spans have nothing to join */
    const bool may_join = span->trace_id_high == JOIN_TRACE_HIGH || span->kind == SPAN_CLIENT;

    if (!may_join || !join_add(join_of(stage), span))
        stage_pass(stage, span);
}

/* ---- set-up ---------------------------------------------------------------------------------- */

struct join_counts join_stage_counts(const struct stage *stage)
{
    return join_of(stage)->counts;
}

static uint64_t join_held(const struct stage *stage)
{
    return join_of(stage)->counts.spans_held;
}

static void join_free_group(struct table_link *link)
{
    struct join_group *group = caa_container_of(link, struct join_group, in_table);
    struct span_copy *next;

    for (struct span_copy *copy = group->first; copy; copy = next) {
        next = copy->next;
        free(copy);
    }
    free(group);
}

static void join_free(struct stage *stage)
{
    struct join *join = join_of(stage);
    struct queued *client;

    while ((client = join_first_of(join, JOIN_CLIENTS)))
        join_forget_client(join, cds_list_entry(&client->link, struct join_client, queued.link));
    table_destroy(&join->halves, NULL);
    table_destroy(&join->groups, join_free_group);
    free(join);
}

static const struct stage_kind join_kind = {
    .name = "join",
    .take = join_take,
    .advance = join_advance,
    .flush_some = join_flush_some,
    .held = join_held,
    .free = join_free,
};

struct stage *join_stage_new(const struct join_options *options)
{
    struct join *join = calloc(1, sizeof(*join));

    if (!join)
        return NULL;
    join->stage.kind = &join_kind;
    join->options = *options;
    join->now_ns = INT64_MIN;
    for (enum queue_kind kind = 0; kind < QUEUES; kind++)
        CDS_INIT_LIST_HEAD(&join->queues[kind]);
    if (table_init(&join->groups) && table_init(&join->halves))
        return &join->stage;
    join_free(&join->stage);
    return NULL;
}
