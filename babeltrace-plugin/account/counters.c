/*
 * The table of all counters, and the line made from it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "counters.h"

#include "babeltrace-plugin/base/printer.h"

#include <inttypes.h>
#include <string.h>

#define AT(member) offsetof(struct counts, member)

/* Sections in their order; in a sum, the total comes first. One counter is one entry. */
/* clang-format off */
const struct counter counters[] = {
    {"events", COUNTER, SECTION_EVENTS, "", AT(input.events),
     "Events read from the trace."},
    {"events_in_spans", COUNTER, SECTION_EVENTS, "in spans", AT(core.events_in_span),
     "Events that are now in a span."},
    {"events_foreign", COUNTER, SECTION_EVENTS, "foreign", AT(input.foreign),
     "Events of other providers, which are ignored."},
    {"events_unreadable", COUNTER, SECTION_EVENTS, "unreadable", AT(input.unreadable),
     "Events of BlkKin whose fields or time are wrong."},
    {"events_newer", COUNTER, SECTION_EVENTS, "newer", AT(input.newer),
     "Events in a newer version of the format: the reader must be upgraded."},
    {"events_invalid", COUNTER, SECTION_EVENTS, "invalid", AT(core.events_invalid),
     "Events without trace id or span id."},
    {"events_no_room", COUNTER, SECTION_EVENTS, "no room", AT(core.events_no_room),
     "Events of spans that are too large, or lost because memory ran out."},
    {"events_duplicate", COUNTER, SECTION_EVENTS, "duplicate", AT(core.events_duplicate),
     "Events of spans that were recorded in two forms, and sent in the other one."},
    {"events_late", COUNTER, SECTION_EVENTS, "late", AT(core.events_late),
     "Streaming events of spans that had already ended, or whose begin was not seen."},
    {"events_of_processes", COUNTER, SECTION_EVENTS, "of processes", AT(core.events_process),
     "Events about a process, not about a span."},
    {"events_of_hosts", COUNTER, SECTION_EVENTS, "of hosts", AT(core.events_metric),
     "Events about a host, not about a span: samples of its metrics."},
    {"events_of_alarms", COUNTER, SECTION_EVENTS, "alarms", AT(input.alarms),
     "Events that report a slow span to watchers; they add nothing to the span."},
    {"events_of_rules", COUNTER, SECTION_EVENTS, "of rules", AT(core.events_rule),
     "Events of other providers that a rule names."},
    {"events_unwanted", COUNTER, SECTION_EVENTS, "unwanted", AT(input.unwanted),
     "Events of traces that only-traces does not name, or of another time."},

    {"events_missing", COUNTER, SECTION_MISSING, "events", AT(core.events_missing),
     "Events that were recorded but never arrived: gaps in sequence numbers."},
    {"metrics_missing", COUNTER, SECTION_MISSING, "metrics", AT(core.metrics_missing),
     "Samples of hosts' metrics that were recorded but never arrived: gaps in sequence numbers."},
    {"annotations_lost", COUNTER, SECTION_MISSING, "annotations and tags", AT(core.log_errors),
     "Annotations, tags and steps that did not fit into their span, or are unreadable."},
    {"spans_cut", COUNTER, SECTION_MISSING, "spans cut short", AT(output.cut),
     "Spans encoded without some of their parts, or with texts cut, because these were too large."},

    {"spans_finished", COUNTER, SECTION_SPANS, "", AT(output.spans),
     "Spans finished and given to delivery; each step is one."},
    {"spans_accepted", COUNTER, SECTION_SPANS, "accepted", AT(output.outcome[OUTCOME_ACCEPTED]),
     "Spans that the collector has accepted, or that are in the file."},
    {"spans_refused", COUNTER, SECTION_SPANS, "refused", AT(output.outcome[OUTCOME_REFUSED]),
     "Spans refused with their whole batch."},
    {"spans_invalid", COUNTER, SECTION_SPANS, "invalid", AT(output.outcome[OUTCOME_INVALID]),
     "Spans refused one by one: the collector cannot read them."},
    {"spans_too_large", COUNTER, SECTION_SPANS, "too large", AT(output.outcome[OUTCOME_TOO_LARGE]),
     "Spans refused one by one: too large for the collector."},
    {"spans_possibly_persisted", COUNTER, SECTION_SPANS, "possibly persisted",
     AT(output.outcome[OUTCOME_POSSIBLY_PERSISTED]),
     "Spans sent to Kafka without an answer in time: in its log, or not; not sent again."},
    {"spans_undelivered", COUNTER, SECTION_SPANS, "undelivered",
     AT(output.outcome[OUTCOME_UNDELIVERED]),
     "Spans given up: the collector could not be reached in time."},
    {"spans_dropped", COUNTER, SECTION_SPANS, "dropped", AT(output.outcome[OUTCOME_DROPPED]),
     "Spans dropped because the queue was full."},
    {"spans_no_memory", COUNTER, SECTION_SPANS, "no memory", AT(output.outcome[OUTCOME_NO_MEMORY]),
     "Spans lost because memory ran out."},
    {"spans_skipped", COUNTER, SECTION_SPANS, "skipped", AT(output.outcome[OUTCOME_SKIPPED]),
     "Spans that were sent before."},
    {"spans_sampled_out", COUNTER, SECTION_SPANS, "sampled out", AT(output.outcome[OUTCOME_SAMPLED_OUT]),
     "Spans left out with their traces by tail sampling."},
    {"spans_held", GAUGE, SECTION_SPANS, "held", AT(output.held),
     "Spans that wait: to be joined, for their host's next sample, or for tail sampling to decide."},
    {"spans_spooled", COUNTER, SECTION_SPANS, "spooled", AT(output.outcome[OUTCOME_SPOOLED]),
     "Spans written to disk because the collector was away or slow: see spool_spans."},
    {"spans_waiting", GAUGE, SECTION_SPANS, "waiting", AT(output.waiting),
     "Spans in the queue or in a request: not delivered, not lost."},

    {"rule_begins", COUNTER, SECTION_RULES, "", AT(input.rules.begins),
     "Begins of spans by rules."},
    {"rule_spans", COUNTER, SECTION_RULES, "spans made", AT(input.rules.spans),
     "Spans made by rules, without their stages."},
    {"rule_shorter", COUNTER, SECTION_RULES, "too short", AT(input.rules.shorter),
     "Spans shorter than the rule's least, which were not made."},
    {"rule_begun_again", COUNTER, SECTION_RULES, "begun again", AT(input.rules.begun_again),
     "Begins whose key began again before an end."},
    {"rule_dropped", COUNTER, SECTION_RULES, "dropped from the stack", AT(input.rules.dropped),
     "Begins on a thread's stack that had not ended when the span around them ended."},
    {"rule_begins_unmatched", COUNTER, SECTION_RULES, "unmatched", AT(input.rules.unmatched),
     "Begins whose end did not come in time, or which made room for others."},
    {"rule_unusable", COUNTER, SECTION_RULES, "unusable", AT(input.rules.unusable),
     "Begins with an impossible duration, or for which memory ran out."},
    {"rule_open", GAUGE, SECTION_RULES, "open", AT(input.rules.open),
     "Spans by rules that have not ended."},

    {"join_halves", COUNTER, SECTION_JOINS, "", AT(input.join.halves),
     "Servers' halves of requests whose clients sent no ids."},
    {"join_joined", COUNTER, SECTION_JOINS, "joined", AT(input.join.joined),
     "Halves whose client's half was found: both are one trace."},
    {"join_unjoined", COUNTER, SECTION_JOINS, "unjoined", AT(input.join.unjoined),
     "Halves whose client's half did not arrive in time: they are roots of their own traces."},
    {"join_ambiguous", COUNTER, SECTION_JOINS, "ambiguous", AT(input.join.ambiguous),
     "Halves that match more than one client's half, or share one with another half."},
    {"join_waiting", GAUGE, SECTION_JOINS, "waiting", AT(input.join.waiting),
     "Halves that wait for their client's half."},

    {"spool_spans", COUNTER, SECTION_SPOOL, "", AT(output.spool.spans),
     "Spans in the spool: found there at the start, and put in since."},
    {"spool_delivered", COUNTER, SECTION_SPOOL, "delivered",
     AT(output.spool.outcome[OUTCOME_ACCEPTED]),
     "Spans of the spool that the collector has accepted, or that are in the file."},
    {"spool_refused", COUNTER, SECTION_SPOOL, "refused", AT(output.spool.outcome[OUTCOME_REFUSED]),
     "Spans of the spool refused with their whole batch."},
    {"spool_invalid", COUNTER, SECTION_SPOOL, "invalid", AT(output.spool.outcome[OUTCOME_INVALID]),
     "Spans of the spool refused one by one: the collector cannot read them."},
    {"spool_too_large", COUNTER, SECTION_SPOOL, "too large",
     AT(output.spool.outcome[OUTCOME_TOO_LARGE]),
     "Spans of the spool refused one by one: too large for the collector."},
    {"spool_possibly_persisted", COUNTER, SECTION_SPOOL, "possibly persisted",
     AT(output.spool.outcome[OUTCOME_POSSIBLY_PERSISTED]),
     "Spans of the spool sent to Kafka without an answer in time: in its log, or not."},
    {"spool_undelivered", COUNTER, SECTION_SPOOL, "undelivered",
     AT(output.spool.outcome[OUTCOME_UNDELIVERED]),
     "Spans of the spool given up: the collector accepted others, but not these."},
    {"spool_dropped", COUNTER, SECTION_SPOOL, "dropped", AT(output.spool.outcome[OUTCOME_DROPPED]),
     "Spans of the spool dropped because it was full."},
    {"spool_expired", COUNTER, SECTION_SPOOL, "expired", AT(output.spool.expired),
     "Spans of the spool that became too old."},
    {"spool_corrupt", COUNTER, SECTION_SPOOL, "corrupt", AT(output.spool.corrupt),
     "Spans of the spool in damaged records."},
    {"spool_unknown", COUNTER, SECTION_SPOOL, "unknown", AT(output.spool.unknown),
     "Spans that left the spool between a killed reader's last account and its death."},
    {"spool_waiting", GAUGE, SECTION_SPOOL, "in it", AT(output.spool.waiting),
     "Spans in the spool: not delivered, not lost."},

    {"lttng_events_discarded", COUNTER, SECTION_LOST, "events", AT(input.discarded_events),
     "Events lost in the traced program: its ring buffer was full."},
    {"lttng_packets_discarded", COUNTER, SECTION_LOST, "packets", AT(input.discarded_packets),
     "Packets of events overwritten or lost before they were read."},

    {"streams_open", GAUGE, SECTION_NOTES, NULL, AT(input.streams_open),
     "Streams of the trace that have not ended: a live session without any is dead."},
    {"spans_open", GAUGE, SECTION_NOTES, "spans open", AT(core.spans_open),
     "Spans under assembly."},
    {"open_bytes", GAUGE, SECTION_NOTES, "bytes of them", AT(core.open_bytes),
     "Memory taken by the spans under assembly."},
    {"traces_kept", COUNTER, SECTION_NOTES, "traces kept", AT(input.tail.traces_kept),
     "Traces that tail sampling has kept."},
    {"traces_sampled_out", COUNTER, SECTION_NOTES, "traces sampled out", AT(input.tail.traces_sampled_out),
     "Traces that tail sampling has left out."},
    {"traces_early", COUNTER, SECTION_NOTES, "traces decided early", AT(input.tail.traces_early),
     "Traces that tail sampling decided before they were complete, to make room."},
    {"spans_late", COUNTER, SECTION_NOTES, "spans late", AT(input.tail.spans_late),
     "Spans that arrived after tail sampling had decided on their trace; they followed it."},
    {"spans_unheld", COUNTER, SECTION_NOTES, "spans not held", AT(input.tail.spans_unheld),
     "Spans delivered at once because there was no memory to hold them for tail sampling."},
    {"traces_held", GAUGE, SECTION_NOTES, NULL, AT(input.tail.traces_held),
     "Traces that wait for tail sampling to decide."},
    {"held_bytes", GAUGE, SECTION_NOTES, NULL, AT(input.tail.held_bytes),
     "Memory taken by the spans that wait for tail sampling."},
    {"rule_ends_unmatched", COUNTER, SECTION_NOTES, "ends unmatched",
     AT(input.rules.ends_unmatched), "Ends of spans by rules without a begin."},
    {"rule_stages_unmatched", COUNTER, SECTION_NOTES, "stages unmatched",
     AT(input.rules.stages_unmatched), "Stages and marks of rules without a begin."},
    {"rule_keyless", COUNTER, SECTION_NOTES, "events without their key",
     AT(input.rules.keyless), "Events that a rule names, but that lack a field of its key."},
    {"rule_evicted", COUNTER, SECTION_NOTES, "begins evicted", AT(input.rules.evicted),
     "Begins by rules that were given up to make room for others."},
    {"rule_stages", COUNTER, SECTION_NOTES, NULL, AT(input.rules.stages),
     "Spans that rules made for stages."},
    {"rule_parents", COUNTER, SECTION_NOTES, NULL, AT(input.rules.with_parent),
     "Spans by rules that ask for a parent, and have one."},
    {"rule_parents_missing", COUNTER, SECTION_NOTES, NULL, AT(input.rules.without_parent),
     "Spans by rules that ask for a parent, and have none: roots of their own traces."},
    {"rule_no_room", COUNTER, SECTION_NOTES, "values without room", AT(input.rules.no_room),
     "Values, stages and lookups of rules without room or memory."},
    {"rule_open_bytes", GAUGE, SECTION_NOTES, NULL, AT(input.rules.open_bytes),
     "Memory taken by spans that rules have begun."},
    {"join_late", COUNTER, SECTION_NOTES, "unjoined as the client came late", AT(input.join.late),
     "Unjoined halves whose client's half arrived after they had been given up."},
    {"join_early", COUNTER, SECTION_NOTES, "traces not held for joining", AT(input.join.early),
     "Traces that were given up early, to make room."},
    {"join_rootless", COUNTER, SECTION_NOTES, "traces without the server's half",
     AT(input.join.rootless),
     "Parts of traces to be joined whose server's half did not arrive."},
    {"join_unheld", COUNTER, SECTION_NOTES, "spans not held for joining", AT(input.join.unheld),
     "Spans delivered at once because there was no memory to hold them for joining."},
    {"join_spans_held", GAUGE, SECTION_NOTES, NULL, AT(input.join.spans_held),
     "Spans that wait for their trace to be joined."},
    {"join_held_bytes", GAUGE, SECTION_NOTES, NULL, AT(input.join.held_bytes),
     "Memory taken by spans that wait to be joined, and by what is remembered for joining."},
    {"metrics_unnamed", COUNTER, SECTION_NOTES, "metrics without names", AT(input.hosts.unnamed),
     "Samples of hosts' metrics whose names had not arrived yet."},
    {"metrics_invalid", COUNTER, SECTION_NOTES, "metrics unreadable", AT(input.hosts.invalid),
     "Samples of hosts' metrics whose names or values make no sense."},
    {"metrics_anew", COUNTER, SECTION_NOTES, "metrics begun again", AT(input.hosts.anew),
     "Samples of hosts' metrics with a counter that is smaller than before."},
    {"metrics_no_room", COUNTER, SECTION_NOTES, "metrics without room", AT(input.hosts.no_room),
     "Samples of hosts' metrics from more hosts or groups than there is room for."},
    {"host_spans_tagged", COUNTER, SECTION_NOTES, NULL, AT(input.hosts.spans_tagged),
     "Spans tagged with what their host did meanwhile."},
    {"host_spans_early", COUNTER, SECTION_NOTES, "spans tagged early",
     AT(input.hosts.spans_early),
     "Spans that did not wait for their host's next sample, to make room."},
    {"host_tags_lost", COUNTER, SECTION_NOTES, "tags of hosts lost", AT(input.hosts.tags_lost),
     "Tags about a span's host that did not fit into the span, or into memory."},
    {"host_spans_held", GAUGE, SECTION_NOTES, NULL, AT(input.hosts.spans_held),
     "Spans that wait for a sample of their host's metrics."},
    {"host_held_bytes", GAUGE, SECTION_NOTES, NULL, AT(input.hosts.held_bytes),
     "Memory taken by the spans that wait for a sample of their host."},
    {"host_history_bytes", GAUGE, SECTION_NOTES, NULL, AT(input.hosts.history_bytes),
     "Memory taken by hosts and their samples."},
    {"spans_incomplete", COUNTER, SECTION_NOTES, "spans incomplete", AT(core.spans_incomplete),
     "Spans finished without an end, marked so."},
    {"spans_evicted", COUNTER, SECTION_NOTES, "spans evicted", AT(core.spans_evicted),
     "Spans finished early to make room, marked so."},
    {"steps_spilled", COUNTER, SECTION_NOTES, "steps spilled", AT(core.steps_spilled),
     "Steps that found no room in the event of their span, and were recorded as events of their own."},
    {"spans_duplicate", COUNTER, SECTION_NOTES, "spans duplicate", AT(core.spans_duplicate),
     "Spans put together and not given out: they had been already."},
    {"spans_with_loss", COUNTER, SECTION_NOTES, "spans touched by losses",
     AT(core.spans_with_loss),
     "Spans tagged blkin.lost: events were lost while they were open."},
    {"spans_corrected", COUNTER, SECTION_NOTES, "spans of a corrected clock",
     AT(core.spans_corrected),
     "Spans moved by what the clock of their host was off."},
    {"not_noted", COUNTER, SECTION_NOTES, "losses and clocks not noted", AT(core.not_noted),
     "Losses and clock samples without room to keep them: a tag blkin.lost may be missing."},
    {"services_merged", COUNTER, SECTION_NOTES, "events of merged services",
     AT(core.services_merged),
     "Events of more services than there is room for, shown as one."},
    {"spans_unsure", COUNTER, SECTION_NOTES, "spans maybe not in the file", AT(output.unsure),
     "Spans accepted by a file whose end failed: they may not be in it."},
    {"spool_found", COUNTER, SECTION_NOTES, "spans found in the spool", AT(output.spool.found),
     "Spans that an earlier sink has left in the spool."},
    {"spool_unreadable", COUNTER, SECTION_NOTES, "unreadable pieces of the spool",
     AT(output.spool.unreadable),
     "Pieces of the spool's files that are no record: nobody knows of how many spans."},
    {"spool_errors", COUNTER, SECTION_NOTES, "errors of the spool", AT(output.spool.errors),
     "Records that the spool's disk did not take: their spans stayed in the queue."},
    {"spool_bytes", GAUGE, SECTION_NOTES, NULL, AT(output.spool.bytes),
     "Disk space taken by the spool."},
    {"requests", COUNTER, SECTION_NOTES, NULL, AT(output.requests),
     "Attempts to deliver a batch."},
    {"retries", COUNTER, SECTION_NOTES, NULL, AT(output.retries),
     "Attempts that repeat one that failed."},
    {"tap_dropped", COUNTER, SECTION_NOTES, "spans not shown by the tap", AT(output.tap_dropped),
     "Spans that a reader of the tap was too slow for, and was not shown."},
    {"stats_file_errors", COUNTER, SECTION_NOTES, "errors of the statistics file",
     AT(display.file_errors),
     "Failures to write the statistics file."},
};
/* clang-format on */

const size_t counters_count = sizeof(counters) / sizeof(counters[0]);

static const struct {
    const char *title;
    bool is_sum;
} sections[SECTIONS] = {
    [SECTION_EVENTS] = {"events: ", true},
    [SECTION_MISSING] = {"missing: ", false},
    [SECTION_SPANS] = {"spans: ", true},
    [SECTION_RULES] = {"begins by rules: ", true},
    [SECTION_JOINS] = {"halves of requests: ", true},
    [SECTION_SPOOL] = {"spool: ", true},
    [SECTION_LOST] = {"lost before by LTTng: ", false},
    [SECTION_NOTES] = {"also: ", false},
};

uint64_t counter_value(const struct counter *counter, const struct counts *counts)
{
    uint64_t value;

    memcpy(&value, (const char *)counts + counter->offset, sizeof(value));
    return value;
}

/* The first counter of a section of this kind is its total. */
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
    uint64_t left[SECTIONS] = {0};

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

/* Most have nothing to join, no spool, no Kafka, no run before, least of all one that was killed,
 * and no alarms, metrics or newer programs, and want all traces. */
static bool counter_is_rare(const struct counter *counter, const struct counts *counts)
{
    if (counter->offset == AT(output.outcome[OUTCOME_SKIPPED]) ||
        counter->offset == AT(output.outcome[OUTCOME_SAMPLED_OUT]) ||
        counter->offset == AT(output.outcome[OUTCOME_POSSIBLY_PERSISTED]) ||
        counter->offset == AT(output.spool.outcome[OUTCOME_POSSIBLY_PERSISTED]) ||
        counter->offset == AT(output.held) || counter->offset == AT(output.spool.unknown) ||
        counter->offset == AT(core.events_metric) || counter->offset == AT(core.metrics_missing) ||
        counter->offset == AT(input.newer) || counter->offset == AT(input.alarms) ||
        counter->offset == AT(core.events_rule) || counter->offset == AT(input.unwanted))
        return counter_value(counter, counts) == 0;
    if (counter->section == SECTION_RULES)
        return counts->input.rules.begins == 0;
    if (counter->section == SECTION_JOINS)
        return counts->input.join.halves == 0;
    return !counts->output.spool.in_use && (counter->section == SECTION_SPOOL ||
                                            counter->offset == AT(output.outcome[OUTCOME_SPOOLED]));
}

static bool is_shown(size_t i, const struct counts *counts, uint64_t value, enum line_style style)
{
    if (!counters[i].label || counter_is_rare(&counters[i], counts))
        return false;
    return value || is_total(i) || (style == LINE_WHOLE && counters[i].section != SECTION_NOTES);
}

static void print_line(struct printer *line, const struct counts *counts, enum line_style style)
{
    enum section last = SECTIONS;
    const char *joint = "";

    for (size_t i = 0; i < counters_count; i++) {
        const struct counter *counter = &counters[i];
        const uint64_t value = counter_value(counter, counts);
        const bool is_sum = sections[counter->section].is_sum;

        if (!is_shown(i, counts, value, style))
            continue;
        if (counter->section != last)
            print(line, "%s%s", i ? "; " : "", sections[counter->section].title);
        else
            print_string(line, joint);
        joint = is_total(i) ? " = " : is_sum ? " + " : ", ";
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
