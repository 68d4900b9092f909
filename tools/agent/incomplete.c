/*
 * The span that tells of an incomplete trace.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "incomplete.h"

#include "babeltrace-plugin/base/backoff.h"
#include "babeltrace-plugin/deliver/exporter.h"
#include "babeltrace-plugin/params.h"
#include "babeltrace-plugin/spans/endpoint.h"
#include "babeltrace-plugin/spans/span.h"
#include "tools/base/privileges.h"
#include "tools/base/say.h"
#include "tools/config/sink_params.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define SPANS_MAX      4096
#define FIRST_RETRY_MS 500
#define LAST_RETRY_MS  32000

struct incomplete_span {
    struct trace_id id;
    uint64_t span_id, parent;
    int64_t time_ns;
    char why[WHY_MAX + 1];
    char lacks[1024], hosts[1024], held[1024];
    struct incomplete_span *next;
};

struct incomplete {
    const struct agent *agent;
    void (*told)(void *context, struct trace_id id);
    void *context;
    struct incomplete_span *waiting, *sent;
    size_t count;
    struct child child;
    struct output_lines lines;
    struct timer retry;
    unsigned failures;
    bool is_stopping;
};

/* ---- in the child ---------------------------------------------------------------------------- */

static bool interrupted;

static void incomplete_on_end(int number)
{
    (void)number;
    interrupted = true;
}

static bool incomplete_is_interrupted(void *context)
{
    (void)context;
    return interrupted;
}

static void incomplete_report(void *context, const char *message)
{
    (void)context;
    say(BK4046, "%s", message);
}

static void incomplete_add_tag(struct span *span, const char *key, const char *value)
{
    if (value[0])
        (void)span_add(span, SPAN_TAG_TEXT, text_of(key), text_of(value), 0);
}

static void incomplete_add_span(struct exporter *exporter, const struct endpoint *endpoint,
                                const struct incomplete_span *of)
{
    struct span span = {.trace_id_high = of->id.high,
                        .trace_id = of->id.low,
                        .id = of->span_id,
                        .parent_id = of->parent,
                        .endpoint = endpoint,
                        .kind = SPAN_LOCAL,
                        .start_ns = of->time_ns,
                        .end_ns = of->time_ns};

    (void)span_set_name(&span, text_of("incomplete"));
    incomplete_add_tag(&span, "blkin.kept", of->why);
    incomplete_add_tag(&span, "blkin.incomplete", of->lacks);
    incomplete_add_tag(&span, "blkin.hosts", of->hosts);
    incomplete_add_tag(&span, "blkin.held_from", of->held);
    exporter_add(exporter, &span);
    free(span.log);
}

/* No tap: it is the reader's. */
static bool incomplete_send_all(const struct incomplete_span *spans, size_t count,
                                struct params *params, struct error *error)
{
    const struct exporter_callbacks callbacks = {incomplete_is_interrupted, incomplete_report, NULL,
                                                 NULL};
    struct endpoint_table *endpoints = endpoint_table_new();
    const struct endpoint *endpoint =
        endpoints ? endpoint_get(endpoints, text_of("blkin-agent"), text_of(""), 0) : NULL;
    struct exporter *exporter;
    struct exporter_counts counts;
    bool is_well;

    params->exporter.require_collector = false;
    params->exporter.on_full = ON_FULL_BLOCK;
    params->exporter.tap = NULL;
    params->exporter.spool.folder = NULL;
    exporter = endpoint ? exporter_new(&params->exporter, &callbacks, error) : NULL;
    if (!exporter) {
        endpoint_table_free(endpoints);
        return false;
    }
    for (size_t i = 0; i < count; i++)
        incomplete_add_span(exporter, endpoint, &spans[i]);
    is_well = exporter_close(exporter, error);
    counts = exporter_counts(exporter);
    exporter_free(exporter);
    endpoint_table_free(endpoints);
    if (!is_well || !counts.outcome[OUTCOME_UNDELIVERED])
        return is_well;
    return error_set(error, "spans that tell of incomplete traces were not delivered");
}

/* The order: the spans, then the sink's parameters as JSON. */
struct incomplete_order {
    size_t count;
    struct incomplete_span spans[];
};

static int incomplete_run(const void *bytes, size_t size)
{
    const struct incomplete_order *order = bytes;
    const char *text = (const char *)&order->spans[order->count];
    json_t *values = json_loadb(text, size - (size_t)(text - (const char *)bytes), 0, NULL);
    struct params params;
    struct error error = {.text = "out of memory"};
    bool is_well;

    privileges_give_up();
    (void)signal(SIGTERM, incomplete_on_end);
    job_unblock_end();
    is_well = values && config_params_of(values, &params, &error) &&
              incomplete_send_all(order->spans, order->count, &params, &error);
    if (!is_well)
        say(BK4045, "%s", error.text);
    json_decref(values);
    return is_well ? 0 : 1;
}

const struct job incomplete_job = {
    .name = "agent-incomplete", .run = incomplete_run, .ends_in_order = true};

/* NULL: out of memory. */
static char *incomplete_order(const struct incomplete *incomplete, size_t *size)
{
    json_t *params = config_sink_json(incomplete->agent->config);
    char *text = params ? json_dumps(params, JSON_COMPACT) : NULL, *bytes = NULL;
    struct incomplete_order head = {.count = 0};
    FILE *file = text ? open_memstream(&bytes, size) : NULL;

    json_decref(params);
    for (const struct incomplete_span *span = incomplete->sent; span; span = span->next)
        head.count++;
    if (file) {
        (void)fwrite(&head, sizeof(head), 1, file);
        for (const struct incomplete_span *span = incomplete->sent; span; span = span->next)
            (void)fwrite(span, sizeof(*span), 1, file);
        (void)fputs(text, file);
        if (ferror(file) | fclose(file)) {
            free(bytes);
            bytes = NULL;
        }
    }
    free(text);
    return bytes;
}

/* ---- in the agent ---------------------------------------------------------------------------- */

static void incomplete_start(struct incomplete *incomplete);

static void incomplete_free_list(struct incomplete_span *list)
{
    while (list) {
        struct incomplete_span *next = list->next;

        free(list);
        list = next;
    }
}

static void incomplete_ended(void *context, int status)
{
    struct incomplete *incomplete = context;
    struct incomplete_span *sent = incomplete->sent, **end = &incomplete->sent;

    output_lines_close(&incomplete->lines);
    if (status == 0) {
        incomplete->failures = 0;
        incomplete->sent = NULL;
        for (const struct incomplete_span *span = sent; span; span = span->next) {
            incomplete->count--;
            incomplete->told(incomplete->context, span->id);
        }
        incomplete_free_list(sent);
    } else { /* once more, together with those that have come */
        while (*end)
            end = &(*end)->next;
        *end = incomplete->waiting;
        incomplete->waiting = incomplete->sent;
        incomplete->sent = NULL;
        incomplete->failures++;
    }
    incomplete_start(incomplete);
}

static void incomplete_retry(void *context)
{
    struct incomplete *incomplete = context;
    struct child_order order = {.job = &incomplete_job, .lines = &incomplete->lines};
    char *bytes;
    bool has_started;

    incomplete->sent = incomplete->waiting;
    incomplete->waiting = NULL;
    incomplete->child = (struct child){.ended = incomplete_ended, .context = incomplete};
    bytes = incomplete_order(incomplete, &order.size);
    order.bytes = bytes;
    has_started = bytes && child_start(incomplete->agent->loop, &incomplete->child, &order);
    free(bytes);
    if (!has_started) {
        say(BK4044, "cannot start a child: %s", strerror(errno));
        incomplete_ended(incomplete, 1);
    }
}

static void incomplete_start(struct incomplete *incomplete)
{
    const unsigned failures = incomplete->failures;

    if (incomplete->sent || !incomplete->waiting || incomplete->is_stopping)
        return;
    timer_set(incomplete->agent->loop, &incomplete->retry,
              failures ? backoff_ms(failures, FIRST_RETRY_MS, LAST_RETRY_MS) : 0);
}

struct incomplete *incomplete_new(const struct agent *agent,
                                  void (*told)(void *context, struct trace_id id), void *context)
{
    struct incomplete *incomplete = calloc(1, sizeof(*incomplete));

    if (!incomplete)
        return NULL;
    *incomplete = (struct incomplete){.agent = agent, .told = told, .context = context};
    incomplete->lines.input.fd = -1;
    (void)snprintf(incomplete->lines.source, sizeof(incomplete->lines.source), "incomplete");
    incomplete->retry = (struct timer){.due = incomplete_retry, .context = incomplete};
    return incomplete;
}

void incomplete_free(struct incomplete *incomplete)
{
    if (!incomplete)
        return;
    incomplete_free_list(incomplete->waiting);
    incomplete_free_list(incomplete->sent);
    free(incomplete);
}

bool incomplete_add(struct incomplete *incomplete, const struct verdict *verdict)
{
    struct incomplete_span *span = incomplete->count < SPANS_MAX ? calloc(1, sizeof(*span)) : NULL;

    if (!span)
        return false;
    span->id = verdict->id;
    span->parent = verdict->missing ? verdict->parent : 0;
    span->time_ns = verdict->time_ns; /* not now: the trace would seem to last until now */
    if (getrandom(&span->span_id, sizeof(span->span_id), 0) != sizeof(span->span_id) ||
        span->span_id == 0)
        span->span_id = (uint64_t)span->time_ns;
    (void)snprintf(span->why, sizeof(span->why), "%s", verdict->why);
    (void)snprintf(span->lacks, sizeof(span->lacks), "%s", verdict->lacks);
    (void)snprintf(span->hosts, sizeof(span->hosts), "%s", verdict->hosts);
    (void)snprintf(span->held, sizeof(span->held), "%s", verdict->held);
    span->next = incomplete->waiting;
    incomplete->waiting = span;
    incomplete->count++;
    if (!incomplete->sent && incomplete->failures == 0)
        incomplete_start(incomplete);
    return true;
}

size_t incomplete_count(const struct incomplete *incomplete)
{
    return incomplete->count;
}

bool incomplete_is_running(const struct incomplete *incomplete)
{
    return incomplete->child.pid != 0;
}

void incomplete_stop(struct incomplete *incomplete)
{
    incomplete->is_stopping = true;
    timer_clear(incomplete->agent->loop, &incomplete->retry);
    if (incomplete->child.pid)
        (void)kill(incomplete->child.pid, SIGTERM);
}
