/*
 * blkin rotate: its steps as a service.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "rotate.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "status.h"
#include "steps.h"
#include "tools/base/control.h"
#include "tools/base/metrics.h"
#include "tools/base/notify.h"
#include "tools/base/privileges.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"
#include "tools/base/watchdog.h"
#include "tools/config/reload.h"
#include "tools/reader/host_child.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: blkin rotate [OPTION]... [--KEY=VALUE]...\n"
    "\n"
    "The collector that loses nothing: LTTng records into a folder, closes a chunk\n"
    "of it every rotate-ms, and each chunk is converted and then deleted. It may be\n"
    "killed, stopped and upgraded: the session goes on recording, and what was not\n"
    "delivered is converted when it is started again.\n"
    "\n"
    "  --once         convert what is closed, then end; LTTng is left as it is\n"
    "  --end          end the session, convert all of it, send open spans, then end\n"
    "  --config=FILE  instead of $BLKIN_CONFIG and /etc/blkin/blkin.conf\n"
    "  --KEY=VALUE    a key of the configuration; here matter: endpoint, session,\n"
    "                 events, filter, output (STATE-DIR/rotate), rotate-ms (5000),\n"
    "                 rotate-bytes, max-disk-bytes, shm-path; all of them:\n"
    "                 blkin config keys\n"
    "  -h, --help     print this\n"
    "\n"
    "Exit status: 0 ended in order; 1 it failed, or --once or --end left something;\n"
    "2 wrong usage or configuration. While LTTng's session daemon does not answer,\n"
    "--once and --end end after 30 to 45 s with status 1.\n";

struct rotate {
    struct config *config;
    struct loop *loop;
    struct control *control;
    struct metrics *metrics;
    struct watchdog watchdog;
    struct host_child host;
    struct steps steps;
    bool has_failed;
};

static void end_service(void *context)
{
    struct rotate *rotate = context;

    notify("STOPPING=1");
    host_child_stop(&rotate->host);
    steps_stop(&rotate->steps);
}

/* The sink would refuse it for each chunk. */
static bool is_for_rotate(const struct config *config)
{
    if (!config_text(config, "tail-sampling"))
        return true;
    say(BK3001,
        "tail-sampling is not for blkin rotate, which cuts traces where it rotates: set it in "
        "[live], or for blkin work");
    return false;
}

static json_t *read_configuration(struct rotate *rotate)
{
    struct config *config;

    notify_reloading();
    config = config_read_again(rotate->config);
    if (config && !is_for_rotate(config)) {
        config_free(config);
        config = NULL;
    }
    if (config) {
        if (rotate->host.loop)
            host_child_reload(&rotate->host, config);
        config_free(rotate->config);
        rotate->config = config;
        steps_configure(&rotate->steps, config);
    }
    return reload_answer("blkin rotate", rotate->config, config ? NULL : reload_is_wrong);
}

static void reload(void *context)
{
    json_decref(read_configuration(context));
}

static struct rotate_status status_of(const struct rotate *rotate)
{
    const struct steps *steps = &rotate->steps;

    return (struct rotate_status){.store = &steps->store,
                                  .totals = &steps->totals,
                                  .dropped_ns = steps->room.dropped_ns,
                                  .report = &steps->keeper.last,
                                  .has_looked = steps->keeper.has_looked,
                                  .host = &rotate->host,
                                  .current = steps->totals.current,
                                  .counts = converter_counts(&steps->converter),
                                  .endpoint = config_text(rotate->config, "endpoint")};
}

static json_t *answer(void *context, const char *request)
{
    struct rotate *rotate = context;
    struct rotate_status status = status_of(rotate);

    if (strcmp(request, "status") == 0)
        return reload_status(status_json(&status), rotate->config);
    if (strcmp(request, "taps") == 0)
        return json_pack("[s]", rotate->steps.converter.tap);
    if (strcmp(request, "reload") == 0)
        return read_configuration(rotate);
    return NULL;
}

static char *page(void *context)
{
    struct rotate_status status = status_of(context);

    return status_page(&status);
}

/* "none": LTTng's own, which are gone when it dies. */
static void shm_of(const struct config *config, char path[4096])
{
    const char *given = config_text(config, "shm-path");

    (void)snprintf(path, 4096, "%s", strcmp(given, "none") == 0 ? "" : given);
}

static bool open_folders(struct rotate *rotate, struct error *error)
{
    struct steps *steps = &rotate->steps;
    struct converter *converter = &steps->converter;
    const char *state = config_text(rotate->config, "state-dir");
    char shm[4096];

    shm_of(rotate->config, shm);
    if (!store_open(&steps->store, config_text(rotate->config, "output"), shm, error) ||
        !folder_own(state, "state-dir", error))
        return false;
    (void)snprintf(converter->totals_file, sizeof(converter->totals_file), "%.4000s/rotate.json",
                   state);
    (void)snprintf(converter->reader.stats_file, sizeof(converter->reader.stats_file),
                   "%.4000s/rotate.stats", state);
    (void)snprintf(converter->checkpoint, sizeof(converter->checkpoint),
                   "%.4000s/rotate.checkpoint", state);
    (void)snprintf(converter->tap, sizeof(converter->tap), "%.100s/rotate.tap",
                   config_text(rotate->config, "runtime-dir"));
    if (!rotate_totals_load(&steps->totals, converter->totals_file))
        say(BK3002, "%s is damaged: the totals begin anew", converter->totals_file);
    return true;
}

static bool open_all(struct rotate *rotate, struct error *error)
{
    const char *listen = config_text(rotate->config, "prometheus-listen");

    /* first: who has the socket is the only one */
    rotate->control = control_open(rotate->loop, config_text(rotate->config, "runtime-dir"),
                                   "rotate", answer, rotate, error);
    if (!rotate->control || !open_folders(rotate, error))
        return false;
    if (listen) {
        rotate->metrics =
            metrics_open(rotate->loop, "prometheus-listen", listen, page, rotate, error);
        if (!rotate->metrics)
            return false;
        say(BK1012, "metrics for Prometheus: %s", metrics_url(rotate->metrics));
    }
    return true;
}

static void serve(struct rotate *rotate)
{
    if (!saver_open(rotate->loop)) {
        say(BK1010, "cannot start: %s", strerror(errno));
        rotate->has_failed = true;
        return;
    }
    if (rotate_fsync_is_batch(rotate->config))
        say(BK3003,
            "spool-fsync=second is batch here: the checkpoint must not say more than is on disk");
    watchdog_start(&rotate->watchdog, rotate->loop);
    if (rotate->steps.work == SERVE)
        host_child_start(&rotate->host, rotate->loop, rotate->config);
    steps_begin(&rotate->steps);
    if (!loop_run(rotate->loop)) {
        say(BK1011, "cannot wait: %s", strerror(errno));
        rotate->has_failed = true;
    }
    if (!saver_end())
        rotate->has_failed = true;
}

static void close_all(struct rotate *rotate)
{
    host_child_close(&rotate->host);
    metrics_close(rotate->metrics);
    if (rotate->control)
        control_close(rotate->control);
    store_close(&rotate->steps.store);
}

static int run(struct rotate *rotate)
{
    const struct loop_signals signals = {end_service, reload, rotate};
    struct error error;

    rotate->loop = rotate->steps.loop = loop_new(&signals);
    if (!rotate->loop) {
        say(BK1010, "cannot start: %s", strerror(errno));
        return 1;
    }
    if (open_all(rotate, &error)) {
        serve(rotate);
        if (say_level() != BT_LOGGING_LEVEL_NONE)
            status_print(&rotate->steps.totals);
    } else {
        say(BK1010, "%s", error.text);
        rotate->has_failed = true;
    }
    close_all(rotate);
    loop_free(rotate->loop);
    return rotate->has_failed || rotate->steps.has_failed || rotate->steps.ending.has_failed;
}

int rotate_command(int argc, char *argv[])
{
    bool once = false, end = false;
    const struct config_flag flags[] = {
        {"once", &once, NULL}, {"end", &end, NULL}, {NULL, NULL, NULL}};
    const struct config_request request = {"rotate", usage, flags};
    struct rotate service = {.config = NULL};
    int status;

    service.config = config_read(&request, argc, argv, &status);
    if (!service.config)
        return status;
    if (config_operands(service.config) > 0 || (once && end)) {
        fprintf(stderr, "%s: %s\n%s", argv[0],
                once && end ? "--once and --end are two things" : "expected no operand", usage);
        config_free(service.config);
        return 2;
    }
    say_open(argv[0], config_text(service.config, "log-level"));
    if (!is_for_rotate(service.config) ||
        !privileges_become_owner(config_text(service.config, "state-dir"),
                                 config_text(service.config, "runtime-dir"))) {
        config_free(service.config);
        return 2;
    }
    service.steps.work = end ? END : once ? ONCE : SERVE;
    service.steps.config = service.config;
    status = run(&service);
    config_free(service.config);
    return status;
}
