/*
 * Made-up samples of hosts' metrics, and spans, for the tests of the tags about hosts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_HOST_METRICS_H
#define TESTS_HOST_METRICS_H

#include "babeltrace-plugin/stages/hosts.h"
#include "check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define DISK_NAMES                                                                          \
    "system.disk.operations.read:{operation}:c system.disk.operations.write:{operation}:c " \
    "system.disk.operation_time.read:ns:c system.disk.operation_time.write:ns:c "           \
    "system.disk.io_time:ns:c system.disk.weighted_io_time:ns:c"
#define CPU_NAMES                                                                           \
    "system.cpu.time.user:ns:c system.cpu.time.nice:ns:c system.cpu.time.system:ns:c "      \
    "system.cpu.time.idle:ns:c system.cpu.time.iowait:ns:c system.cpu.time.interrupt:ns:c " \
    "system.cpu.time.softirq:ns:c system.cpu.time.steal:ns:c"
#define PRESSURE_NAMES                                                        \
    "system.linux.pressure.cpu.some:ns:c system.linux.pressure.io.some:ns:c " \
    "system.linux.pressure.memory.some:ns:c"
#define RUN_QUEUE_NAMES "system.process.count.running:{thread}:g"
#define MEMORY_NAMES    "system.memory.limit:By:g system.linux.memory.available:By:g"
#define TCP_NAMES                                         \
    "system.network.tcp.segments.retransmit:{segment}:c " \
    "system.network.tcp.segments.transmit:{segment}:c"

/* One sample, of a sampler that numbers its samples. */
struct made_sample {
    const char *host, *group, *instance, *names, *values;
    int64_t time_ms;
    uint64_t thread;    /* 0: thread 1 */
    uint64_t period_ms; /* 0: 100 */
};

static inline struct event event_of_sample(const struct made_sample *made, uint64_t sequence)
{
    struct event event = {.kind = EVENT_METRIC, .time_ns = made->time_ms * MS};

    event.origin.host = text_of(made->host);
    event.group = text_of(made->group);
    event.instance = text_of(made->instance);
    event.names = text_of(made->names);
    event.values = text_of(made->values);
    event.thread = made->thread ? made->thread : 1;
    event.sequence = sequence;
    event.period_ms = made->period_ms ? made->period_ms : 100;
    return event;
}

/* Returns false when out of memory. The caller frees span->log. */
static inline bool span_of_host(struct span *span, const char *host, uint64_t id, int64_t start_ms,
                                int64_t end_ms)
{
    static const struct endpoint endpoint = {.service = {"s", 1}};

    *span = (struct span){.trace_id = 1,
                          .id = id,
                          .endpoint = &endpoint,
                          .start_ns = start_ms * MS,
                          .end_ns = end_ms * MS};
    return span_set_name(span, text_of("n")) &&
           (!host[0] || span_add(span, SPAN_TAG_TEXT, text_of("lttng.host"), text_of(host), 0));
}

#endif
