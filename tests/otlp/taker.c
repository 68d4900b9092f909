/*
 * A program with the agent's intake of the spans of SDKs. It requests the traces of alarms until no
 * more of their spans are expected, and sends their spans.
 *
 *     taker KEY=VALUE...
 *
 * Keys: listen, socket, endpoint, format, store-bytes, rate (spans/s), and linger-ms (6000). When
 * the program is ready, it prints a line with the URL. Lines of the standard input: "status" prints
 * the status; "copy FROM UNTIL" sends the spans that were open in that time, in ns; "rate
 * SPANS-PER-S" is a reload. SIGTERM ends the program, and prints the status.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/deliver/exporter.h"
#include "babeltrace-plugin/params.h"
#include "tools/otlp/otlp_in.h"

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
    struct sdk_wanted wanted;
    int64_t until_ms;
};

struct taker {
    struct loop *loop;
    struct otlp_in *otlp;
    struct exporter *exporter; /* NULL: given spans are only counted */
    struct endpoint_table *endpoints;
    struct span whole;
    struct watched input;
    struct timer look;
    int64_t linger_ms;
    struct wanted_trace wanted[WANTED_MAX];
    size_t wanted_count;
    uint64_t alarms, dropped, traces, overwritten, given, unreadable;
    uint64_t copied; /* by the last copy */
};

static struct taker taker;
static struct otlp_in_options options = {.store_bytes = 64 << 20};
static struct params params;
static const char *linger = "6000";

/* ---- traces ---------------------------------------------------------------------------------- */

static void taker_give(void *context, const struct otlp_origin *origin,
                       const struct otlp_span *span)
{
    (void)context;
    taker.given++;
    if (!taker.exporter)
        return;
    if (otlp_decode_span(origin, span, taker.endpoints, &taker.whole))
        exporter_add(taker.exporter, &taker.whole);
    else
        taker.unreadable++;
}

static void taker_alarm(void *context, const struct otlp_alarm *alarm)
{
    (void)context;
    taker.dropped += alarm->dropped;
    if (!alarm->trace_id && !alarm->trace_id_high)
        return;
    taker.alarms++;
    for (size_t i = 0; i < taker.wanted_count; i++) {
        if (taker.wanted[i].wanted.trace_id == alarm->trace_id &&
            taker.wanted[i].wanted.trace_id_high == alarm->trace_id_high)
            return;
    }
    if (taker.wanted_count == WANTED_MAX)
        return;
    taker.wanted[taker.wanted_count++] = (struct wanted_trace){
        .wanted = {.trace_id_high = alarm->trace_id_high, .trace_id = alarm->trace_id},
        .until_ms = clock_ms() + taker.linger_ms};
    taker.traces++;
}

static void taker_look(void *context)
{
    const int64_t now_ms = clock_ms();
    size_t kept = 0;

    (void)context;
    timer_set(taker.loop, &taker.look, LOOK_MS);
    for (size_t i = 0; i < taker.wanted_count; i++) {
        struct wanted_trace *trace = &taker.wanted[i];

        sdk_memory_take(otlp_in_memory(taker.otlp), &trace->wanted, taker_give, NULL);
        if (now_ms < trace->until_ms)
            taker.wanted[kept++] = *trace;
        else
            taker.overwritten += trace->wanted.ended_ns > 0;
    }
    taker.wanted_count = kept;
    if (taker.exporter)
        (void)exporter_heed_interruption(taker.exporter);
}

/* ---- commands -------------------------------------------------------------------------------- */

static void taker_print(void)
{
    const struct exporter_counts sent =
        taker.exporter ? exporter_counts(taker.exporter) : (struct exporter_counts){0};
    json_t *status =
        json_pack("{so, sI, sI, sI, sI, sI, sI, sI, sI, sI}", "otlp", otlp_in_json(taker.otlp),
                  "alarms", (json_int_t)taker.alarms, "dropped", (json_int_t)taker.dropped,
                  "traces", (json_int_t)taker.traces, "open", (json_int_t)taker.wanted_count,
                  "overwritten", (json_int_t)taker.overwritten, "given", (json_int_t)taker.given,
                  "copied", (json_int_t)taker.copied, "unreadable", (json_int_t)taker.unreadable,
                  "accepted", (json_int_t)sent.outcome[OUTCOME_ACCEPTED]);

    (void)json_dumpf(status, stdout, JSON_COMPACT);
    (void)puts("");
    (void)fflush(stdout);
    json_decref(status);
}

static void taker_is_told(void *context)
{
    char text[128];
    const ssize_t length = read(taker.input.fd, text, sizeof(text) - 1);
    const uint64_t before = taker.given;
    int64_t from_ns, until_ns;

    (void)context;
    if (length <= 0) {
        loop_unwatch(taker.loop, &taker.input);
        return;
    }
    text[length] = '\0';
    if (sscanf(text, "copy %" SCNd64 " %" SCNd64, &from_ns, &until_ns) == 2)
        sdk_memory_copy(otlp_in_memory(taker.otlp), from_ns, until_ns, taker_give, NULL);
    taker.copied = taker.given - before;
    if (sscanf(text, "rate %" SCNu64, &options.spans_per_s) == 1)
        otlp_in_limit(taker.otlp, options.spans_per_s);
    taker_print();
}

static void taker_end(void *context)
{
    (void)context;
    loop_stop(taker.loop);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static bool taker_set_own(const char *key, const char *value)
{
    const struct {
        const char *key;
        const char **text;
        uint64_t *number;
    } keys[] = {
        {"listen", &options.listen, NULL},    {"socket", &options.socket, NULL},
        {"linger-ms", &linger, NULL},         {"store-bytes", NULL, &options.store_bytes},
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

/* Sets a parameter of the sink: endpoint, format and so on. */
static bool taker_set_param(const char *key, const char *text)
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

static void taker_report(void *context, const char *message)
{
    (void)context;
    (void)fprintf(stderr, "taker: %s\n", message);
}

static bool taker_is_interrupted(void *context)
{
    (void)context;
    return false;
}

static bool taker_read(int argc, char *argv[])
{
    params_begin(&params);
    for (int i = 1; i < argc; i++) {
        char *value = strchr(argv[i], '=');

        if (value)
            *value++ = '\0';
        if (!value || !(taker_set_own(argv[i], value) || taker_set_param(argv[i], value))) {
            (void)fprintf(stderr, "taker: what is %s?\n", argv[i]);
            return false;
        }
    }
    params_end(&params);
    taker.linger_ms = atoll(linger);
    return true;
}

static bool taker_open(struct error *error)
{
    const struct loop_signals signals = {.end = taker_end};
    const struct otlp_in_callbacks callbacks = {.alarm = taker_alarm};
    const struct exporter_callbacks reports = {.interrupted = taker_is_interrupted,
                                               .report = taker_report};

    taker.loop = loop_new(&signals);
    taker.endpoints = endpoint_table_new();
    error_set(error, "out of memory");
    if (!taker.loop || !taker.endpoints)
        return false;
    if (params.exporter.transport.endpoint) {
        taker.exporter = exporter_new(&params.exporter, &reports, error);
        if (!taker.exporter)
            return false;
        exporter_set_live(taker.exporter);
    }
    taker.otlp = otlp_in_open(taker.loop, &options, &callbacks, error);
    return taker.otlp != NULL;
}

int main(int argc, char *argv[])
{
    struct error error = {""};
    json_t *status;

    if (!taker_read(argc, argv))
        return 2;
    if (!taker_open(&error)) {
        (void)fprintf(stderr, "taker: %s\n", error.text);
        return 1;
    }
    taker.input = (struct watched){STDIN_FILENO, POLLIN, taker_is_told, NULL, NULL, 0};
    taker.look = (struct timer){.due = taker_look};
    loop_watch(taker.loop, &taker.input);
    taker_look(NULL);
    status = otlp_in_json(taker.otlp);
    (void)printf("%s\n", json_string_value(json_object_get(status, "url")));
    json_decref(status);
    (void)fflush(stdout);
    (void)loop_run(taker.loop);
    taker_look(NULL);
    if (taker.exporter)
        (void)exporter_close(taker.exporter, &error);
    taker_print();
    otlp_in_close(taker.otlp);
    exporter_free(taker.exporter);
    endpoint_table_free(taker.endpoints);
    free(taker.whole.log);
    loop_free(taker.loop);
    return 0;
}
