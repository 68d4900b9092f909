/*
 * Shows verdicts to people: the answers to `blkin keep`, and the span of an incomplete trace.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "judge_parts.h"

#include "babeltrace-plugin/base/date.h"
#include "export.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define UNDONE_MAX 256 /* the most traces that are listed while a request is open: clients poll */

/* "missing" is 0 unless all ids of the trace are known, and all traces of the request. */
static json_t *judge_trace_json(const struct entry *entry, const struct judge_trace *trace)
{
    const bool is_cut = trace->found.is_cut || entry->more;
    char text[TRACE_ID_TEXT];
    uint64_t parent;

    trace_id_text(trace->wanted.id, text);
    return json_pack(
        "{ss, sI, sI, sb, so}", "id", text, "spans", (json_int_t)trace->found.spans, "missing",
        is_cut ? (json_int_t)0
               : (json_int_t)ids_missing(&trace->found.want, &trace->found.have, &parent),
        "cut", is_cut, "hosts", trace->hosts ? json_incref(trace->hosts) : json_array());
}

static json_t *judge_host_json(const struct host *host)
{
    static const char *const states[] = {"waiting", "answered", "away"};

    return json_pack("{ss, ss, sI, so, ss*}", "host", host->name, "state", states[host->state],
                     "spans", (json_int_t)host->spans, "held_from", json_time(host->held_from_ns),
                     "error", host->error[0] ? host->error : NULL);
}

json_t *judge_json(const struct judge *judge, const char *name)
{
    const struct entry *entry = judge->entries;
    json_t *traces, *hosts;
    size_t listed;

    while (entry && strcmp(entry->name, name) != 0)
        entry = entry->next;
    if (!entry)
        return NULL;
    listed = entry->is_done || entry->trace_count < UNDONE_MAX ? entry->trace_count : UNDONE_MAX;
    traces = json_array();
    hosts = json_array();
    for (size_t i = 0; i < listed; i++)
        (void)json_array_append_new(traces, judge_trace_json(entry, entry->traces[i]));
    for (size_t i = 0; i < entry->host_count; i++)
        (void)json_array_append_new(hosts, judge_host_json(&entry->hosts[i]));
    return json_pack("{ss, sI, sb, so, so}", "id", name, "more",
                     (json_int_t)(entry->more + entry->trace_count - listed), "done",
                     entry->is_done && !(entry->head.last_ms > 0 && entry->head.service[0]),
                     "traces", traces, "hosts", hosts);
}

static void judge_add_tag(struct span *span, const char *key, const char *value)
{
    if (value[0])
        (void)span_add(span, SPAN_TAG_TEXT, text_of(key), text_of(value), 0);
}

void judge_report(struct export *export, const struct verdict *verdict)
{
    struct span span = {.trace_id_high = verdict->id.high,
                        .trace_id = verdict->id.low,
                        .parent_id = verdict->missing ? verdict->parent : 0,
                        .kind = SPAN_LOCAL,
                        /* the trace's begin: the current time would make the trace seem longer */
                        .start_ns = verdict->time_ns,
                        .end_ns = verdict->time_ns};

    if (getrandom(&span.id, sizeof(span.id), 0) != sizeof(span.id) || span.id == 0)
        span.id = (uint64_t)span.start_ns;
    (void)span_set_name(&span, text_of("incomplete"));
    judge_add_tag(&span, "blkin.kept", verdict->why);
    judge_add_tag(&span, "blkin.incomplete", verdict->lacks);
    judge_add_tag(&span, "blkin.hosts", verdict->hosts);
    judge_add_tag(&span, "blkin.held_from", verdict->held);
    export_add_own(export, &span);
    free(span.log);
}
