/* SPDX-License-Identifier: BSD-2-Clause */
#include "metric.h"

#include "libblkin/base/clock.h"
#include "libblkin/base/provider.h"
#include "libblkin/process/process.h"
#include "tracepoints/format/events.h"
#include "tracepoints/format/put.h"

#define LOOK_NS UINT64_C(500000000) /* the pause between two looks for rings */

static __thread uint32_t sequence; /* numbers the events of this thread */

void blkin_metric_open(void)
{
    (void)blkin_init();
}

/* Also looks for rings. The agent's sampler needs no other part of the periodic work. */
bool blkin_metric_is_on(void)
{
    static uint64_t look_ns;
    const uint64_t now_ns = blkin_monotonic_ns();

    if (now_ns >= look_ns)
        look_ns = blkin_process_refresh() ? 0 : now_ns + LOOK_NS;
    return blkin_event_enabled(blkin_provider(), BLKIN_EVENT_METRIC);
}

static char *put_values(char *at, const uint64_t *values, size_t count)
{
    for (size_t i = 0; i < count && i < BLKIN_METRIC_VALUES_MAX; i++) {
        if (i)
            *at++ = ' ';
        at = blkin_put_decimal(at, values[i]);
    }
    *at++ = '\0';
    return at;
}

/* No text of the event is empty: see events.h. */
static const char *shown(const char *text)
{
    return *text ? text : "-";
}

_Static_assert(sizeof(struct blkin_metric_event) + BLKIN_METRIC_GROUP_MAX + 1 +
                       BLKIN_METRIC_INSTANCE_MAX + 1 + BLKIN_METRIC_NAMES_MAX + 1 +
                       BLKIN_METRIC_VALUES_MAX * (BLKIN_DECIMAL_MAX + 1) <=
                   BLKIN_METRIC_PAYLOAD_MAX,
               "the longest payload has room");

size_t blkin_metric_payload(char payload[BLKIN_METRIC_PAYLOAD_MAX],
                            const struct blkin_metric *metric, uint64_t thread, uint32_t number)
{
    const struct blkin_metric_event event = {.monotonic = metric->monotonic,
                                             .thread = thread,
                                             .sequence = number,
                                             .period_ms = metric->period_ms};
    char *at = blkin_put_bytes(payload, &event, sizeof(event));

    at = blkin_put_string(at, metric->group, BLKIN_METRIC_GROUP_MAX);
    at = blkin_put_string(at, shown(metric->instance), BLKIN_METRIC_INSTANCE_MAX);
    at = blkin_put_string(at, shown(metric->names), BLKIN_METRIC_NAMES_MAX);
    at = put_values(at, metric->values, metric->count);
    return (size_t)(at - payload);
}

void blkin_metric_record(const struct blkin_metric *metric)
{
    char payload[BLKIN_METRIC_PAYLOAD_MAX];
    size_t length;

    if (!blkin_metric_is_on())
        return;
    length = blkin_metric_payload(payload, metric, blkin_this_thread()->number, ++sequence);
    blkin_record_event(blkin_provider(), BLKIN_EVENT_METRIC, payload, length);
}
