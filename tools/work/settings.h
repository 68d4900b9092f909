/* The configuration of a worker, without the sink's parameters.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_SETTINGS_H
#define BLKIN_TOOLS_WORK_SETTINGS_H

#include "babeltrace-plugin/deliver/kafka_conf.h"
#include "tools/merged/merged.h"

struct work_settings {
    struct kafka_url input; /* the topic of spans */
    const char *kafka_file;
    const char *group;
    const char *deltas; /* the topic for counts; "": none */
    char instance[WORKER_NAME_MAX];
    bool is_named; /* the configuration names the instance, so another worker may have the same name
                    */
    int64_t wait_ms, commit_ms;
    uint64_t max_open_bytes; /* above it, traces close early */
};

#endif
