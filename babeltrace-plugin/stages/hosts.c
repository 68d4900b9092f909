/* SPDX-License-Identifier: BSD-2-Clause */
#include "hosts_parts.h"

#include "babeltrace-plugin/base/hash.h"

#include <stdlib.h>

#define LTTNG_HOST_TAG "lttng.host"

/* ---- hosts ----------------------------------------------------------------------------------- */

static struct stage_host *hosts_find(const struct hosts *hosts, struct text name)
{
    struct stage_host *host;

    table_find(host, &hosts->table, hash_text(hosts->table.seed, name), in_table,
               text_equal((struct text){host->name, host->name_length}, name));
    return host;
}

static struct text hosts_host_of_span(const struct span *span)
{
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        if (entry->type == SPAN_TAG_TEXT && text_is(span_entry_key(entry), LTTNG_HOST_TAG))
            return span_entry_value(entry);
    }
    return (struct text){NULL, 0};
}

bool hosts_knows(const struct hosts *hosts, const struct span *span)
{
    return hosts_find(hosts, hosts_host_of_span(span)) != NULL;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t hosts_part_bytes(const struct host_part *part)
{
    return sizeof(*part) + part->instance_length + part->history.room;
}

static size_t hosts_host_bytes(const struct stage_host *host)
{
    return sizeof(*host) + host->name_length;
}

static size_t hosts_held_bytes(const struct span_copy *held)
{
    return sizeof(*held) + held->span.log_length;
}

static void hosts_free_part(struct hosts *hosts, struct host_part *part)
{
    hosts->counts.history_bytes -= hosts_part_bytes(part);
    history_free(&part->history);
    free(part);
}

/* The stage forgets an instance that was silent for this time. Spans wait for less. */
#define FORGET_NS UINT64_C(600000000000)

/* Frees the instances that were silent for FORGET_NS. Returns whether the host has others. */
static bool hosts_forget_silent(struct hosts *hosts, struct stage_host *host, int64_t now_ns)
{
    bool are_left = false;

    for (enum host_group group = 0; group < HOST_GROUPS; group++) {
        struct host_part **at = &host->parts[group];

        host->next[group] = NULL;
        while (*at) {
            struct host_part *part = *at;

            if (host_distance(part->heard_ns, now_ns) < FORGET_NS) {
                at = &part->next;
                are_left = true;
                continue;
            }
            *at = part->next;
            host->part_count[group]--;
            hosts_free_part(hosts, part);
        }
    }
    return are_left;
}

static void hosts_sweep(struct hosts *hosts, int64_t now_ns)
{
    struct stage_host *host, *next;

    cds_list_for_each_entry_safe(host, next, &hosts->all, in_all)
    {
        if (!hosts_forget_silent(hosts, host, now_ns) && !host->first) {
            cds_list_del(&host->in_all);
            table_remove(&hosts->table, &host->in_table);
            hosts->counts.history_bytes -= hosts_host_bytes(host);
            free(host);
        }
    }
}

static bool hosts_fits(const struct hosts *hosts, const struct stage_host *host,
                       enum host_group group, size_t bytes)
{
    return hosts->counts.history_bytes + bytes <= hosts->options.max_history_bytes &&
           (!host || host->part_count[group] < HOST_INSTANCES_MAX);
}

/* Makes room for another instance of the host, with `bytes` bytes of samples. Frees silent hosts,
 * so the caller must look up its host again. */
static bool hosts_find_room(struct hosts *hosts, struct text name, enum host_group group,
                            size_t bytes, int64_t now_ns)
{
    if (hosts_fits(hosts, hosts_find(hosts, name), group, bytes))
        return true;
    if (hosts->has_swept && host_distance(hosts->swept_ns, now_ns) < FORGET_NS / 10)
        return false;
    hosts->has_swept = true;
    hosts->swept_ns = now_ns;
    hosts_sweep(hosts, now_ns);
    return hosts_fits(hosts, hosts_find(hosts, name), group, bytes);
}

static struct stage_host *hosts_new_host(struct hosts *hosts, struct text name)
{
    struct stage_host *host = calloc(1, sizeof(*host) + name.length);

    if (!host)
        return NULL;
    (void)text_copy(host->name, name);
    host->name_length = (uint32_t)name.length;
    table_add(&hosts->table, &host->in_table, hash_text(hosts->table.seed, name));
    cds_list_add_tail(&host->in_all, &hosts->all);
    hosts->counts.history_bytes += hosts_host_bytes(host);
    hosts->is_open = true;
    return host;
}

static struct host_part *hosts_new_part(struct hosts *hosts, struct stage_host *host,
                                        enum host_group group, struct text instance)
{
    struct host_part *part = calloc(1, sizeof(*part) + instance.length);
    struct host_part **at = &host->parts[group];

    if (!part)
        return NULL;
    part->group = group;
    part->history.views = hosts->views[group];
    part->instance_length = (uint32_t)instance.length;
    (void)text_copy(part->instance, instance);
    while (*at)
        at = &(*at)->next;
    *at = part;
    host->part_count[group]++;
    hosts->counts.history_bytes += hosts_part_bytes(part);
    return part;
}

static bool hosts_is_of(const struct host_part *part, struct text instance)
{
    return text_equal((struct text){part->instance, part->instance_length}, instance);
}

static struct host_part *hosts_find_part(struct stage_host *host, enum host_group group,
                                         struct text instance)
{
    struct host_part *part = host->next[group];

    if (!part || !hosts_is_of(part, instance))
        for (part = host->parts[group]; part && !hosts_is_of(part, instance);)
            part = part->next;
    host->next[group] = part ? part->next : NULL;
    return part;
}

/* ---- the wait of a span ---------------------------------------------------------------------- */

/* Computes complete_ns and wait_ns. The groups of a host are sampled one after the other. So a span
 * is complete when the group that is furthest behind has a sample after the span's end. */
static void hosts_compute_wait(struct stage_host *host, int64_t now_ns)
{
    host->complete_ns = INT64_MAX;
    host->wait_ns = 0;
    for (enum host_group group = 0; group < HOST_GROUPS; group++) {
        for (const struct host_part *part = host->parts[group]; part; part = part->next) {
            const int64_t period_ns = (int64_t)part->history.period_ns;

            if (period_ns > HOST_WAIT_PERIOD_NS ||
                host_distance(part->heard_ns, now_ns) > (uint64_t)(HOST_SILENT_PERIODS * period_ns))
                continue;
            if (history_last_ns(&part->history) < host->complete_ns)
                host->complete_ns = history_last_ns(&part->history);
            if (2 * period_ns > host->wait_ns)
                host->wait_ns = 2 * period_ns;
        }
    }
}

static bool hosts_is_due(const struct stage_host *host, const struct span_copy *held,
                         int64_t now_ns)
{
    return host->complete_ns >= held->span.end_ns ||
           host_distance(held->since_ns, now_ns) >= (uint64_t)host->wait_ns;
}

/* ---- held spans ------------------------------------------------------------------------------ */

/* Gives out the span of the host that was held for longest, with the tags that are known. */
static void hosts_give_out(struct hosts *hosts, struct stage_host *host)
{
    struct span_copy *held = host->first;
    struct span span = held->span;
    bool is_tagged;

    host->first = held->next;
    if (!host->first) {
        host->last = NULL;
        cds_list_del(&host->in_waiting);
    }
    hosts->counts.spans_held--;
    hosts->counts.held_bytes -= hosts_held_bytes(held);
    span.log = malloc(span.log_length + TAGS_ROOM);
    if (span.log) {
        memcpy(span.log, held->log, span.log_length);
        span.log_capacity = span.log_length + TAGS_ROOM;
        hosts->counts.tags_lost += host_tag(&span, host->parts, &is_tagged);
        hosts->counts.spans_tagged += is_tagged;
        stage_pass(&hosts->stage, &span);
    } else {
        hosts->counts.tags_lost++;
        stage_pass(&hosts->stage, &held->span);
    }
    free(span.log);
    free(held);
}

static void hosts_give_out_due(struct hosts *hosts, struct stage_host *host, int64_t now_ns)
{
    while (host->first && hosts_is_due(host, host->first, now_ns))
        hosts_give_out(hosts, host);
}

static void hosts_make_room(struct hosts *hosts, size_t bytes)
{
    while (hosts->counts.spans_held &&
           hosts->counts.held_bytes + bytes > hosts->options.max_held_bytes) {
        hosts->counts.spans_early++;
        hosts_give_out(hosts, cds_list_entry(hosts->waiting.next, struct stage_host, in_waiting));
    }
}

static void hosts_append(struct hosts *hosts, struct stage_host *host, struct span_copy *held)
{
    if (host->last)
        host->last->next = held;
    else
        host->first = held;
    host->last = held;
    if (host->first == held)
        cds_list_add_tail(&host->in_waiting, &hosts->waiting);
    hosts->counts.spans_held++;
    hosts->counts.held_bytes += hosts_held_bytes(held);
}

static void hosts_hold(struct hosts *hosts, struct span *span, int64_t now_ns)
{
    struct stage_host *host = hosts_find(hosts, hosts_host_of_span(span));
    struct span_copy *held;

    hosts_make_room(hosts, sizeof(*held) + span->log_length);
    held = span_copy_new(span, 0);
    if (!held) {
        hosts->counts.tags_lost++;
        stage_pass(&hosts->stage, span);
        return;
    }
    held->since_ns = now_ns;
    hosts_append(hosts, host, held);
    hosts_compute_wait(host, now_ns);
    hosts_give_out_due(hosts, host, now_ns);
}

static void hosts_take(struct stage *stage, struct span *span)
{
    if (hosts_wants(hosts_of(stage), span))
        hosts_hold(hosts_of(stage), span, stage_now(stage));
    else
        stage_pass(stage, span);
}

static void hosts_advance(struct stage *stage)
{
    struct hosts *hosts = hosts_of(stage);
    struct stage_host *host, *next;

    cds_list_for_each_entry_safe(host, next, &hosts->waiting, in_waiting)
        hosts_give_out_due(hosts, host, stage_now(stage));
}

static bool hosts_flush_some(struct stage *stage, unsigned spans)
{
    struct hosts *hosts = hosts_of(stage);

    for (; hosts->counts.spans_held; spans--) {
        if (spans == 0)
            return true;
        hosts_give_out(hosts, cds_list_entry(hosts->waiting.next, struct stage_host, in_waiting));
    }
    return false;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Returns NULL if there is no room. */
static struct host_part *hosts_begin_part(struct hosts *hosts, struct stage_host **host,
                                          const struct event *event, enum host_group group,
                                          int64_t now_ns)
{
    const struct text name = event->origin.host;
    const size_t bytes = sizeof(**host) + name.length + sizeof(struct host_part) +
                         event->instance.length + HISTORY_BYTES_MAX;

    if (name.length > HOST_TEXT_MAX || event->instance.length > HOST_TEXT_MAX ||
        !hosts_find_room(hosts, name, group, bytes, now_ns))
        return NULL;
    *host = hosts_find(hosts, name); /* making room may have freed the host */
    if (!*host)
        *host = hosts_new_host(hosts, name);
    return *host ? hosts_new_part(hosts, *host, group, event->instance) : NULL;
}

static void hosts_add(struct hosts *hosts, const struct event *event, int64_t time_ns,
                      int64_t now_ns)
{
    struct stage_host *host = hosts_find(hosts, event->origin.host);
    struct host_part *part;
    enum host_group group;
    enum history_added added;

    if (!host_group_find(event->group, event->instance, &group))
        return;
    part = host ? hosts_find_part(host, group, event->instance) : NULL;
    if (!part)
        part = hosts_begin_part(hosts, &host, event, group, now_ns);
    if (!part) {
        hosts->counts.no_room++;
        return;
    }
    hosts->counts.history_bytes -= hosts_part_bytes(part);
    added = history_add(&part->history, &hosts->layouts, event, time_ns);
    if (hosts->counts.history_bytes + hosts_part_bytes(part) > hosts->options.max_history_bytes) {
        history_free(&part->history); /* the samples have more values now */
        added = HISTORY_NO_ROOM;
    }
    hosts->counts.history_bytes += hosts_part_bytes(part);
    hosts->counts.unnamed += added == HISTORY_UNNAMED;
    hosts->counts.resets += added == HISTORY_RESET;
    hosts->counts.invalid += added == HISTORY_INVALID;
    hosts->counts.no_room += added == HISTORY_NO_ROOM;
    part->heard_ns = now_ns;
    if (host->first) {
        hosts_compute_wait(host, now_ns);
        hosts_give_out_due(hosts, host, now_ns);
    }
}

void hosts_stage_add(struct stage *stage, const struct event *event, int64_t time_ns,
                     int64_t now_ns)
{
    stage->chain->now_ns = now_ns; /* the stage may pass spans on */
    hosts_add(hosts_of(stage), event, time_ns, now_ns);
}

/* ---- set-up ---------------------------------------------------------------------------------- */

struct hosts_counts hosts_stage_counts(const struct stage *stage)
{
    return hosts_of(stage)->counts;
}

static uint64_t hosts_held(const struct stage *stage)
{
    return hosts_of(stage)->counts.spans_held;
}

static void hosts_free_host(struct hosts *hosts, struct stage_host *host)
{
    for (enum host_group group = 0; group < HOST_GROUPS; group++) {
        while (host->parts[group]) {
            struct host_part *next = host->parts[group]->next;

            hosts_free_part(hosts, host->parts[group]);
            host->parts[group] = next;
        }
    }
    while (host->first) {
        struct span_copy *next = host->first->next;

        free(host->first);
        host->first = next;
    }
    free(host);
}

static void hosts_free(struct stage *stage)
{
    struct hosts *hosts = hosts_of(stage);
    struct stage_host *host, *next;

    cds_list_for_each_entry_safe(host, next, &hosts->all, in_all) hosts_free_host(hosts, host);
    table_destroy(&hosts->table, NULL);
    layouts_free(&hosts->layouts);
    free(hosts);
}

static const struct stage_kind hosts_kind = {
    .name = "hosts",
    .take = hosts_take,
    .advance = hosts_advance,
    .flush_some = hosts_flush_some,
    .held = hosts_held,
    .free = hosts_free,
};

struct stage *hosts_stage_new(const struct hosts_options *options)
{
    struct hosts *hosts = calloc(1, sizeof(*hosts));

    if (!hosts)
        return NULL;
    hosts->stage.kind = &hosts_kind;
    hosts->options = *options;
    for (enum host_group group = 0; group < HOST_GROUPS; group++)
        host_group_views(group, hosts->views[group]);
    CDS_INIT_LIST_HEAD(&hosts->all);
    CDS_INIT_LIST_HEAD(&hosts->waiting);
    if (table_init(&hosts->table))
        return &hosts->stage;
    hosts_free(&hosts->stage);
    return NULL;
}
