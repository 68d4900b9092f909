/*
 * Samples to LTTng.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "recording.h"

#include "libblkin/metric/metric.h"

#include <stdio.h>

_Static_assert(HOST_METRICS_MAX <= BLKIN_METRIC_VALUES_MAX, "no value is left out");
_Static_assert(HOST_NAME_BYTES <= BLKIN_METRIC_INSTANCE_MAX + 1, "no instance is cut");

static bool are_names_due(struct host_recording *recording, const struct host_sample *sample)
{
    const uint64_t last = recording->slots[sample->slot].names_ns;

    return !last || recording->slots[sample->slot].generation != sample->generation ||
           recording->slots[sample->slot].present != sample->present ||
           sample->monotonic - last >= HOST_NAMES_NS;
}

/* Of those that are there. */
static void put_names(const struct host_sample *sample, char text[BLKIN_METRIC_NAMES_MAX + 1])
{
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < sample->count && length < BLKIN_METRIC_NAMES_MAX; i++) {
        const struct host_metric *metric = &sample->metrics[i];

        if (host_has(sample, i))
            length += (size_t)snprintf(text + length, BLKIN_METRIC_NAMES_MAX + 1 - length,
                                       "%s%s:%s:%c", length ? " " : "", metric->name, metric->unit,
                                       metric->is_counter ? 'c' : 'g');
    }
}

void host_record(void *context, const struct host_sample *sample)
{
    struct host_recording *recording = context;
    uint64_t values[HOST_METRICS_MAX];
    char names[BLKIN_METRIC_NAMES_MAX + 1] = "";
    size_t count = 0;

    if (!sample->present || sample->slot >= HOST_SLOTS)
        return;
    for (size_t i = 0; i < sample->count && count < HOST_METRICS_MAX; i++) {
        if (host_has(sample, i))
            values[count++] = sample->values[i];
    }
    if (are_names_due(recording, sample)) {
        put_names(sample, names);
        recording->slots[sample->slot].generation = sample->generation;
        recording->slots[sample->slot].present = sample->present;
        recording->slots[sample->slot].names_ns = sample->monotonic;
    }
    blkin_metric_record(&(struct blkin_metric){.group = sample->group,
                                               .instance = sample->instance,
                                               .names = names,
                                               .monotonic = sample->monotonic,
                                               .period_ms = sample->period_ms,
                                               .values = values,
                                               .count = count});
}
