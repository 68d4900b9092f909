/*
 * Hosts, from one trace of a recording to the next.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/spans/save.h"
#include "host_parts.h"

#include <stdlib.h>

void hosts_hand_over(struct hosts *hosts)
{
    hosts->counts.spans_held = hosts->counts.held_bytes = 0;
}

static void save_host(const struct host *host, struct assembler *assembler,
                      struct state_writer *writer)
{
    state_put_text(writer, (struct text){host->name, host->name_length});
    state_put_signed(writer, host->complete_ns);
    state_put_signed(writer, host->wait_ns);
    for (enum host_group group = 0; group < HOST_GROUPS; group++) {
        for (const struct host_part *part = host->parts[group]; part; part = part->next) {
            state_put_number(writer, true);
            state_put_text(writer, (struct text){part->instance, part->instance_length});
            state_put_signed(writer, part->heard_ns);
            history_save(&part->history, writer);
        }
        state_put_number(writer, false);
    }
    for (const struct held *held = host->first; held; held = held->next) {
        struct span span = held->span;

        span.log = (char *)(uintptr_t)held->log;
        state_put_number(writer, true);
        state_put_signed(writer, held->since_ns);
        span_save(&span, assembler, writer);
    }
    state_put_number(writer, false);
}

void hosts_save(const struct hosts *hosts, struct assembler *assembler, struct state_writer *writer)
{
    const struct host *host;

    cds_list_for_each_entry(host, &hosts->all, in_all)
    {
        state_put_number(writer, true);
        save_host(host, assembler, writer);
    }
    state_put_number(writer, false);
}

static void restore_part(struct hosts *hosts, struct host *host, enum host_group group,
                         struct state_reader *reader)
{
    const struct text instance = state_get_text(reader);
    const int64_t heard_ns = state_get_signed(reader);
    struct host_part *part;

    if (hosts_find_part(host, group, instance) || instance.length > HOST_TEXT_MAX ||
        host->part_count[group] >= HOST_INSTANCES_MAX)
        state_set_damaged(reader);
    part = state_is_good(reader) ? hosts_new_part(hosts, host, group, instance) : NULL;
    if (!part) {
        if (state_is_good(reader))
            state_set_no_memory(reader);
        return;
    }
    part->heard_ns = heard_ns;
    history_restore(&part->history, &hosts->layouts, reader);
    hosts->counts.history_bytes += part->history.room;
}

static void restore_held(struct hosts *hosts, struct host *host, struct assembler *assembler,
                         struct state_reader *reader)
{
    const int64_t since_ns = state_get_signed(reader);
    struct span span = {.log = NULL};

    span_restore(&span, assembler, reader);
    if (state_is_good(reader) && !hosts_append(hosts, host, &span, since_ns))
        state_set_no_memory(reader);
    free(span.log);
}

static void restore_host(struct hosts *hosts, struct assembler *assembler,
                         struct state_reader *reader)
{
    const struct text name = state_get_text(reader);
    struct host *host;

    if (hosts_find(hosts, name) || name.length > HOST_TEXT_MAX)
        state_set_damaged(reader);
    host = state_is_good(reader) ? hosts_new_host(hosts, name) : NULL;
    if (!host) {
        if (state_is_good(reader))
            state_set_no_memory(reader);
        return;
    }
    host->complete_ns = state_get_signed(reader);
    host->wait_ns = state_get_time(reader);
    for (enum host_group group = 0; group < HOST_GROUPS; group++) {
        while (state_get_bool(reader))
            restore_part(hosts, host, group, reader);
    }
    while (state_get_bool(reader))
        restore_held(hosts, host, assembler, reader);
}

void hosts_restore(struct hosts *hosts, struct assembler *assembler, struct state_reader *reader)
{
    while (state_get_bool(reader))
        restore_host(hosts, assembler, reader);
}
