/* SPDX-License-Identifier: BSD-2-Clause */
#include "counters.h"

#include <inttypes.h>
#include <string.h>

#define COUNTS_OFFSET(member) offsetof(struct counts, member)

/* The entries are in the order of the sections. In a section that is a sum, the first entry is the
 * total. */
/* clang-format off */
const struct counter counters[] = {
    {"events", METRIC_COUNTER, SECTION_EVENTS, "", COUNTS_OFFSET(input.events),
     "Events read from the trace."},
    {"events_in_spans", METRIC_COUNTER, SECTION_EVENTS, "in spans", COUNTS_OFFSET(core.events_in_span),
     "Events that are now in a span."},
    {"events_foreign", METRIC_COUNTER, SECTION_EVENTS, "foreign", COUNTS_OFFSET(input.foreign),
     "Events of other providers, which are ignored."},
    {"events_unreadable", METRIC_COUNTER, SECTION_EVENTS, "unreadable", COUNTS_OFFSET(input.unreadable),
     "Events of BlkKin whose fields or time are wrong."},
    {"events_newer", METRIC_COUNTER | METRIC_RARE, SECTION_EVENTS, "newer", COUNTS_OFFSET(input.newer),
     "Events in a newer version of the format: the reader must be upgraded."},
    {"events_invalid", METRIC_COUNTER, SECTION_EVENTS, "invalid", COUNTS_OFFSET(core.events_invalid),
     "Events without trace id or span id."},
    {"events_no_room", METRIC_COUNTER, SECTION_EVENTS, "no room", COUNTS_OFFSET(core.events_no_room),
     "Events of spans that are too large, or lost because memory ran out."},
    {"events_duplicate", METRIC_COUNTER, SECTION_EVENTS, "duplicate", COUNTS_OFFSET(core.events_duplicate),
     "Events of whole spans that were also streamed: the streamed form is sent."},
    {"events_late", METRIC_COUNTER, SECTION_EVENTS, "late", COUNTS_OFFSET(core.events_late),
     "Streaming events of spans that had already ended, or whose begin was not seen."},
    {"events_of_processes", METRIC_COUNTER, SECTION_EVENTS, "of processes", COUNTS_OFFSET(core.events_process),
     "Events about a process, not about a span."},
    {"events_of_hosts", METRIC_COUNTER | METRIC_RARE, SECTION_EVENTS, "of hosts", COUNTS_OFFSET(core.events_metric),
     "Events about a host, not about a span: samples of its metrics."},
    {"events_of_alarms", METRIC_COUNTER | METRIC_RARE, SECTION_EVENTS, "alarms", COUNTS_OFFSET(input.alarms),
     "Events that report a slow span to watchers; they add nothing to the span."},
    {"events_of_rules", METRIC_COUNTER | METRIC_RARE, SECTION_EVENTS, "of rules", COUNTS_OFFSET(core.events_rule),
     "Events of other providers that a rule names."},
    {"events_unwanted", METRIC_COUNTER | METRIC_RARE, SECTION_EVENTS, "unwanted", COUNTS_OFFSET(input.unwanted),
     "Events of traces that the agent does not look for, or of another time."},

    {"events_missing", METRIC_COUNTER, SECTION_MISSING, "events", COUNTS_OFFSET(core.events_missing),
     "Events that were recorded but never arrived: gaps in sequence numbers."},
    {"metrics_missing", METRIC_COUNTER | METRIC_RARE, SECTION_MISSING, "metrics", COUNTS_OFFSET(core.metrics_missing),
     "Samples of hosts' metrics that were recorded but never arrived: gaps in sequence numbers."},
    {"annotations_lost", METRIC_COUNTER, SECTION_MISSING, "annotations and tags", COUNTS_OFFSET(core.log_errors),
     "Annotations, tags and steps that did not fit into their span, or are unreadable."},
    {"spans_cut", METRIC_COUNTER, SECTION_MISSING, "spans cut short", COUNTS_OFFSET(output.cut),
     "Spans encoded without some of their parts, or with texts cut, because these were too large."},

    {"spans_finished", METRIC_COUNTER, SECTION_SPANS, "", COUNTS_OFFSET(output.spans),
     "Spans finished and given to delivery; each step is a span."},
    {"spans_accepted", METRIC_COUNTER, SECTION_SPANS, "accepted", COUNTS_OFFSET(output.outcome[OUTCOME_ACCEPTED]),
     "Spans that the collector has accepted, or that are in the file."},
    {"spans_refused", METRIC_COUNTER, SECTION_SPANS, "refused", COUNTS_OFFSET(output.outcome[OUTCOME_REFUSED]),
     "Spans refused with their whole batch, or by a collector that does not say which."},
    {"spans_invalid", METRIC_COUNTER, SECTION_SPANS, "invalid", COUNTS_OFFSET(output.outcome[OUTCOME_INVALID]),
     "Spans refused one by one: the collector cannot read them."},
    {"spans_too_large", METRIC_COUNTER, SECTION_SPANS, "too large", COUNTS_OFFSET(output.outcome[OUTCOME_TOO_LARGE]),
     "Spans refused one by one: too large for the collector."},
    {"spans_possibly_persisted", METRIC_COUNTER | METRIC_RARE, SECTION_SPANS, "possibly persisted",
     COUNTS_OFFSET(output.outcome[OUTCOME_POSSIBLY_PERSISTED]),
     "Spans sent to Kafka without an answer in time: perhaps in Kafka's log; not sent again."},
    {"spans_undelivered", METRIC_COUNTER, SECTION_SPANS, "undelivered",
     COUNTS_OFFSET(output.outcome[OUTCOME_UNDELIVERED]),
     "Spans given up: the collector could not be reached in time."},
    {"spans_dropped", METRIC_COUNTER, SECTION_SPANS, "dropped", COUNTS_OFFSET(output.outcome[OUTCOME_DROPPED]),
     "Spans dropped because the queue was full."},
    {"spans_no_memory", METRIC_COUNTER, SECTION_SPANS, "no memory", COUNTS_OFFSET(output.outcome[OUTCOME_NO_MEMORY]),
     "Spans lost because memory ran out."},
    {"spans_skipped", METRIC_COUNTER | METRIC_RARE, SECTION_SPANS, "skipped", COUNTS_OFFSET(output.outcome[OUTCOME_SKIPPED]),
     "Spans that were sent before, or that the agent has read only for a list."},
    {"spans_sampled_out", METRIC_COUNTER | METRIC_RARE, SECTION_SPANS, "sampled out", COUNTS_OFFSET(output.outcome[OUTCOME_SAMPLED_OUT]),
     "Spans left out with their traces by tail sampling."},
    {"spans_held", METRIC_GAUGE | METRIC_RARE, SECTION_SPANS, "held", COUNTS_OFFSET(output.held),
     "Spans that wait: to be joined, for their host's next sample, or for tail sampling to decide."},
    {"spans_spooled", METRIC_COUNTER, SECTION_SPANS, "spooled", COUNTS_OFFSET(output.outcome[OUTCOME_SPOOLED]),
     "Spans written to disk because the collector was away or slow: see spool_spans."},
    {"spans_waiting", METRIC_GAUGE, SECTION_SPANS, "waiting", COUNTS_OFFSET(output.waiting),
     "Spans in the queue or in a request: not delivered, not lost."},

    {"rule_begins", METRIC_COUNTER, SECTION_RULES, "", COUNTS_OFFSET(input.rules.begins),
     "Begins of spans by rules."},
    {"rule_spans", METRIC_COUNTER, SECTION_RULES, "spans made", COUNTS_OFFSET(input.rules.spans),
     "Spans made by rules, without their stages."},
    {"rule_shorter", METRIC_COUNTER, SECTION_RULES, "too short", COUNTS_OFFSET(input.rules.shorter),
     "Spans that were not made, because they were shorter than the rule asks for."},
    {"rule_begun_again", METRIC_COUNTER, SECTION_RULES, "begun again", COUNTS_OFFSET(input.rules.begun_again),
     "Begins that were followed by another begin with the same key, before an end."},
    {"rule_dropped", METRIC_COUNTER, SECTION_RULES, "dropped from the stack", COUNTS_OFFSET(input.rules.dropped),
     "Begins on a thread's stack that had not ended when the span around them ended."},
    {"rule_begins_unmatched", METRIC_COUNTER, SECTION_RULES, "unmatched", COUNTS_OFFSET(input.rules.unmatched),
     "Begins whose end did not arrive in time, or that were given up to make room for others."},
    {"rule_unusable", METRIC_COUNTER, SECTION_RULES, "unusable", COUNTS_OFFSET(input.rules.unusable),
     "Begins with an impossible duration, or for which memory ran out."},
    {"rule_open", METRIC_GAUGE, SECTION_RULES, "open", COUNTS_OFFSET(input.rules.open),
     "Spans by rules that have not ended."},

    {"join_halves", METRIC_COUNTER, SECTION_JOINS, "", COUNTS_OFFSET(input.join.halves),
     "Servers' halves of requests whose clients sent no ids."},
    {"join_joined", METRIC_COUNTER, SECTION_JOINS, "joined", COUNTS_OFFSET(input.join.joined),
     "Halves whose client's half was found: both are one trace."},
    {"join_unjoined", METRIC_COUNTER, SECTION_JOINS, "unjoined", COUNTS_OFFSET(input.join.unjoined),
     "Halves whose client's half did not arrive in time: they are roots of their own traces."},
    {"join_ambiguous", METRIC_COUNTER, SECTION_JOINS, "ambiguous", COUNTS_OFFSET(input.join.ambiguous),
     "Halves that match more than one client's half, or share one with another half."},
    {"join_waiting", METRIC_GAUGE, SECTION_JOINS, "waiting", COUNTS_OFFSET(input.join.waiting),
     "Halves that wait for their client's half."},

    {"spool_spans", METRIC_COUNTER, SECTION_SPOOL, "", COUNTS_OFFSET(output.spool.spans),
     "Spans that were in the spool at the start, or were put into the spool since."},
    {"spool_delivered", METRIC_COUNTER, SECTION_SPOOL, "delivered",
     COUNTS_OFFSET(output.spool.outcome[OUTCOME_ACCEPTED]),
     "Spans of the spool that the collector has accepted, or that are in the file."},
    {"spool_refused", METRIC_COUNTER, SECTION_SPOOL, "refused", COUNTS_OFFSET(output.spool.outcome[OUTCOME_REFUSED]),
     "Spans of the spool refused with their whole batch, or by a collector that does not say which."},
    {"spool_invalid", METRIC_COUNTER, SECTION_SPOOL, "invalid", COUNTS_OFFSET(output.spool.outcome[OUTCOME_INVALID]),
     "Spans of the spool refused one by one: the collector cannot read them."},
    {"spool_too_large", METRIC_COUNTER, SECTION_SPOOL, "too large",
     COUNTS_OFFSET(output.spool.outcome[OUTCOME_TOO_LARGE]),
     "Spans of the spool refused one by one: too large for the collector."},
    {"spool_possibly_persisted", METRIC_COUNTER | METRIC_RARE, SECTION_SPOOL, "possibly persisted",
     COUNTS_OFFSET(output.spool.outcome[OUTCOME_POSSIBLY_PERSISTED]),
     "Spans of the spool sent to Kafka without an answer in time: in its log, or not."},
    {"spool_undelivered", METRIC_COUNTER, SECTION_SPOOL, "undelivered",
     COUNTS_OFFSET(output.spool.outcome[OUTCOME_UNDELIVERED]),
     "Spans of the spool given up: the collector accepted others, but not these."},
    {"spool_dropped", METRIC_COUNTER, SECTION_SPOOL, "dropped", COUNTS_OFFSET(output.spool.outcome[OUTCOME_DROPPED]),
     "Spans of the spool dropped because the spool was full."},
    {"spool_expired", METRIC_COUNTER, SECTION_SPOOL, "expired", COUNTS_OFFSET(output.spool.expired),
     "Spans of the spool that became too old."},
    {"spool_corrupt", METRIC_COUNTER, SECTION_SPOOL, "corrupt", COUNTS_OFFSET(output.spool.corrupt),
     "Spans of the spool in damaged records."},
    {"spool_unknown", METRIC_COUNTER | METRIC_RARE, SECTION_SPOOL, "unknown", COUNTS_OFFSET(output.spool.unknown),
     "Spans that left the spool between a killed reader's last account and the kill."},
    {"spool_waiting", METRIC_GAUGE, SECTION_SPOOL, "in it", COUNTS_OFFSET(output.spool.waiting),
     "Spans in the spool: not delivered, not lost."},

    {"lttng_events_discarded", METRIC_COUNTER, SECTION_LOST, "events", COUNTS_OFFSET(input.discarded_events),
     "Events lost in the traced program: its ring buffer was full."},
    {"lttng_packets_discarded", METRIC_COUNTER, SECTION_LOST, "packets", COUNTS_OFFSET(input.discarded_packets),
     "Packets of events overwritten or lost before they were read."},

    {"streams_open", METRIC_GAUGE, SECTION_NOTES, NULL, COUNTS_OFFSET(input.streams_open),
     "Streams of the trace that have not ended: a live session without streams has ended."},
    {"spans_open", METRIC_GAUGE, SECTION_NOTES, "spans open", COUNTS_OFFSET(core.spans_open),
     "Spans under assembly."},
    {"open_bytes", METRIC_GAUGE, SECTION_NOTES, "bytes of them", COUNTS_OFFSET(core.open_bytes),
     "Memory taken by the spans under assembly."},
    {"traces_kept", METRIC_COUNTER, SECTION_NOTES, "traces kept", COUNTS_OFFSET(input.tail.traces_kept),
     "Traces that tail sampling has kept."},
    {"traces_sampled_out", METRIC_COUNTER, SECTION_NOTES, "traces sampled out", COUNTS_OFFSET(input.tail.traces_sampled_out),
     "Traces that tail sampling has left out."},
    {"traces_early", METRIC_COUNTER, SECTION_NOTES, "traces decided early", COUNTS_OFFSET(input.tail.traces_early),
     "Traces that tail sampling decided before they were complete, to make room."},
    {"spans_late", METRIC_COUNTER, SECTION_NOTES, "spans late", COUNTS_OFFSET(input.tail.spans_late),
     "Spans that arrived after the decision of tail sampling: each was kept or left out like its trace."},
    {"spans_unheld", METRIC_COUNTER, SECTION_NOTES, "spans not held", COUNTS_OFFSET(input.tail.spans_unheld),
     "Spans delivered at once because there was no memory to hold them for tail sampling."},
    {"names_merged", METRIC_COUNTER | METRIC_RARE, SECTION_NOTES, "spans of merged names",
     COUNTS_OFFSET(input.tail.names_merged),
     "Spans whose service or name found no room in tail sampling: they are one operation."},
    {"traces_held", METRIC_GAUGE, SECTION_NOTES, NULL, COUNTS_OFFSET(input.tail.traces_held),
     "Traces that wait for tail sampling to decide."},
    {"held_bytes", METRIC_GAUGE, SECTION_NOTES, NULL, COUNTS_OFFSET(input.tail.held_bytes),
     "Memory taken by the spans that wait for tail sampling."},
    {"rule_ends_unmatched", METRIC_COUNTER, SECTION_NOTES, "ends unmatched",
     COUNTS_OFFSET(input.rules.ends_unmatched), "Ends of spans by rules without a begin."},
    {"rule_stages_unmatched", METRIC_COUNTER, SECTION_NOTES, "stages unmatched",
     COUNTS_OFFSET(input.rules.stages_unmatched), "Stages and marks of rules without a begin."},
    {"rule_keyless", METRIC_COUNTER, SECTION_NOTES, "events without their key",
     COUNTS_OFFSET(input.rules.keyless), "Events that a rule names, but that lack a field of its key."},
    {"rule_evicted", METRIC_COUNTER, SECTION_NOTES, "begins evicted", COUNTS_OFFSET(input.rules.evicted),
     "Begins by rules that were given up to make room for others."},
    {"rule_stages", METRIC_COUNTER, SECTION_NOTES, NULL, COUNTS_OFFSET(input.rules.stages),
     "Spans that rules made for stages."},
    {"rule_parents", METRIC_COUNTER, SECTION_NOTES, NULL, COUNTS_OFFSET(input.rules.with_parent),
     "Spans by rules that ask for a parent, and have one."},
    {"rule_parents_missing", METRIC_COUNTER, SECTION_NOTES, NULL, COUNTS_OFFSET(input.rules.without_parent),
     "Spans by rules that ask for a parent, and have none: roots of their own traces."},
    {"rule_no_room", METRIC_COUNTER, SECTION_NOTES, "values without room", COUNTS_OFFSET(input.rules.no_room),
     "Values, stages and lookups of rules without room or memory."},
    {"rule_open_bytes", METRIC_GAUGE, SECTION_NOTES, NULL, COUNTS_OFFSET(input.rules.open_bytes),
     "Memory taken by spans that rules have begun."},
    {"join_late", METRIC_COUNTER, SECTION_NOTES, "unjoined as the client came late", COUNTS_OFFSET(input.join.late),
     "Unjoined halves whose client's half arrived after they had been given up."},
    {"join_early", METRIC_COUNTER, SECTION_NOTES, "traces given out early", COUNTS_OFFSET(input.join.early),
     "Traces that did not wait for their halves, to make room."},
    {"join_rootless", METRIC_COUNTER, SECTION_NOTES, "traces without the server's half",
     COUNTS_OFFSET(input.join.rootless),
     "Parts of traces to be joined whose server's half did not arrive."},
    {"join_unheld", METRIC_COUNTER, SECTION_NOTES, "spans not held for joining", COUNTS_OFFSET(input.join.unheld),
     "Spans delivered at once because there was no memory to hold them for joining."},
    {"join_spans_held", METRIC_GAUGE, SECTION_NOTES, NULL, COUNTS_OFFSET(input.join.spans_held),
     "Spans that wait for their trace to be joined."},
    {"join_held_bytes", METRIC_GAUGE, SECTION_NOTES, NULL, COUNTS_OFFSET(input.join.held_bytes),
     "Memory taken by spans that wait to be joined, and by the tables of the join."},
    {"metrics_unnamed", METRIC_COUNTER, SECTION_NOTES, "metrics without names", COUNTS_OFFSET(input.hosts.unnamed),
     "Samples of hosts' metrics whose names had not arrived yet."},
    {"metrics_invalid", METRIC_COUNTER, SECTION_NOTES, "metrics unreadable", COUNTS_OFFSET(input.hosts.invalid),
     "Samples of hosts' metrics whose names or values make no sense."},
    {"metrics_anew", METRIC_COUNTER, SECTION_NOTES, "metrics begun again", COUNTS_OFFSET(input.hosts.resets),
     "Samples of hosts' metrics with a counter that is smaller than before."},
    {"metrics_no_room", METRIC_COUNTER, SECTION_NOTES, "metrics without room", COUNTS_OFFSET(input.hosts.no_room),
     "Samples of hosts' metrics from more hosts or groups than there is room for."},
    {"host_spans_tagged", METRIC_COUNTER, SECTION_NOTES, NULL, COUNTS_OFFSET(input.hosts.spans_tagged),
     "Spans that have tags about their host."},
    {"host_spans_early", METRIC_COUNTER, SECTION_NOTES, "spans tagged early",
     COUNTS_OFFSET(input.hosts.spans_early),
     "Spans that did not wait for their host's next sample, to make room."},
    {"host_tags_lost", METRIC_COUNTER, SECTION_NOTES, "tags of hosts lost", COUNTS_OFFSET(input.hosts.tags_lost),
     "Tags about a span's host that did not fit into the span, or into memory."},
    {"host_spans_held", METRIC_GAUGE, SECTION_NOTES, NULL, COUNTS_OFFSET(input.hosts.spans_held),
     "Spans that wait for a sample of their host's metrics."},
    {"host_held_bytes", METRIC_GAUGE, SECTION_NOTES, NULL, COUNTS_OFFSET(input.hosts.held_bytes),
     "Memory taken by the spans that wait for a sample of their host."},
    {"host_history_bytes", METRIC_GAUGE, SECTION_NOTES, NULL, COUNTS_OFFSET(input.hosts.history_bytes),
     "Memory taken by hosts and their samples."},
    {"spans_incomplete", METRIC_COUNTER, SECTION_NOTES, "spans incomplete", COUNTS_OFFSET(core.spans_incomplete),
     "Spans finished without an end, marked so."},
    {"spans_evicted", METRIC_COUNTER, SECTION_NOTES, "spans evicted", COUNTS_OFFSET(core.spans_evicted),
     "Spans finished early to make room, marked so."},
    {"steps_spilled", METRIC_COUNTER, SECTION_NOTES, "steps spilled", COUNTS_OFFSET(core.steps_spilled),
     "Steps that found no room in the event of their span, and were recorded as events of their own."},
    {"spans_duplicate", METRIC_COUNTER, SECTION_NOTES, "spans duplicate", COUNTS_OFFSET(core.spans_duplicate),
     "Spans assembled a second time, and not given out again."},
    {"spans_with_loss", METRIC_COUNTER, SECTION_NOTES, "spans touched by losses",
     COUNTS_OFFSET(core.spans_with_loss),
     "Spans tagged blkin.lost: events were lost while they were open."},
    {"spans_corrected", METRIC_COUNTER, SECTION_NOTES, "spans of a corrected clock",
     COUNTS_OFFSET(core.spans_corrected),
     "Spans whose times were corrected, because the clock of their host was wrong."},
    {"events_unsure", METRIC_COUNTER | METRIC_RARE, SECTION_NOTES, "missing events that may have arrived",
     COUNTS_OFFSET(core.events_unsure),
     "Events of events_missing that may have arrived: a process that was killed may have sent them."},
    {"events_awaited", METRIC_GAUGE | METRIC_RARE, SECTION_NOTES, NULL, COUNTS_OFFSET(core.events_awaited),
     "Events that have not arrived, although later ones have: after 10 s they count as missing."},
    {"not_noted", METRIC_COUNTER, SECTION_NOTES, "losses and clocks not noted", COUNTS_OFFSET(core.not_noted),
     "Losses and clock samples that found no room: a tag blkin.lost may be missing."},
    {"services_merged", METRIC_COUNTER, SECTION_NOTES, "merged endpoints",
     COUNTS_OFFSET(core.services_merged),
     "Endpoints shown without port or address, or as one service: there was no more room."},
    {"spans_unsure", METRIC_COUNTER, SECTION_NOTES, "spans maybe not in the file", COUNTS_OFFSET(output.unsure),
     "Spans written to a file whose last write failed: they may not be in the file."},
    {"spool_found", METRIC_COUNTER, SECTION_NOTES, "spans found in the spool", COUNTS_OFFSET(output.spool.found),
     "Spans that an earlier sink has left in the spool."},
    {"spool_unreadable", METRIC_COUNTER, SECTION_NOTES, "unreadable pieces of the spool",
     COUNTS_OFFSET(output.spool.unreadable),
     "Pieces of the spool's files that are no records: the number of their spans is unknown."},
    {"spool_errors", METRIC_COUNTER, SECTION_NOTES, "errors of the spool", COUNTS_OFFSET(output.spool.errors),
     "Records that the spool's disk did not take: their spans stayed in the queue."},
    {"spool_bytes", METRIC_GAUGE, SECTION_NOTES, NULL, COUNTS_OFFSET(output.spool.bytes),
     "Disk space taken by the spool."},
    {"requests", METRIC_COUNTER, SECTION_NOTES, NULL, COUNTS_OFFSET(output.requests),
     "Attempts to deliver a batch."},
    {"retries", METRIC_COUNTER, SECTION_NOTES, NULL, COUNTS_OFFSET(output.retries),
     "Attempts that repeat a failed attempt."},
    {"stats_file_errors", METRIC_COUNTER, SECTION_NOTES, "errors of the statistics file",
     COUNTS_OFFSET(display.file_errors),
     "Failures to write the statistics file."},
};
/* clang-format on */

const size_t counters_count = sizeof(counters) / sizeof(counters[0]);

static const struct {
    const char *title;
    bool is_sum;
} sections[METRIC_SECTIONS] = {
    [SECTION_EVENTS] = {"events: ", true},
    [SECTION_MISSING] = {"missing: ", false},
    [SECTION_SPANS] = {"spans: ", true},
    [SECTION_RULES] = {"begins by rules: ", true},
    [SECTION_JOINS] = {"halves of requests: ", true},
    [SECTION_SPOOL] = {"spool: ", true},
    [SECTION_LOST] = {"lost by LTTng: ", false},
    [SECTION_NOTES] = {"also: ", false},
};

uint64_t counter_value(const struct counter *counter, const struct counts *counts)
{
    uint64_t value;

    memcpy(&value, (const char *)counts + counter->offset, sizeof(value));
    return value;
}

/* The first counter of a sum's section is the total. */
static bool is_total(size_t i)
{
    return sections[counters[i].section].is_sum &&
           (i == 0 || counters[i - 1].section != counters[i].section);
}

void counts_add_stages(struct counts *counts)
{
    const struct input_counts *input = &counts->input;
    struct exporter_counts *output = &counts->output;

    output->outcome[OUTCOME_SKIPPED] += input->spans_skipped;
    output->outcome[OUTCOME_SAMPLED_OUT] += input->spans_sampled_out;
    output->spans += input->spans_skipped + input->spans_sampled_out;
    output->held = input->spans > output->spans ? input->spans - output->spans : 0;
    output->spans += output->held;
}

bool counts_add_up(const struct counts *counts)
{
    uint64_t left[METRIC_SECTIONS] = {0};

    for (size_t i = 0; i < counters_count; i++) {
        const uint64_t value = counter_value(&counters[i], counts);

        if (sections[counters[i].section].is_sum)
            left[counters[i].section] += is_total(i) ? value : -value;
    }
    return left[SECTION_EVENTS] == 0 && left[SECTION_SPANS] == 0 && left[SECTION_JOINS] == 0 &&
           left[SECTION_RULES] == 0 && left[SECTION_SPOOL] == 0 &&
           counts->output.spool.spans ==
               counts->output.spool.found + counts->output.outcome[OUTCOME_SPOOLED];
}

/* Returns true for a rare counter that is 0, and for counters of rules, joins and the spool while
 * these are not used. */
static bool counter_is_hidden(const struct counter *counter, const struct counts *counts)
{
    if (counter->kind & METRIC_RARE)
        return counter_value(counter, counts) == 0;
    if (counter->section == SECTION_RULES)
        return counts->input.rules.begins == 0;
    if (counter->section == SECTION_JOINS)
        return counts->input.join.halves == 0;
    return !counts->output.spool.in_use &&
           (counter->section == SECTION_SPOOL ||
            counter->offset == COUNTS_OFFSET(output.outcome[OUTCOME_SPOOLED]));
}

static bool is_shown(size_t i, const struct counts *counts, uint64_t value, enum line_style style)
{
    if (!counters[i].label || counter_is_hidden(&counters[i], counts))
        return false;
    return value || is_total(i) || (style == LINE_WHOLE && counters[i].section != SECTION_NOTES);
}

static void print_line(struct printer *line, const struct counts *counts, enum line_style style)
{
    enum section last = METRIC_SECTIONS;
    const char *separator = "";

    for (size_t i = 0; i < counters_count; i++) {
        const struct counter *counter = &counters[i];
        const uint64_t value = counter_value(counter, counts);
        const bool is_sum = sections[counter->section].is_sum;

        if (!is_shown(i, counts, value, style))
            continue;
        if (counter->section != last)
            print(line, "%s%s", i ? "; " : "", sections[counter->section].title);
        else
            print_string(line, separator);
        separator = is_total(i) ? " = " : is_sum ? " + " : ", ";
        last = counter->section;
        print(line, "%" PRIu64 "%s%s", value, counter->label[0] ? " " : "", counter->label);
    }
}

void counts_line(const struct counts *counts, enum line_style style, char line[COUNTS_LINE_MAX])
{
    struct printer printer = {.buffer = {line, 0, COUNTS_LINE_MAX - 1, COUNTS_LINE_MAX - 1}};

    print_line(&printer, counts, style);
    line[printer.buffer.length] = '\0';
}

/* ---- as a page of Prometheus --------------------------------------------------------------- */

void counter_print(struct printer *page, const struct counter *counter, const struct counts *counts)
{
    const bool is_counter = !(counter->kind & METRIC_GAUGE);
    char name[96];

    (void)snprintf(name, sizeof(name), "blkin_%s%s", counter->name, is_counter ? "_total" : "");
    print_metric(page, name, is_counter ? "counter" : "gauge", counter->help,
                 counter_value(counter, counts));
}

static void print_time(struct printer *page, const char *name, int64_t time_ns, const char *help)
{
    print_metric_head(page, name, "gauge", help);
    print(page, "%s %" PRId64 ".%03d\n", name, time_ns / 1000000000,
          (int)(time_ns / 1000000 % 1000));
}

void prometheus_print(struct printer *page, const struct counts *counts, const struct run_info *run)
{
    print_metric_head(page, "blkin_sink_info", "gauge",
                      "Version and endpoint of the sink or the service; the value is always 1.");
    print_string(page, "blkin_sink_info{");
    print_label(page, "version", text_of(BLKIN_RELEASE));
    print_string(page, ",");
    print_label(page, "endpoint", text_of(run->endpoint));
    print_string(page, "} 1\n");
    print_time(page, "blkin_start_time_seconds", run->start_ns,
               "When the sink or the service started, since 1970.");
    print_time(page, "blkin_events_time_seconds", run->events_ns,
               "When the counters of events were read, since 1970.");
    print_time(page, "blkin_trace_time_seconds", counts->input.trace_time_ns,
               "Time of the newest event that was read, since 1970; 0 before the first event.");
    for (size_t i = 0; i < counters_count; i++)
        counter_print(page, &counters[i], counts);
}
