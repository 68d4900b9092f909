/*
 * The table of a worker's counters.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "counts.h"

#include <string.h>

#define COUNTER(name, help)                                           \
    {                                                                 \
#name, WORK_COUNTER, offsetof(struct work_counts, name), help \
    }
#define GAUGE(name, help)                                           \
    {                                                               \
#name, WORK_GAUGE, offsetof(struct work_counts, name), help \
    }
#define RATIO(name, member, help)                                    \
    {                                                                \
        name, WORK_RATIO, offsetof(struct work_counts, member), help \
    }

const struct work_counter work_counters[] = {
    COUNTER(spans_in, "Spans read, each once whichever worker reads it"),
    COUNTER(spans_taken_over, "Spans of traces that were open at the worker before"),
    COUNTER(spans_counted, "Spans counted with their traces"),
    COUNTER(spans_late, "Spans that came after their trace was closed: only their rates and "
                        "durations are counted"),
    COUNTER(spans_over, "Spans beyond what a trace may have: in no statistics"),
    COUNTER(spans_invalid, "Spans without a trace id or an id"),
    COUNTER(spans_handed_over, "Spans of open traces of partitions given to other workers"),
    GAUGE(spans_open, "Spans of open traces"),
    COUNTER(spans_read_back, "Spans read once more, that an earlier worker has counted"),
    COUNTER(spans_kept, "Spans of traces that tail sampling has kept"),
    COUNTER(spans_too_large, "Spans of kept traces that no message takes"),
    COUNTER(traces_closed, "Traces put together and counted"),
    COUNTER(traces_incomplete, "Of these, traces without one root or with parents missing"),
    COUNTER(traces_early, "Of these, traces closed before their time for want of memory"),
    COUNTER(traces_kept, "Traces that tail sampling has kept"),
    GAUGE(traces_open, "Traces that wait for their spans"),
    COUNTER(traces_forgotten, "Closed traces forgotten before their time for want of memory"),
    COUNTER(messages, "Messages read"),
    COUNTER(bytes, "Bytes of these"),
    COUNTER(messages_broken, "Messages that are no OTLP traces, from some byte on"),
    COUNTER(messages_skewed, "Messages with a time before that of the message before, or to come"),
    COUNTER(host_messages, "Messages of hosts' metrics read"),
    COUNTER(host_points, "Metrics of hosts between two samples, added up"),
    COUNTER(host_points_refused, "Metrics of hosts that are no deltas, or of no time"),
    COUNTER(host_points_shifted, "Metrics of hosts whose clocks are ahead"),
    COUNTER(host_messages_broken, "Messages of hosts that are no OTLP metrics, from some byte on"),
    COUNTER(offsets_missing, "Offsets that were not in the log: retention, marks of "
                             "transactional writers, or an end that a broker has lost"),
    GAUGE(partitions, "Partitions that this worker has"),
    COUNTER(rebalances, "How often partitions came or went"),
    COUNTER(transactions, "Transactions committed"),
    GAUGE(open_bytes, "Memory for messages of open traces, and for all traces"),
    RATIO("busy_ratio", busy, "Share of its time that the worker has worked"),
    RATIO("behind_seconds", behind_s, "Age of the last message when it was read"),
};

const size_t work_counters_count = sizeof(work_counters) / sizeof(work_counters[0]);

static const void *place(const struct work_counter *counter, const struct work_counts *counts)
{
    return (const char *)counts + counter->offset;
}

uint64_t work_counter_value(const struct work_counter *counter, const struct work_counts *counts)
{
    uint64_t value;

    memcpy(&value, place(counter, counts), sizeof(value));
    return value;
}

double work_counter_ratio(const struct work_counter *counter, const struct work_counts *counts)
{
    double value;

    memcpy(&value, place(counter, counts), sizeof(value));
    return value;
}

/* now + or - before of counters; gauges are those of now. */
static struct work_counts combine(const struct work_counts *now, const struct work_counts *other,
                                  bool subtract)
{
    struct work_counts result = *now;

    for (size_t i = 0; i < work_counters_count; i++) {
        const struct work_counter *counter = &work_counters[i];
        const uint64_t value = work_counter_value(counter, other);
        uint64_t sum = work_counter_value(counter, now);

        if (counter->kind != WORK_COUNTER)
            continue;
        sum = subtract ? sum - value : sum + value;
        memcpy((char *)&result + counter->offset, &sum, sizeof(sum));
    }
    return result;
}

void work_counts_add(struct work_counts *counts, const struct work_counts *delta)
{
    *counts = combine(delta, counts, false);
}

struct work_counts work_counts_since(const struct work_counts *now,
                                     const struct work_counts *before)
{
    return combine(now, before, true);
}
