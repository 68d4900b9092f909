/*
 * Keeps the two latest samples of each instance.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "observe.h"

#include <string.h>

static void observed_put_name(char name[OBSERVED_NAME_BYTES], const char *bytes)
{
    const size_t length = strlen(bytes);
    char *at = name;

    for (size_t done = 0; done < length;)
        done += utf8_put(&at, bytes + done, length - done);
    *at = '\0';
}

void observe_sample(void *context, const struct host_sample *sample)
{
    struct observer *const observer = context;
    struct observed *const observed = &observer->slots[sample->slot];

    if (observed->generation != sample->generation) {
        memset(observed, 0, sizeof(*observed));
        observed->kind = sample->kind;
        observed->generation = sample->generation;
        observed_put_name(observed->name, sample->instance);
    }
    observed->period_ms = sample->period_ms;
    observed->before_ns = observed->after_ns;
    observed->before_present = observed->after_present;
    memcpy(observed->before, observed->after, sizeof(observed->before));
    observed->after_ns = sample->monotonic;
    observed->after_present = sample->present;
    memcpy(observed->after, sample->values, sample->count * sizeof(*sample->values));
}

static int observed_find_metric(const void *context, const char *name, size_t length)
{
    const struct observed *const observed = context;

    return host_metric_find(observed->kind,
                            observed->after_present &
                                (observed->before_ns ? observed->before_present : UINT64_MAX),
                            name, length);
}

bool observed_value(const struct observed *observed, const struct host_view *view, double *value)
{
    const struct host_interval interval = {
        .from = observed->before_ns,
        .to = observed->after_ns,
        .before = observed->before_ns ? observed->before : NULL,
        .after = observed->after,
        .find = observed_find_metric,
        .context = observed,
    };

    return strcmp(view->group, host_definition(observed->kind)->name) == 0 &&
           host_view_value(view, &interval, value);
}
