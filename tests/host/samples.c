/*
 * Prints the samples of `blkin host`, ten times a second: a JSON object for each instance of each
 * group. For bench-host, which compares them with readings of other programs.
 *
 *     samples PROCESSES CGROUPS      patterns as of the keys process and cgroup
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/date.h"
#include "tools/sampler/observe.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PERIOD_MS 100

static struct observer observer;

static json_t *metrics_of(const struct observed *observed)
{
    const struct host_definition *definition = host_definition(observed->kind);
    json_t *metrics = json_object();

    for (size_t i = 0; i < definition->count; i++) {
        if (observed->after.present >> i & 1)
            json_object_set_new(metrics, definition->metrics[i].name,
                                observed->after.values[i] <= INT64_MAX
                                    ? json_integer((json_int_t)observed->after.values[i])
                                    : json_real((double)observed->after.values[i]));
    }
    return metrics;
}

static json_t *views_of(const struct observed *observed)
{
    json_t *json = json_object();
    size_t count;
    const struct host_view *views = host_views(&count);
    double value;

    for (size_t i = 0; i < count; i++) {
        if (host_values_view(observed->kind, &views[i], &observed->before, &observed->after,
                             &value))
            json_object_set_new(json, views[i].name, json_real(value));
    }
    return json;
}

static void print_sample(void *context, const struct host_sample *sample)
{
    const struct observed *observed = &observer.slots[sample->slot];
    json_t *json;

    (void)context;
    observe_sample(&observer, sample);
    json =
        json_pack("{sI, sI, ss, ss, so, so}", "time_us", (json_int_t)(wall_clock_ns() / 1000),
                  "monotonic", (json_int_t)observed->after.at, "group", sample->group, "instance",
                  observed->name, "metrics", metrics_of(observed), "views", views_of(observed));
    json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(json);
}

int main(int argc, char *argv[])
{
    struct host_config config;
    struct error error;
    struct host_reader *host;

    host_config_default(&config);
    for (int kind = 0; kind < HOST_KINDS; kind++)
        config.wanted[kind].period_ms = PERIOD_MS;
    config.wanted[HOST_PROCESS].instances = argc > 1 ? argv[1] : NULL;
    config.wanted[HOST_CGROUP].instances = argc > 2 ? argv[2] : NULL;
    host = host_open(&config, &error);
    if (!host) {
        fprintf(stderr, "samples: %s\n", error.text);
        return 1;
    }
    for (;;) {
        const struct timespec pause = {0, PERIOD_MS * 1000000L};

        host_sample_all(host, print_sample, NULL);
        if (fflush(stdout) != 0)
            return 1;
        nanosleep(&pause, NULL);
    }
}
