/*
 * blkin work --root: its parts put together in one loop.
 *
 * It reads the deltas of all workers from their topic, in no group: several roots may run, each has
 * all. Numbers are shown only when all has been read that there is: what was shown before a restart
 * is never more than what is shown after it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "command.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "thread_job.h"
#include "push.h"
#include "root_deltas.h"
#include "root_show.h"
#include "root_state.h"
#include "tools/base/control.h"
#include "tools/base/folders.h"
#include "tools/base/metrics.h"
#include "tools/base/notify.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"
#include "tools/base/watchdog.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
#include "tools/work/root.txt.inc"
    ;

#define LOOK_MS       2000 /* for partitions, as long as there are none */
#define LOOK_LATER_MS 30000
#define LOOK_LIMIT_MS 1000 /* so long the brokers may take to answer */
#define SAVE_MS       1000
#define SAVE_SHARE    20    /* of the time, one part of so many at most is for saving */
#define SAVE_MAX_MS   60000 /* also when the disk has hung for long */

struct root {
    const struct config *config;
    struct loop *loop;
    struct control *control;
    struct metrics *metrics;
    struct root_deltas deltas;
    struct push *push; /* NULL: to no collector */
    char state_path[4100];
    bool is_ready; /* all has been read that there was at the start */
    bool has_failed;
    bool is_unsaved; /* it was said that the state cannot be saved */
    struct saver_wait saved;
    int64_t save_began_ms;
    char told[512]; /* the problem that was said last; "": none */
    struct watched watched;
    struct timer look, more, save;
    struct watchdog watchdog;
    struct thread_job ask; /* the brokers, for partitions */
};

/* ---- what it shows --------------------------------------------------------------------------- */

static char *root_page(void *context)
{
    const struct root *root = context;

    return root->is_ready ? merged_page(root->deltas.merged, wall_clock_ns()) : NULL;
}

static char *root_document(void *context)
{
    const struct root *root = context;

    return root->is_ready ? merged_document(root->deltas.merged, wall_clock_ns()) : NULL;
}

static json_t *root_status_json(const struct root *root)
{
    const char *problem = topic_problem(root->deltas.topic);
    json_t *json = json_pack("{ss, ss, sI, ss, sI, ss*, ss*}", "mode", ROOT_SERVICE, "version",
                             BLKIN_RELEASE, "pid", (json_int_t)getpid(), "state",
                             problem          ? "waiting"
                             : root->is_ready ? "serving"
                                              : "reading what there was",
                             "saving_ms", (json_int_t)saver_busy_ms(), "error", problem, "url",
                             root->metrics ? metrics_url(root->metrics) : NULL);
    json_t *summary = root_summary_json(&root->deltas);

    if (root->push)
        push_status(root->push, json);
    (void)json_object_update(json, summary);
    json_decref(summary);
    (void)json_object_set_new(json, "last", say_last());
    return json;
}

static const char no_reload[] =
    "the root reads its configuration at its start only: restart it, nothing is lost by that";

static json_t *root_answer(void *context, const char *request)
{
    const struct root *root = context;

    if (strcmp(request, "status") == 0)
        return root_status_json(root);
    if (strcmp(request, "workers") == 0)
        return root_figures_json(root->deltas.merged);
    if (strcmp(request, "reload") == 0)
        return json_pack("{ss}", "error", no_reload);
    return NULL;
}

/* ---- its state ------------------------------------------------------------------------------- */

static void root_saved(void *context, const char *problem)
{
    struct root *root = context;
    const int64_t pause_ms = (clock_ms() - root->save_began_ms) * SAVE_SHARE;

    if (problem && !root->is_unsaved)
        say(BK7044, "state-dir: %s: a restart reads again what came since", problem);
    root->is_unsaved = problem != NULL;
    root->deltas.is_changed |= root->is_unsaved;
    timer_set(root->loop, &root->save,
              pause_ms <= SAVE_MS      ? SAVE_MS
              : pause_ms < SAVE_MAX_MS ? pause_ms
                                       : SAVE_MAX_MS);
}

static void root_give_state(struct root *root)
{
    char *text;

    if (!root->deltas.is_changed)
        return;
    text = root_state_text(root->deltas.url.shown, root->deltas.merged, root->deltas.offsets,
                           wall_clock_ns());
    root->deltas.is_changed = !text;
    saver_write(root->state_path, text, text ? strlen(text) : 0);
}

static void root_save(void *context)
{
    struct root *root = context;

    root->save_began_ms = clock_ms();
    root_give_state(root);
    root->saved = (struct saver_wait){.done = root_saved, .context = root};
    saver_then(&root->saved);
}

static bool root_load(struct root *root, struct error *error)
{
    const char *folder = config_text(root->config, "state-dir");

    if (!folder_own(folder, "state-dir", error))
        return false;
    (void)snprintf(root->state_path, sizeof(root->state_path), "%s/" ROOT_SERVICE ".json", folder);
    error_set(error, "out of memory");
    return root_deltas_load(&root->deltas, root->state_path);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Once when it begins, and once when it is over. */
static void root_tell_problem(struct root *root)
{
    const char *problem = topic_problem(root->deltas.topic);

    if (problem && strncmp(problem, root->told, sizeof(root->told) - 1) != 0) {
        say(BK7045, "%s", problem);
        notify("STATUS=%.400s", problem);
    } else if (!problem && root->told[0]) {
        say(BK7046, "%s is there again", root->deltas.url.shown);
        notify("STATUS=reads %.400s", root->deltas.url.shown);
    }
    (void)snprintf(root->told, sizeof(root->told), "%s", problem ? problem : "");
}

static void root_become_ready(struct root *root)
{
    root->is_ready = true;
    say(BK7047, "%s: all is read that there was: %llu messages%s%s", root->deltas.url.shown,
        (unsigned long long)root->deltas.merged->messages, root->metrics ? "; serves at " : "",
        root->metrics ? metrics_url(root->metrics) : "");
    notify("STATUS=reads %.400s", root->deltas.url.shown);
}

static void root_read(void *context)
{
    struct root *root = context;
    bool has_more;

    if (!topic_read(root->deltas.topic, &has_more)) {
        root->has_failed = true;
        loop_stop(root->loop);
        return;
    }
    if (!root->is_ready && topic_is_at_end(root->deltas.topic))
        root_become_ready(root);
    if (has_more)
        timer_set(root->loop, &root->more, 0);
}

static void root_readable(void *context, short events)
{
    (void)events;
    root_read(context);
}

static void root_ask(void *context)
{
    const struct root *root = context;

    topic_ask(root->deltas.topic, LOOK_LIMIT_MS);
}

static void root_take_answer(void *context)
{
    struct root *root = context;

    topic_take_answer(root->deltas.topic, LOOK_LIMIT_MS);
    root_tell_problem(root);
    timer_set(root->loop, &root->look,
              topic_partitions(root->deltas.topic) ? LOOK_LATER_MS : LOOK_MS);
    root_read(root);
}

static void root_look(void *context)
{
    struct root *root = context;

    if (thread_job_start(root->loop, &root->ask))
        return;
    say(BK7048, "cannot ask the brokers: %s", strerror(errno));
    timer_set(root->loop, &root->look, LOOK_MS);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void root_end(void *context)
{
    const struct root *root = context;

    notify("STOPPING=1");
    loop_stop(root->loop);
}

static void root_reload(void *context)
{
    (void)context;
    say(BK7049, "%s", no_reload);
}

static bool root_open_displays(struct root *root, struct error *error)
{
    const char *where = config_text(root->config, "prometheus-listen");

    root->control = control_open(root->loop, config_text(root->config, "runtime-dir"), ROOT_SERVICE,
                                 root_answer, root, error);
    if (!root->control || !where || !*where)
        return root->control != NULL;
    root->metrics = metrics_open(root->loop, "prometheus-listen", where, root_page, root, error);
    if (root->metrics)
        metrics_add(root->metrics, "/statistics", "application/json", root_document);
    return root->metrics != NULL;
}

static bool root_open_push(struct root *root, struct error *error)
{
    const char *url = config_text(root->config, "otlp-metrics");

    if (!url || !*url)
        return true;
    root->push = push_open(root->loop, root->config, root->deltas.merged, error);
    return root->push != NULL;
}

static bool root_serve(struct root *root)
{
    notify("READY=1");
    root->watched =
        (struct watched){topic_fd(root->deltas.topic), POLLIN, root_readable, root, NULL};
    loop_watch(root->loop, &root->watched);
    root->look = (struct timer){.due = root_look, .context = root};
    root->ask = (struct thread_job){.run = root_ask, .done = root_take_answer, .context = root};
    root->more = (struct timer){.due = root_read, .context = root};
    root->save = (struct timer){.due = root_save, .context = root};
    timer_set(root->loop, &root->save, SAVE_MS);
    watchdog_start(&root->watchdog, root->loop);
    root_look(root);
    if (loop_run(root->loop))
        return !root->has_failed;
    say(BK1011, "cannot wait: %s", strerror(errno));
    return false;
}

/* Returns the exit status. */
static int root_run(struct root *root)
{
    const struct loop_signals signals = {root_end, root_reload, root};
    struct error error;
    bool is_right;

    root->loop = loop_new(&signals);
    if (!root->loop || !saver_open(root->loop)) {
        say(BK1010, "cannot start: %s", strerror(errno));
        return 1;
    }
    is_right = root_open_displays(root, &error) && root_load(root, &error) &&
               root_open_push(root, &error) && root_deltas_read(&root->deltas, 0, &error);
    if (!is_right)
        say(BK1010, "%s", error.text);
    else
        is_right = root_serve(root);
    if (is_right) {
        root_give_state(root);
        is_right = saver_end();
    }
    thread_job_end(&root->ask);
    push_close(root->push);
    metrics_close(root->metrics);
    if (root->control)
        control_close(root->control);
    return is_right ? 0 : 1;
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool is_root, is_once, is_json;
static const char *since;
static const struct config_flag flags[] = {{"root", &is_root, NULL},
                                           {"once", &is_once, NULL},
                                           {"json", &is_json, NULL},
                                           {"since", NULL, &since},
                                           {NULL, NULL, NULL}};

/* "10m", or a date and time; 0: neither. */
static int64_t root_parse_since(const char *text)
{
    static const char units[] = "smhd";
    static const int64_t seconds[] = {1, 60, 3600, 86400};
    struct tm tm = {0};
    char *end;
    const double count = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    const char *rest;

    if (*text >= '0' && *text <= '9' && unit && end[1] == '\0' && count * 86400 < 1e10)
        return wall_clock_ns() - (int64_t)(count * (double)seconds[unit - units] * 1e9);
    rest = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return rest && *rest == '\0' ? (int64_t)timegm(&tm) * 1000000000 : 0;
}

/* Returns the exit status if it is wrong, or -1. */
static int root_check_usage(const struct config *config, const char *name, int64_t *since_ns)
{
    const char *problem = NULL;

    *since_ns = since ? root_parse_since(since) : 0;
    if (config_operands(config) > 0)
        problem = "expected no operand";
    else if (since && *since_ns <= 0)
        problem = "--since: expected 10m (s, m, h, d), or 2026-11-21T11:33:27Z";
    else if (!is_once && (since || is_json))
        problem = "--since and --json go with --once";
    if (!problem)
        return -1;
    fprintf(stderr, "%s: %s\n%s", name, problem, usage);
    return 2;
}

int root_command(int argc, char *argv[])
{
    const struct config_request request = {"work", usage, flags};
    static struct root root;
    struct error error;
    struct config *config;
    int64_t since_ns;
    int status;

    config = config_read(&request, argc, argv, &status);
    if (!config)
        return status;
    say_open("blkin work --root", config_text(config, "log-level"));
    status = root_check_usage(config, argv[0], &since_ns);
    if (status < 0) {
        root.config = config;
        if (!root_deltas_open(&root.deltas, config, &error)) {
            say(BK1010, "%s", error.text);
            status = 1;
        } else {
            status = is_once ? root_once(&root.deltas, since_ns, is_json) : root_run(&root);
        }
        root_deltas_close(&root.deltas);
        if (root.loop)
            loop_free(root.loop);
    }
    config_free(config);
    return status;
}
