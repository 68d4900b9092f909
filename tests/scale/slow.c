/*
 * Loaded into a worker (LD_PRELOAD), sets its clock forward by CLOCK_AHEAD_MS, and makes every span
 * take SLOW_SPAN_NS longer, asleep. So one machine shows the behaviour of many workers: a span of
 * the load has 190 bytes.
 *
 * A worker reads a message's time once, when it works on it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "waits.h"

#include <dlfcn.h>
#include <librdkafka/rdkafka.h>
#include <stdlib.h>
#include <time.h>

#define SPAN_BYTES 190

__attribute__((visibility("default"))) int64_t
rd_kafka_message_timestamp(const rd_kafka_message_t *message, rd_kafka_timestamp_type_t *type)
{
    static int64_t (*real)(const rd_kafka_message_t *, rd_kafka_timestamp_type_t *);
    static int64_t span_ns;

    if (!real) {
        const char *value = getenv("SLOW_SPAN_NS");

        *(void **)&real = dlsym(RTLD_NEXT, "rd_kafka_message_timestamp");
        span_ns = value ? strtoll(value, NULL, 10) : 0;
    }
    if (!message->err)
        pause_us((int64_t)(message->len / SPAN_BYTES) * span_ns / 1000);
    return real(message, type);
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *time)
{
    static int (*real)(clockid_t, struct timespec *);
    static int64_t ahead_ms;
    int status;

    if (!real) {
        const char *value = getenv("CLOCK_AHEAD_MS");

        ahead_ms = value ? strtoll(value, NULL, 10) : 0;
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    }
    status = real(clock, time);
    if (status == 0 && clock == CLOCK_REALTIME)
        time->tv_sec += ahead_ms / 1000;
    return status;
}
