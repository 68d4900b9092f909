/*
 * Halves by their keys, traces by their ids, and what waits in the order of time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "join_parts.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/hex.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* On the root of a trace that was joined: the id that it had before, as its program knows it. */
#define JOINED_TAG "blkin.joined"

/* ---- queues ---------------------------------------------------------------------------------- */

static void queue_up(struct join *join, enum queue_kind kind, struct queued *queued)
{
    queued->since_ns = join->now_ns;
    cds_list_add_tail(&queued->link, &join->queues[kind]);
}

static void set_kind(struct join *join, struct group *group, enum queue_kind kind)
{
    cds_list_del(&group->queued.link);
    group->kind = kind;
    queue_up(join, kind, &group->queued);
}

/* NULL: there is none. */
static struct queued *first_of(const struct join *join, enum queue_kind kind)
{
    struct cds_list_head *first = join->queues[kind].next;

    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed is out of the list before */
    return first == &join->queues[kind] ? NULL : cds_list_entry(first, struct queued, link);
}

static int64_t wait_of(const struct join *join, enum queue_kind kind)
{
    if (kind == OPEN)
        return join->options.root_wait_ns;
    if (kind == SETTLING && join->options.wait_ns > JOIN_SETTLE_NS)
        return JOIN_SETTLE_NS;
    return join->options.wait_ns;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static uint64_t hash_of_number(uint64_t seed, uint64_t number)
{
    return hash_mix(seed ^ number);
}

static uint64_t hash_of_group(uint64_t seed, const struct cds_hlist_node *link)
{
    return hash_of_number(seed, cds_hlist_entry(link, struct group, in_table)->id);
}

static uint64_t hash_of_half(uint64_t seed, const struct cds_hlist_node *link)
{
    return hash_of_number(seed, cds_hlist_entry(link, struct half, in_table)->key);
}

struct group *join_find_group(const struct join *join, uint64_t id)
{
    struct group *group;

    cds_hlist_for_each_entry_2(
        group, table_bucket(&join->groups, hash_of_number(join->groups.seed, id)), in_table)
    {
        if (group->id == id)
            return group;
    }
    return NULL;
}

void join_add_half(struct join *join, struct half *half)
{
    table_add(&join->halves, &half->in_table, hash_of_number(join->halves.seed, half->key));
}

/* ---- which half belongs to which ------------------------------------------------------------- */

static bool is_before(int64_t a, int64_t b, int64_t skew_ns)
{
    return a <= b || (uint64_t)a - (uint64_t)b <= (uint64_t)skew_ns;
}

/*
 * Its end tells nothing: a server that has to wait for a CPU after its last write may see that
 * return long after the client has read what was written.
 */
static bool covers(const struct join *join, const struct half *client, const struct half *server)
{
    return is_before(client->start_ns, server->start_ns, join->options.skew_ns) &&
           is_before(server->start_ns, client->end_ns, join->options.skew_ns);
}

/* Those of the half's key on the other side that fit it; to be asked with one by one. */
struct search {
    const struct join *join;
    const struct half *half;
    struct cds_hlist_node *next;
    unsigned seen;
};

static struct search search_for(const struct join *join, const struct half *half)
{
    const uint64_t hash = hash_of_number(join->halves.seed, half->key);

    return (struct search){join, half, table_bucket(&join->halves, hash)->next, 0};
}

static bool is_crowded(const struct search *search)
{
    return search->seen > JOIN_CANDIDATES_MAX;
}

/* NULL: there are no more, or it is crowded. */
static struct half *next_found(struct search *search)
{
    const struct half *half = search->half;

    while (search->next && !is_crowded(search)) {
        struct half *other = cds_hlist_entry(search->next, struct half, in_table);

        search->next = search->next->next;
        if (other->key != half->key)
            continue;
        search->seen++;
        if (other->is_client != half->is_client && !is_crowded(search) &&
            (half->is_client ? covers(search->join, half, other)
                             : covers(search->join, other, half)))
            return other;
    }
    return NULL;
}

enum verdict { ALONE, PAIR, UNSURE };

static enum verdict count_found(const struct join *join, const struct half *half,
                                struct half **found)
{
    struct search search = search_for(join, half);
    struct half *more;

    *found = next_found(&search);
    more = *found ? next_found(&search) : NULL;
    if (is_crowded(&search) || more)
        return UNSURE;
    return *found ? PAIR : ALONE;
}

/*
 * Many networks have the same private addresses. In one place the same addresses are the same
 * connection; of two places it has to show that as many bytes were sent as were received.
 */
static bool is_proven(const struct half *client, const struct half *server)
{
    return client->place == server->place ||
           (client->place && server->place && client->sizes == server->sizes);
}

/* The only client's half that fits the server's, which in turn is the only one that fits it. */
static enum verdict find_client(const struct join *join, const struct half *server,
                                struct half **client)
{
    const enum verdict verdict = count_found(join, server, client);
    struct half *other;

    if (verdict != PAIR)
        return verdict;
    return !(*client)->is_taken && is_proven(*client, server) &&
                   count_found(join, *client, &other) == PAIR
               ? PAIR
               : UNSURE;
}

/* ---- spans that are held --------------------------------------------------------------------- */

static struct group *topmost(struct group *group)
{
    struct group *top = group;

    while (top->above)
        top = top->above;
    while (group->above) { /* the way will be shorter the next time */
        struct group *above = group->above;

        group->above = top;
        group = above;
    }
    return top;
}

void join_append(struct group *top, struct kept_span *first, struct kept_span *last)
{
    if (!first)
        return;
    if (top->last)
        top->last->next = first;
    else
        top->first = first;
    top->last = last;
}

static void set_trace(struct span *span, uint64_t high, uint64_t low)
{
    span->trace_id_high = high;
    span->trace_id = low;
}

static void give_out(struct join *join, struct group *top, uint64_t high, uint64_t low)
{
    struct kept_span *kept = top->first, *next;

    top->first = top->last = NULL;
    for (; kept; kept = next) {
        next = kept->next;
        join->counts.spans_held--;
        join->counts.held_bytes -= kept_bytes(kept);
        set_trace(&kept->span, high, low);
        join->deliver(join->context, &kept->span);
        free(kept);
    }
}

static void note_decided(struct group *group, uint64_t high, uint64_t low)
{
    group->above = NULL;
    group->root = NULL;
    group->final_high = high;
    group->final_low = low;
}

/* The trace's id is known, and so is that of all that came below it. */
static void decide(struct join *join, struct group *top, uint64_t high, uint64_t low)
{
    struct group *group, *next;

    cds_list_for_each_entry_safe(group, next, &top->below, in_below)
    {
        cds_list_del(&group->in_below);
        note_decided(group, high, low);
        group->kind = DECIDED;
        queue_up(join, DECIDED, &group->queued);
    }
    CDS_INIT_LIST_HEAD(&top->below);
    note_decided(top, high, low);
    set_kind(join, top, DECIDED);
    give_out(join, top, high, low);
}

static void decide_as_is(struct join *join, struct group *group)
{
    decide(join, group, JOIN_TRACE_HIGH, group->id);
}

/* ---- joining --------------------------------------------------------------------------------- */

/* There is room for it: what there is none for would have cut the span short. */
static void tag_root(struct group *group)
{
    char value[33];

    (void)snprintf(value, sizeof(value), "%016" PRIx64 "%016" PRIx64, JOIN_TRACE_HIGH, group->id);
    (void)span_add(&group->root->span, SPAN_TAG_TEXT, text_of(JOINED_TAG), text_of(value), 0);
}

static void put_below(struct group *group, struct group *top)
{
    cds_list_del(&group->queued.link);
    join_append(top, group->first, group->last);
    group->first = group->last = NULL;
    cds_list_splice(&group->below, &top->below);
    CDS_INIT_LIST_HEAD(&group->below);
    cds_list_add(&group->in_below, &top->below);
    group->above = top;
}

/* The group of the client's trace, if that is one that is held or was. */
static struct group *group_of(const struct join *join, const struct half *client)
{
    return client->trace_id_high == JOIN_TRACE_HIGH ? join_find_group(join, client->trace_id)
                                                    : NULL;
}

/* Returns false if that would make a circle. */
static bool join_to(struct join *join, struct group *group, struct half *client)
{
    struct group *above = group_of(join, client), *top = above ? topmost(above) : NULL;

    if (top == group)
        return false;
    client->is_taken = true;
    group->root->span.parent_id = client->span_id;
    tag_root(group);
    if (!top)
        decide(join, group, client->trace_id_high, client->trace_id);
    else if (top->kind == DECIDED)
        decide(join, group, top->final_high, top->final_low);
    else
        put_below(group, top);
    return true;
}

static void settle(struct join *join, struct group *group)
{
    struct half *client;
    enum verdict verdict = find_client(join, &group->half, &client);

    join->counts.waiting--;
    if (verdict == PAIR && !join_to(join, group, client))
        verdict = UNSURE;
    switch (verdict) {
    case PAIR:
        join->counts.joined++;
        return;
    case UNSURE:
        join->counts.ambiguous++;
        break;
    case ALONE:
        join->counts.unjoined++;
        group->is_unjoined = true;
        break;
    }
    decide_as_is(join, group);
}

/* ---- the end of waiting ---------------------------------------------------------------------- */

static void forget_group(struct join *join, struct group *group)
{
    cds_list_del(&group->queued.link);
    table_remove(&join->groups, &group->in_table);
    if (group->has_half)
        table_remove(&join->halves, &group->half.in_table);
    join->counts.held_bytes -= sizeof(*group);
    free(group);
}

static void forget_client(struct join *join, struct client *client)
{
    cds_list_del(&client->queued.link);
    table_remove(&join->halves, &client->half.in_table);
    join->counts.held_bytes -= sizeof(*client);
    free(client);
}

static void end_wait(struct join *join, enum queue_kind kind, struct queued *queued)
{
    switch (kind) {
    case SETTLING:
    case WAITING:
        settle(join, cds_list_entry(&queued->link, struct group, queued.link));
        break;
    case OPEN:
        join->counts.rootless++;
        decide_as_is(join, cds_list_entry(&queued->link, struct group, queued.link));
        break;
    case DECIDED:
        forget_group(join, cds_list_entry(&queued->link, struct group, queued.link));
        break;
    default:
        forget_client(join, cds_list_entry(&queued->link, struct client, queued.link));
        break;
    }
}

static void end_waits(struct join *join, enum queue_kind kind)
{
    const uint64_t wait_ns = (uint64_t)wait_of(join, kind);
    struct queued *first;

    while ((first = first_of(join, kind)) &&
           (uint64_t)join->now_ns - (uint64_t)first->since_ns >= wait_ns)
        end_wait(join, kind, first);
}

void join_advance(struct join *join, int64_t now_ns)
{
    if (now_ns > join->now_ns)
        join->now_ns = now_ns;
    for (enum queue_kind kind = 0; kind < QUEUES; kind++)
        end_waits(join, kind);
}

bool join_flush_some(struct join *join, unsigned traces)
{
    struct queued *first = NULL;

    for (enum queue_kind kind = SETTLING; kind <= OPEN; kind++) {
        while ((first = first_of(join, kind)) && traces) {
            end_wait(join, kind, first);
            traces--;
        }
        if (first)
            break;
    }
    return first != NULL;
}

/* What has waited for longest goes. */
static void make_room(struct join *join, size_t bytes)
{
    while (join->counts.held_bytes + bytes > join->options.max_bytes) {
        struct queued *oldest = NULL;
        enum queue_kind kind = QUEUES;

        for (enum queue_kind i = 0; i < QUEUES; i++) {
            struct queued *first = first_of(join, i);

            if (first && (!oldest || first->since_ns < oldest->since_ns)) {
                oldest = first;
                kind = i;
            }
        }
        if (!oldest)
            break;
        join->counts.early += kind <= OPEN;
        end_wait(join, kind, oldest);
    }
}

/* ---- halves ---------------------------------------------------------------------------------- */

/* Whether there is one that makes sense. */
static bool read_key(struct text value, struct half *half)
{
    const struct text key = {value.data, 16}, place = {value.data + 16, 16};

    if (value.length != 16 && value.length != 32)
        return false;
    return hex_read(key, &half->key) && (value.length == 16 || hex_read(place, &half->place));
}

static bool has_name(const struct span_entry *entry, enum span_entry_type type, const char *name)
{
    const size_t length = strlen(name);

    return entry->type == type && entry->key_length == length &&
           memcmp(span_entry_key(entry).data, name, length) == 0;
}

/* Returns false if the span is no half. */
static bool read_half(const struct span *span, struct half *half)
{
    bool has_key = false;
    uint64_t request = 0, response = 0;

    *half = (struct half){
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
        if (has_name(entry, SPAN_TAG_TEXT, JOIN_TAG))
            has_key = read_key(span_entry_value(entry), half);
        else if (has_name(entry, SPAN_TAG_INTEGER, "request.bytes"))
            request = (uint64_t)entry->integer;
        else if (has_name(entry, SPAN_TAG_INTEGER, "response.bytes"))
            response = (uint64_t)entry->integer;
    }
    half->sizes = hash_mix(hash_mix(request) ^ response);
    return has_key;
}

static struct group *group_of_half(struct half *half)
{
    return (struct group *)(void *)((char *)half - offsetof(struct group, half));
}

/* Servers' halves that have waited for it are looked at soon; those that have not are told. */
static void find_servers(struct join *join, const struct half *client)
{
    struct search search = search_for(join, client);
    struct half *server;

    while ((server = next_found(&search))) {
        struct group *group = group_of_half(server);

        if (!group->above && group->kind == WAITING) {
            set_kind(join, group, SETTLING);
        } else if (group->is_unjoined && !server->is_late) {
            server->is_late = true;
            join->counts.late++;
        }
    }
}

/* A span that was recorded by two sessions is one. */
static bool is_known(const struct join *join, const struct half *client)
{
    const uint64_t hash = hash_of_number(join->halves.seed, client->key);
    struct half *half;
    unsigned seen = 0;

    cds_hlist_for_each_entry_2(half, table_bucket(&join->halves, hash), in_table)
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

static void add_client(struct join *join, const struct half *half)
{
    struct client *client;

    if (is_known(join, half))
        return;
    make_room(join, sizeof(*client));
    client = malloc(sizeof(*client));
    if (!client)
        return;
    client->half = *half;
    join->counts.held_bytes += sizeof(*client);
    queue_up(join, CLIENTS, &client->queued);
    join_add_half(join, &client->half);
    find_servers(join, &client->half);
}

static void add_server(struct join *join, struct group *group, struct kept_span *root,
                       const struct half *half)
{
    struct half *client;

    group->root = root;
    group->has_half = true;
    group->half = *half;
    join_add_half(join, &group->half);
    join->counts.halves++;
    join->counts.waiting++;
    set_kind(join, group, count_found(join, &group->half, &client) == ALONE ? WAITING : SETTLING);
}

/* ---- spans of marked traces ------------------------------------------------------------------ */

struct group *join_new_group(struct join *join, uint64_t id)
{
    struct group *group = calloc(1, sizeof(*group));

    if (!group)
        return NULL;
    group->id = id;
    CDS_INIT_LIST_HEAD(&group->below);
    table_add(&join->groups, &group->in_table, hash_of_number(join->groups.seed, id));
    join->counts.held_bytes += sizeof(*group);
    return group;
}

static struct group *begin_group(struct join *join, uint64_t id)
{
    struct group *group = join_new_group(join, id);

    if (!group)
        return NULL;
    group->kind = OPEN;
    queue_up(join, OPEN, &group->queued);
    return group;
}

/* Its trace has been given out: it follows. */
static bool follow(struct join *join, struct group *group, struct span *span, bool is_half)
{
    if (is_half && !group->has_half) { /* that was without it */
        join->counts.halves++;
        join->counts.unjoined++;
    }
    set_trace(span, group->final_high, group->final_low);
    set_kind(join, group, DECIDED);
    return false;
}

static bool hold(struct join *join, struct group *group, const struct span *span,
                 const struct half *half, bool is_half)
{
    struct kept_span *kept = span_keep(span, is_half ? JOINED_ROOM : 0);

    if (!kept) {
        join->counts.unheld++;
        return false;
    }
    join_append(topmost(group), kept, kept);
    join->counts.spans_held++;
    join->counts.held_bytes += kept_bytes(kept);
    if (is_half)
        add_server(join, group, kept, half);
    else if (!group->above && group->kind == OPEN)
        set_kind(join, group, OPEN);
    return true;
}

static bool take_marked(struct join *join, struct span *span, const struct half *half, bool has_key)
{
    const bool is_root = span->parent_id == 0;
    bool is_half = is_root && has_key && span->kind == SPAN_SERVER;
    struct group *group;

    make_room(join, sizeof(*group) + sizeof(struct kept_span) + span->log_length + JOINED_ROOM);
    group = join_find_group(join, span->trace_id);
    if (!group)
        group = begin_group(join, span->trace_id);
    if (!group) {
        join->counts.unheld++;
        return false;
    }
    if (is_root && !is_half && !group->above && group->kind == OPEN)
        decide_as_is(join, group); /* nothing to be found for it */
    if (!group->above && group->kind == DECIDED)
        return follow(join, group, span, is_half);
    is_half = is_half && !group->has_half; /* a second one would be another's */
    return hold(join, group, span, half, is_half);
}

bool join_take(struct join *join, struct span *span, int64_t now_ns)
{
    const bool is_marked = span->trace_id_high == JOIN_TRACE_HIGH;
    struct half half;
    const bool has_key = read_half(span, &half);

    if (!is_marked && !has_key)
        return false;
    join_advance(join, now_ns);
    if (span->kind == SPAN_CLIENT && has_key)
        add_client(join, &half);
    return is_marked && take_marked(join, span, &half, has_key);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

struct join_counts join_counts(const struct join *join)
{
    return join->counts;
}

struct join *join_new(const struct join_options *options, join_deliver_fn *deliver, void *context)
{
    struct join *join = calloc(1, sizeof(*join));

    if (!join)
        return NULL;
    join->options = *options;
    join->deliver = deliver;
    join->context = context;
    join->now_ns = INT64_MIN;
    for (enum queue_kind kind = 0; kind < QUEUES; kind++)
        CDS_INIT_LIST_HEAD(&join->queues[kind]);
    if (table_init(&join->groups, hash_of_group) && table_init(&join->halves, hash_of_half))
        return join;
    join_free(join);
    return NULL;
}

static void free_spans(struct kept_span *kept)
{
    struct kept_span *next;

    for (; kept; kept = next) {
        next = kept->next;
        free(kept);
    }
}

static void free_group(struct cds_hlist_node *link)
{
    struct group *group = cds_hlist_entry(link, struct group, in_table);

    free_spans(group->first);
    free(group);
}

void join_free(struct join *join)
{
    struct queued *client;

    if (!join)
        return;
    while ((client = first_of(join, CLIENTS)))
        forget_client(join, cds_list_entry(&client->link, struct client, queued.link));
    table_destroy(&join->halves, NULL);
    table_destroy(&join->groups, free_group);
    free(join);
}
