/*
 * Plays the recorder: opens the intake of foreign spans, asks for the traces that alarms name until
 * nothing more of them is to be expected, and sends their spans on.
 *
 *     recorder KEY=VALUE...
 *
 * listen, socket, endpoint, format, store-bytes, message-bytes, connections, rate (spans/s), and
 * linger-ms (6000). A line with the URL tells that it is ready. A line "status" on the standard
 * input prints the status; "copy FROM UNTIL" sends on what was open in that time, in ns; "limits
 * MESSAGE-BYTES CONNECTIONS RATE" is a reload; SIGTERM ends it, with the status.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/deliver/exporter.h"
#include "babeltrace-plugin/params.h"
#include "tools/foreign/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LOOK_MS    250
#define WANTED_MAX 100000

struct wanted_trace {
    struct foreign_wanted wanted;
    int64_t until_ms;
};

struct recorder {
    struct loop *loop;
    struct foreign *foreign;
    struct exporter *exporter; /* NULL: what is given is counted only */
    struct endpoint_table *endpoints;
    struct span whole;
    struct watched input;
    struct timer look;
    int64_t linger_ms;
    struct wanted_trace wanted[WANTED_MAX];
    size_t wanted_count;
    uint64_t alarms, dropped, traces, overwritten, given, unreadable;
    uint64_t copied; /* of those given, by the last copy */
};

static struct recorder recorder;
static struct foreign_options options;
static struct params params;
static const char *linger = "6000";

/* ---- traces ---------------------------------------------------------------------------------- */

static void recorder_give(void *context, const struct otlp_origin *origin,
                          const struct otlp_span *span)
{
    (void)context;
    recorder.given++;
    if (!recorder.exporter)
        return;
    if (otlp_decode_span(origin, span, recorder.endpoints, &recorder.whole))
        exporter_add(recorder.exporter, &recorder.whole);
    else
        recorder.unreadable++;
}

static void recorder_alarm(void *context, const struct foreign_alarm *alarm)
{
    (void)context;
    recorder.dropped += alarm->dropped;
    if (!alarm->trace_id && !alarm->trace_id_high)
        return;
    recorder.alarms++;
    for (size_t i = 0; i < recorder.wanted_count; i++) {
        if (recorder.wanted[i].wanted.trace_id == alarm->trace_id &&
            recorder.wanted[i].wanted.trace_id_high == alarm->trace_id_high)
            return;
    }
    if (recorder.wanted_count == WANTED_MAX)
        return;
    recorder.wanted[recorder.wanted_count++] = (struct wanted_trace){
        .wanted = {.trace_id_high = alarm->trace_id_high, .trace_id = alarm->trace_id},
        .until_ms = clock_ms() + recorder.linger_ms};
    recorder.traces++;
}

static void recorder_look(void *context)
{
    const int64_t now_ms = clock_ms();
    size_t kept = 0;

    (void)context;
    timer_set(recorder.loop, &recorder.look, LOOK_MS);
    for (size_t i = 0; i < recorder.wanted_count; i++) {
        struct wanted_trace *trace = &recorder.wanted[i];

        foreign_take(recorder.foreign, &trace->wanted, recorder_give, NULL);
        if (now_ms < trace->until_ms)
            recorder.wanted[kept++] = *trace;
        else
            recorder.overwritten += trace->wanted.is_overwritten;
    }
    recorder.wanted_count = kept;
    if (recorder.exporter)
        (void)exporter_heed_interruption(recorder.exporter);
}

/* ---- what it is told ------------------------------------------------------------------------- */

static void recorder_print(void)
{
    const struct exporter_counts sent =
        recorder.exporter ? exporter_counts(recorder.exporter) : (struct exporter_counts){0};
    json_t *status = json_pack(
        "{so, sI, sI, sI, sI, sI, sI, sI, sI, sI}", "foreign", foreign_json(recorder.foreign),
        "alarms", (json_int_t)recorder.alarms, "dropped", (json_int_t)recorder.dropped, "traces",
        (json_int_t)recorder.traces, "open", (json_int_t)recorder.wanted_count, "overwritten",
        (json_int_t)recorder.overwritten, "given", (json_int_t)recorder.given, "copied",
        (json_int_t)recorder.copied, "unreadable", (json_int_t)recorder.unreadable, "accepted",
        (json_int_t)sent.outcome[OUTCOME_ACCEPTED]);

    (void)json_dumpf(status, stdout, JSON_COMPACT);
    (void)puts("");
    (void)fflush(stdout);
    json_decref(status);
}

static void recorder_is_told(void *context, short events)
{
    char text[128];
    const ssize_t length = read(recorder.input.fd, text, sizeof(text) - 1);
    const uint64_t before = recorder.given;
    int64_t from_ns, until_ns;

    (void)context;
    (void)events;
    if (length <= 0) {
        loop_unwatch(recorder.loop, &recorder.input);
        return;
    }
    text[length] = '\0';
    if (sscanf(text, "copy %" SCNd64 " %" SCNd64, &from_ns, &until_ns) == 2)
        foreign_copy(recorder.foreign, from_ns, until_ns, recorder_give, NULL);
    recorder.copied = recorder.given - before;
    if (sscanf(text, "limits %" SCNu64 " %" SCNu64 " %" SCNu64, &options.message_bytes,
               &options.connections, &options.spans_per_s) == 3)
        foreign_reload(recorder.foreign, &options);
    recorder_print();
}

static void recorder_end(void *context)
{
    (void)context;
    loop_stop(recorder.loop);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static bool recorder_set_own(const char *key, const char *value)
{
    const struct {
        const char *key;
        const char **text;
        uint64_t *number;
    } keys[] = {
        {"listen", &options.listen, NULL},
        {"socket", &options.socket, NULL},
        {"linger-ms", &linger, NULL},
        {"store-bytes", NULL, &options.store_bytes},
        {"message-bytes", NULL, &options.message_bytes},
        {"connections", NULL, &options.connections},
        {"rate", NULL, &options.spans_per_s},
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (strcmp(key, keys[i].key) != 0)
            continue;
        if (keys[i].text)
            *keys[i].text = value;
        else
            *keys[i].number = strtoull(value, NULL, 10);
        return true;
    }
    return false;
}

/* The sink's own parameters: endpoint, format and so on. */
static bool recorder_set_param(const char *key, const char *text)
{
    const struct param_value value = {.text = text, .integer = atoll(text)};
    struct error error;
    size_t count;
    const struct param_rule *rules = params_table(&count);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(key, rules[i].name) == 0)
            return params_set(&params, &rules[i], &value, &error);
    }
    return false;
}

static void recorder_report(void *context, const char *message)
{
    (void)context;
    (void)fprintf(stderr, "recorder: %s\n", message);
}

static bool recorder_is_interrupted(void *context)
{
    (void)context;
    return false;
}

static bool recorder_read(int argc, char *argv[])
{
    params_begin(&params);
    for (int i = 1; i < argc; i++) {
        char *value = strchr(argv[i], '=');

        if (value)
            *value++ = '\0';
        if (!value || !(recorder_set_own(argv[i], value) || recorder_set_param(argv[i], value))) {
            (void)fprintf(stderr, "recorder: what is %s?\n", argv[i]);
            return false;
        }
    }
    params_end(&params);
    recorder.linger_ms = atoll(linger);
    return true;
}

static bool recorder_open(struct error *error)
{
    const struct loop_signals signals = {.end = recorder_end};
    const struct foreign_callbacks callbacks = {.alarm = recorder_alarm};
    const struct exporter_callbacks reports = {.interrupted = recorder_is_interrupted,
                                               .report = recorder_report};

    recorder.loop = loop_new(&signals);
    recorder.endpoints = endpoint_table_new();
    error_set(error, "out of memory");
    if (!recorder.loop || !recorder.endpoints)
        return false;
    if (params.exporter.transport.endpoint) {
        recorder.exporter = exporter_new(&params.exporter, &reports, error);
        if (!recorder.exporter)
            return false;
        exporter_set_live(recorder.exporter);
    }
    recorder.foreign = foreign_open(recorder.loop, &options, &callbacks, error);
    return recorder.foreign != NULL;
}

int main(int argc, char *argv[])
{
    struct error error = {""};

    if (!recorder_read(argc, argv))
        return 2;
    if (!recorder_open(&error)) {
        (void)fprintf(stderr, "recorder: %s\n", error.text);
        return 1;
    }
    recorder.input = (struct watched){STDIN_FILENO, POLLIN, recorder_is_told, NULL, NULL};
    recorder.look = (struct timer){.due = recorder_look};
    loop_watch(recorder.loop, &recorder.input);
    recorder_look(NULL);
    (void)printf("%s\n", foreign_url(recorder.foreign));
    (void)fflush(stdout);
    (void)loop_run(recorder.loop);
    recorder_look(NULL);
    if (recorder.exporter)
        (void)exporter_close(recorder.exporter, &error);
    recorder_print();
    foreign_close(recorder.foreign);
    exporter_free(recorder.exporter);
    endpoint_table_free(recorder.endpoints);
    free(recorder.whole.log);
    loop_free(recorder.loop);
    return 0;
}
