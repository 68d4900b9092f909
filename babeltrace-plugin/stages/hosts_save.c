/*
 * Hosts, from one trace of a recording to the next.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/spans/assembler.h"
#include "hosts_parts.h"

void hosts_hand_over(struct stage *stage)
{
    struct hosts_counts *counts = &hosts_of(stage)->counts;

    counts->spans_held = counts->held_bytes = 0;
}

static void hosts_save_host(struct host *host, struct assembler *assembler, struct state *state)
{
    state_put_text(state, (struct text){host->name, host->name_length});
    state_put_signed(state, host->complete_ns);
    state_put_signed(state, host->wait_ns);
    for (enum host_group group = 0; group < HOST_GROUPS; group++) {
        for (struct host_part *part = host->parts[group]; part; part = part->next) {
            state_put_bool(state, true);
            state_put_text(state, (struct text){part->instance, part->instance_length});
            state_put_signed(state, part->heard_ns);
            history_save(&part->history, state);
        }
        state_put_bool(state, false);
    }
    for (const struct kept_span *held = host->first; held; held = held->next) {
        state_put_bool(state, true);
        state_put_signed(state, held->since_ns);
        span_save(&held->span, assembler, state);
    }
    state_put_bool(state, false);
}

void hosts_save(struct stage *stage, struct assembler *assembler, struct state *state)
{
    struct host *host;

    cds_list_for_each_entry(host, &hosts_of(stage)->all, in_all)
    {
        state_put_bool(state, true);
        hosts_save_host(host, assembler, state);
    }
    state_put_bool(state, false);
}

static void hosts_restore_part(struct hosts *hosts, struct host *host, enum host_group group,
                               struct state *state)
{
    const struct text instance = state_get_text(state);
    const int64_t heard_ns = state_get_signed(state);
    struct host_part *part;

    if (hosts_find_part(host, group, instance) || instance.length > HOST_TEXT_MAX ||
        host->part_count[group] >= HOST_INSTANCES_MAX)
        state_set_damaged(state);
    part = state_is_good(state) ? hosts_new_part(hosts, host, group, instance) : NULL;
    if (!part) {
        if (state_is_good(state))
            state_set_no_memory(state);
        return;
    }
    part->heard_ns = heard_ns;
    history_restore(&part->history, &hosts->layouts, state);
    hosts->counts.history_bytes += part->history.room;
}

static void hosts_restore_held(struct hosts *hosts, struct host *host, struct assembler *assembler,
                               struct state *state)
{
    const int64_t since_ns = state_get_signed(state);
    struct kept_span *held = span_restore(assembler, 0, state);

    if (!held)
        return;
    held->since_ns = since_ns;
    hosts_append(hosts, host, held);
}

static void hosts_restore_host(struct hosts *hosts, struct assembler *assembler,
                               struct state *state)
{
    const struct text name = state_get_text(state);
    struct host *host;

    if (hosts_find(hosts, name) || name.length > HOST_TEXT_MAX)
        state_set_damaged(state);
    host = state_is_good(state) ? hosts_new_host(hosts, name) : NULL;
    if (!host) {
        if (state_is_good(state))
            state_set_no_memory(state);
        return;
    }
    host->complete_ns = state_get_signed(state);
    state_time(state, &host->wait_ns);
    for (enum host_group group = 0; group < HOST_GROUPS; group++) {
        while (state_get_bool(state))
            hosts_restore_part(hosts, host, group, state);
    }
    while (state_get_bool(state))
        hosts_restore_held(hosts, host, assembler, state);
}

void hosts_restore(struct stage *stage, struct assembler *assembler, struct state *state)
{
    while (state_get_bool(state))
        hosts_restore_host(hosts_of(stage), assembler, state);
}
