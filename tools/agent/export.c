/* SPDX-License-Identifier: BSD-2-Clause */
#include "export.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/spans/span.h"
#include "tools/base/json.h"
#include "tools/base/loop.h"
#include "tools/base/notify.h"
#include "tools/base/totals.h"
#include "tools/base/say.h"
#include "tools/otlp/otlp_decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define EXPORT_LOOK_MS   500 /* interval of the check for settled spans */
#define EXPORT_IDLE_MS   10000
#define EXPORT_PIPELINES 2 /* one for send = all, one for a scan */
#define EXPORT_FILE_ROOM 4096
#define EXPORT_FILES_MAX 10000 /* the most names that are tried */

struct export
{
    struct loop *loop;
    const struct config *config;
    char spool[4096];            /* the folder; "": none */
    char file[EXPORT_FILE_ROOM]; /* the endpoint in use, if it is a file; "": it is not */
    const char *format;          /* of the file */
    struct export_calls calls;
    struct pipeline_shared shared;
    struct pipeline *open[EXPORT_PIPELINES];
    struct counts ended;   /* of pipelines that have ended, without the exporter's part */
    struct counts before;  /* of exporters that were replaced */
    uint64_t given_before; /* the number of spans of replaced exporters, which are all settled */
    uint64_t settled;      /* export_settled() at the last look */
    int64_t idle_ms;       /* the next call of settled() while no span waits */
    struct timer look;
    bool is_ending, has_failed; /* the exporter has failed */
    bool has_lost;              /* a replaced exporter has failed */
};

/* ---- callbacks of the exporter and of pipelines ---------------------------------------------- */

static bool export_is_interrupted(void *context)
{
    const struct export *export = context;

    if (export->is_ending) /* the loop waits meanwhile, for flush-timeout-ms at most */
        notify("WATCHDOG=1");
    return export->is_ending;
}

static void export_say(void *context, bt_logging_level level, const char *message)
{
    (void)context;
    if (level >= BT_LOGGING_LEVEL_ERROR)
        say(BK4075, "%s", message);
    else if (level >= BT_LOGGING_LEVEL_WARNING)
        say(BK4074, "%s", message);
    else
        say(BK4073, "%s", message);
}

static void export_report(void *context, const char *message)
{
    export_say(context, BT_LOGGING_LEVEL_WARNING, message);
}

static void export_fail(struct export *export, const struct error *error)
{
    if (!export->has_failed)
        say(BK4071, "%s", error->text);
    export->has_failed = true;
}

static void export_no_summary(void *context, const struct counts *counts)
{
    (void)context;
    (void)counts;
}

/* ---- the file of an endpoint file:PATH ------------------------------------------------------- */

/*
 * The agent overwrites nothing. If its last run ended normally, the file of that run is complete,
 * and the agent continues it. If not, the agent takes the first of PATH, PATH.2, PATH.3 ... that is
 * new or empty.
 */
static const char export_file_scheme[] = "file:";

static bool export_file_is(const char *endpoint)
{
    return strncasecmp(endpoint, export_file_scheme, strlen(export_file_scheme)) == 0;
}

static bool export_file_has_content(const char *endpoint)
{
    struct stat status;

    return stat(endpoint + strlen(export_file_scheme), &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_size > 0;
}

/* Copies the endpoint with the chosen name. last: the file of the last run; NULL: none.
 * Returns true if the file has spans of the last run. Without a free name, copies the endpoint
 * unchanged. */
static bool export_file_choose(const char *endpoint, const char *format, const json_t *last,
                               char chosen[EXPORT_FILE_ROOM])
{
    const bool is_of_format = strcmp(text_in(last, "format"), format) == 0;

    (void)snprintf(chosen, EXPORT_FILE_ROOM, "%s", endpoint);
    for (unsigned n = 2; n <= EXPORT_FILES_MAX; n++) {
        if (!export_file_has_content(chosen))
            return false;
        if (is_of_format && strcmp(text_in(last, "endpoint"), chosen) == 0)
            return true;
        (void)snprintf(chosen, EXPORT_FILE_ROOM, "%.4000s.%u", endpoint, n);
    }
    (void)snprintf(chosen, EXPORT_FILE_ROOM, "%s", endpoint);
    return false;
}

/* ---- the exporter ---------------------------------------------------------------------------- */

/* Sets a spool in state-dir, unless the key spool is set or the endpoint is a file. */
static void export_set_spool(const struct config *config, struct params *params, char path[4096])
{
    const char *endpoint = exporter_endpoint(&params->exporter);

    if (strcmp(config_origin(config, "spool"), "default") != 0 || export_file_is(endpoint))
        return;
    (void)snprintf(path, 4096, "%.4000s/spool", config_text(config, "state-dir"));
    params->exporter.spool.folder = path;
}

static bool export_params(const struct config *config, struct params *params, struct error *error)
{
    if (!config_sink_params(config, params, error) || !params_fit(params, error))
        return false;
    params->prometheus_listen = NULL; /* the agent's page has the sink's counters */
    params->stats_file = NULL;        /* `blkin status` has the statistics */
    params->rules = NULL;             /* the rings have no events of other programs */
    return true;
}

/* Returns true if the replaced exporter had the same endpoint. */
static bool export_has_endpoint(const struct export *export, const struct exporter_options *options)
{
    struct params before;
    struct error ignored;

    return export->config && export_params(export->config, &before, &ignored) &&
           strcmp(exporter_endpoint(options), exporter_endpoint(&before.exporter)) == 0 &&
           exporter_protocol(options) == exporter_protocol(&before.exporter);
}

/* Sets the file of an endpoint file:PATH. last: the file of the last run. */
static void export_set_file(const struct export *export, struct exporter_options *options,
                            const json_t *last, char file[EXPORT_FILE_ROOM])
{
    const struct protocol *protocol = exporter_protocol(options);

    /* the name may have told the format, and the chosen file may have another name */
    options->format = protocol->format;
    if (export_has_endpoint(export, options)) {
        (void)snprintf(file, EXPORT_FILE_ROOM, "%s", export->file);
        options->transport.continues = true; /* the replaced exporter has written the file */
    } else if (export->config) {
        (void)snprintf(file, EXPORT_FILE_ROOM, "%s", exporter_endpoint(options));
    } else {
        options->transport.continues =
            export_file_choose(exporter_endpoint(options), protocol->name, last, file);
    }
    options->transport.endpoint = file;
}

static void export_say_file(const struct export *export, const char *configured)
{
    if (strcmp(export->file, configured) != 0)
        say(BK4077,
            "%s has spans of a run that did not end normally, or of another program: spans go to "
            "%s",
            configured, export->file);
}

static struct exporter *export_new_exporter(struct export *export, struct params *params,
                                            const json_t *last, struct error *error)
{
    const struct exporter_callbacks callbacks = {export_is_interrupted, export_report, export,
                                                 NULL};
    const char *configured = exporter_endpoint(&params->exporter);
    char file[EXPORT_FILE_ROOM] = "";
    struct exporter *exporter;

    if (export_file_is(configured))
        export_set_file(export, &params->exporter, last, file);
    exporter = exporter_new(&params->exporter, &callbacks, error);
    if (!exporter && params->exporter.transport.continues && !export->config) {
        /* somebody has changed the file */
        params->exporter.transport.continues = export_file_choose(configured, "", NULL, file);
        exporter = exporter_new(&params->exporter, &callbacks, error);
    }
    if (!exporter)
        return NULL;
    (void)snprintf(export->file, sizeof(export->file), "%s", file);
    export->format = exporter_protocol(&params->exporter)->name;
    if (file[0] && !export->config)
        export_say_file(export, configured);
    return exporter;
}

/* last: the file of the last run. */
static bool export_open_exporter(struct export *export, const struct config *config,
                                 const json_t *last, struct error *error)
{
    struct params params;
    char spool[4096];

    if (!export_params(config, &params, error))
        return false;
    export_set_spool(config, &params, spool);
    /* by default, the agent also starts while the collector is down */
    if (strcmp(config_origin(config, "require-collector"), "default") == 0)
        params.exporter.require_collector = false;
    export->shared.exporter = export_new_exporter(export, &params, last, error);
    if (!export->shared.exporter)
        return false;
    (void)snprintf(export->spool, sizeof(export->spool), "%s",
                   params.exporter.spool.folder ? params.exporter.spool.folder : "");
    exporter_set_live(export->shared.exporter);
    export->config = config;
    export->has_lost |= export->has_failed;
    export->has_failed = false;
    export->settled = export->given_before;
    return true;
}

/* Closes the exporter. Then all its spans are settled. */
static void export_close_exporter(struct export *export)
{
    struct exporter *exporter = export->shared.exporter;
    struct counts counts = {.output = {.spans = 0}};
    struct error error;

    export->is_ending = true;
    if (!exporter_close(exporter, &error) || !exporter_is_stored(exporter, &error))
        export_fail(export, &error);
    export->is_ending = false;
    counts.output = exporter_counts(exporter);
    export->given_before += counts.output.spans;
    counts_hand_over(&counts);
    counts_follow(&export->before, &counts);
    exporter_free(exporter);
    export->shared.exporter = NULL;
}

/* ---- pipelines ------------------------------------------------------------------------------- */

bool export_open_pipeline(struct export *export, struct pipeline *pipeline, struct error *error)
{
    struct params params;

    pipeline->calls =
        (struct pipeline_calls){export_is_interrupted, export_say, export_no_summary, export};
    pipeline->shared = &export->shared;
    if (!export->shared.exporter)
        return error_set(error, "the exporter has failed");
    if (!export_params(export->config, &params, error) || !pipeline_open(pipeline, &params, error))
        return false;
    pipeline_set_live(pipeline);
    export->open[export->open[0] ? 1 : 0] = pipeline;
    return true;
}

static void export_add_counts(struct counts *sum, struct counts part)
{
    const int64_t time_ns = sum->input.trace_time_ns;

    part.output = (struct exporter_counts){.spans = 0};
    counts_add(sum, &part); /* without what no counter shows: counts_add_stages() needs these */
    sum->input.spans += part.input.spans;
    sum->input.spans_skipped += part.input.spans_skipped;
    sum->input.spans_sampled_out += part.input.spans_sampled_out;
    sum->input.trace_time_ns =
        part.input.trace_time_ns > time_ns ? part.input.trace_time_ns : time_ns;
}

void export_close_pipeline(struct export *export, struct pipeline *pipeline)
{
    for (unsigned i = 0; i < EXPORT_PIPELINES; i++) {
        if (export->open[i] != pipeline)
            continue;
        pipeline_end(pipeline);
        export_add_counts(&export->ended, pipeline_counts(pipeline));
        export->open[i] = NULL;
    }
    pipeline_close(pipeline);
}

void export_take_sdk_span(struct pipeline *pipeline, struct span *whole,
                          const struct otlp_origin *origin, const struct otlp_span *span)
{
    if (!otlp_decode_span(origin, span, assembler_endpoints(pipeline->assembler), whole)) {
        pipeline->intake.counts.events++;
        pipeline->intake.counts.unreadable++;
        return;
    }
    whole->recorded_ns = span->end_ns;
    chain_take(&pipeline->chain, whole, assembler_now(pipeline->assembler));
}

void export_add_own(struct export *export, struct span *span)
{
    span->endpoint = endpoint_get(export->shared.endpoints, text_of("blkin-agent"), text_of(""), 0);
    if (!span->endpoint || !export->shared.exporter)
        return;
    export->ended.input.spans++;
    exporter_add(export->shared.exporter, span);
}

/* ---- settled spans --------------------------------------------------------------------------- */

uint64_t export_given(struct export *export)
{
    return export->given_before +
           (export->shared.exporter ? exporter_counts(export->shared.exporter).spans : 0);
}

uint64_t export_settled(struct export *export)
{
    return export->given_before +
           (export->shared.exporter ? exporter_settled(export->shared.exporter) : 0);
}

const char *export_spool(const struct export *export)
{
    return export->spool;
}

const char *export_file(const struct export *export)
{
    return export->file;
}

void export_note_pause(struct export *export, int64_t pause_ms)
{
    if (export->shared.exporter)
        exporter_note_pause(export->shared.exporter, pause_ms);
}

bool export_check(struct export *export)
{
    struct error error;

    if (export->has_failed)
        return false;
    if (!exporter_has_failed(export->shared.exporter, &error))
        return true;
    export_fail(export, &error);
    export->calls.failed(export->calls.context);
    return false;
}

static void export_look(void *context)
{
    struct export *export = context;
    const uint64_t settled = export_settled(export);

    (void)export_check(export);
    if (settled > export->settled ||
        (settled == export_given(export) && clock_ms() >= export->idle_ms)) {
        export->calls.settled(export->calls.context);
        export->idle_ms = clock_ms() + EXPORT_IDLE_MS;
    }
    export->settled = settled;
    timer_set(export->loop, &export->look, EXPORT_LOOK_MS);
}

/* ---- counts and statistics ------------------------------------------------------------------- */

void export_add_account(struct export *export, struct counts *totals, bool is_handed_over)
{
    struct counts now = {.output = {.spans = 0}}, sum = export->before;

    if (export->shared.exporter)
        now.output = exporter_counts(export->shared.exporter);
    counts_follow(&sum, &now);
    export_add_counts(&sum, export->ended);
    for (unsigned i = 0; i < EXPORT_PIPELINES; i++) {
        if (export->open[i])
            export_add_counts(&sum, pipeline_counts(export->open[i]));
    }
    counts_add_stages(&sum);
    if (is_handed_over)
        counts_hand_over(&sum);
    counts_follow(totals, &sum);
}

json_t *export_statistics(struct export *export)
{
    char *text = pipeline_statistics(&export->shared.statistics);
    json_t *document = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;

    free(text);
    return document;
}

/* ---- opening and closing --------------------------------------------------------------------- */

struct export *export_open(struct loop *loop, const struct config *config, const json_t *last,
                           const struct export_calls *calls, struct error *error)
{
    struct export *export = calloc(1, sizeof(*export));

    error_set(error, "out of memory");
    if (!export)
        return NULL;
    *export = (struct export){.loop = loop, .calls = *calls};
    export->shared.endpoints = endpoint_table_new();
    if (export->shared.endpoints && export_open_exporter(export, config, last, error)) {
        export->look = (struct timer){.due = export_look, .context = export};
        timer_set(loop, &export->look, EXPORT_LOOK_MS);
        return export;
    }
    endpoint_table_free(export->shared.endpoints);
    free(export);
    return NULL;
}

bool export_is_same(const struct export *export, const struct config *config)
{
    json_t *now = config_sink_json(export->config), *then = config_sink_json(config);
    const bool is_same = export->shared.exporter && now && then && json_equal(now, then);

    json_decref(now);
    json_decref(then);
    return is_same;
}

bool export_change(struct export *export, const struct config *config, struct error *error)
{
    const struct config *before = export->config;
    struct error ignored;

    if (export_is_same(export, config)) {
        export->config = config;
        return true;
    }
    if (export->shared.exporter)
        export_close_exporter(export);
    if (export_open_exporter(export, config, NULL, error))
        return true;
    if (!export_open_exporter(export, before, NULL, &ignored)) {
        export_fail(export, &ignored);
        export->calls.failed(export->calls.context);
    }
    return false;
}

bool export_close(struct export *export, struct counts *totals, json_t **file)
{
    bool is_delivered;

    timer_clear(export->loop, &export->look);
    if (export->shared.exporter)
        export_close_exporter(export);
    export_add_account(export, totals, true);
    is_delivered = !export->has_failed && !export->has_lost;
    *file = is_delivered && export->file[0]
                ? json_pack("{ss, ss}", "endpoint", export->file, "format", export->format)
                : NULL;
    pipeline_free_statistics(&export->shared.statistics);
    endpoint_table_free(export->shared.endpoints);
    free(export);
    return is_delivered;
}
