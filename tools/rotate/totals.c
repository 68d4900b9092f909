/*
 * What `blkin rotate` has done.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "totals.h"

#include "service/reader_account.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OWN(member, help)                              \
    {                                                  \
#member, offsetof(struct totals, member), help \
    }

const struct total totals_own[] = {
    OWN(chunks_converted, "Chunks of the trace converted and deleted."),
    OWN(bytes_converted, "Bytes of them."),
    OWN(chunks_dropped, "Chunks deleted unread: there was no room on the disk."),
    OWN(bytes_dropped, "Bytes of them."),
    OWN(files_damaged, "Files that cannot be read, moved to the folder damaged."),
    OWN(bytes_damaged, "Bytes of them."),
    OWN(sessions, "Sessions made."),
    OWN(rotations_stuck, "Sessions given up as their rotation did not end."),
    OWN(children_failed, "Conversions that failed or were killed, and were begun anew."),
};
const size_t totals_own_count = sizeof(totals_own) / sizeof(totals_own[0]);

uint64_t total_value(const struct totals *totals, size_t i)
{
    uint64_t value;

    memcpy(&value, (const char *)totals + totals_own[i].offset, sizeof(value));
    return value;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void read_own(struct totals *totals, const json_t *json)
{
    for (size_t i = 0; i < totals_own_count; i++) {
        const uint64_t value =
            (uint64_t)json_integer_value(json_object_get(json, totals_own[i].name));

        memcpy((char *)totals + totals_own[i].offset, &value, sizeof(value));
    }
}

bool totals_load(struct totals *totals, const char *path)
{
    json_t *json = json_load_file(path, 0, NULL);
    const json_t *sinks = json_object_get(json, "counters");
    const char *last = json_string_value(json_object_get(json, "last_run"));
    const char *current = json_string_value(json_object_get(json, "current"));

    *totals = (struct totals){.chunks_converted = 0};
    if (!sinks || !last) {
        json_decref(json);
        return access(path, F_OK) != 0;
    }
    read_own(totals, json);
    counts_read(sinks, &totals->sinks);
    (void)snprintf(totals->last_run, sizeof(totals->last_run), "%s", last);
    totals->has_open = json_is_true(json_object_get(json, "has_open"));
    totals->trace_ns = json_integer_value(json_object_get(json, "trace_ns"));
    totals->closed_ns = json_integer_value(json_object_get(json, "closed_ns"));
    if (current)
        (void)snprintf(totals->current, sizeof(totals->current), "%s", current);
    json_decref(json);
    return true;
}

bool totals_save(const struct totals *totals, const char *path, struct error *error)
{
    char beside[4200];
    json_t *json = json_pack(
        "{ss, ss, sb, sI, sI, so}", "current", totals->current, "last_run", totals->last_run,
        "has_open", totals->has_open, "trace_ns", (json_int_t)totals->trace_ns, "closed_ns",
        (json_int_t)totals->closed_ns, "counters", counts_json(&totals->sinks));
    bool is_written = json != NULL;
    int fd = -1;

    for (size_t i = 0; i < totals_own_count && is_written; i++)
        is_written = json_object_set_new(json, totals_own[i].name,
                                         json_integer((json_int_t)total_value(totals, i))) == 0;
    (void)snprintf(beside, sizeof(beside), "%s.new", path);
    if (is_written) {
        fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        is_written = fd >= 0 && json_dumpfd(json, fd, JSON_INDENT(2)) == 0;
    }
    if (fd >= 0 && close(fd) != 0)
        is_written = false;
    is_written = is_written && rename(beside, path) == 0;
    if (!is_written)
        error_set(error, "cannot write %s: %s", path, strerror(errno));
    json_decref(json);
    return is_written;
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* Of one that was killed the spans that waited will come again: without them both sums hold. */
static void end_run(struct counts *counts)
{
    counts->output.spans -= counts->output.waiting;
    counts->output.waiting = 0;
    for (size_t i = 0; i < counters_count; i++) {
        if (counters[i].kind == GAUGE)
            memset((char *)counts + counters[i].offset, 0, sizeof(uint64_t));
    }
}

uint64_t totals_add_run(struct totals *totals, const char *stats_file)
{
    struct reader_account run;
    json_t *json = json_load_file(stats_file, 0, NULL);
    const char *started = json_string_value(json_object_get(json, "started"));
    char id[sizeof(totals->last_run)] = "";
    uint64_t settled = 0;

    if (started)
        (void)snprintf(id, sizeof(id), "%lld %s",
                       (long long)json_integer_value(json_object_get(json, "pid")), started);
    if (id[0] && strcmp(id, totals->last_run) != 0 && reader_account_read(stats_file, &run)) {
        settled = run.counts.output.outcome[OUTCOME_ACCEPTED];
        totals->has_open = run.counts.input.events_held || run.counts.core.spans_open;
        if (run.counts.input.trace_time_ns > totals->trace_ns)
            totals->trace_ns = run.counts.input.trace_time_ns;
        end_run(&run.counts);
        counts_add(&totals->sinks, &run.counts);
        (void)snprintf(totals->last_run, sizeof(totals->last_run), "%s", id);
    }
    json_decref(json);
    return settled;
}
