/*
 * What a worker is configured with, but for the sink's own parameters.
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
    const char *deltas; /* the topic of what was counted; "": it is not written */
    char instance[WORKER_NAME_MAX];
    bool is_named; /* the instance, by the configuration: another worker may have it by mistake */
    int64_t wait_ms, commit_ms;
    uint64_t max_open_bytes; /* above it, traces are closed before their time */
};

#endif
