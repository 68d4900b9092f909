/*
 * blkin work --root: the root's loop. The root reads the deltas of all workers. The root uses no
 * consumer group, so each of several roots gets all deltas. Its pages show numbers only after it
 * has read all existing deltas, so that no number falls after a restart.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/duration.h"
#include "root_deltas.h"
#include "tools/base/commands.h"
#include "tools/base/folders.h"
#include "tools/base/notify.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"
#include "tools/base/text.h"
#include "tools/base/loop.h"
#include "tools/config/frame.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
#include "tools/work/root.txt.inc"
    ;

#define ROOT_SERVICE      "work-root" /* the control socket: RUNTIME-DIR/work-root.sock */
#define ROOT_ASK_MS       2000        /* between requests for partitions while the topic has none */
#define ROOT_ASK_LATER_MS 30000       /* between requests when the topic has partitions */
#define ROOT_ANSWER_MS    1000        /* the longest wait for the brokers' answer */
#define ROOT_SAVE_MS      1000        /* the shortest pause between saves */
#define SAVE_SHARE        20          /* saving may take 1/20 of the time */
#define ONCE_LIMIT_MS     30000       /* --once: the longest wait for a message */
#define SAVE_MAX_MS       60000       /* the longest pause after a slow save */

struct root {
    struct frame frame;
    struct root_deltas deltas;
    char state_path[4100];
    bool is_ready; /* the root has read all deltas that the topic had at the start */
    bool has_failed;
    bool is_unsaved; /* the last save has failed, which is logged */
    struct saver_wait saved;
    int64_t save_began_ms;
    char told[512]; /* the last logged problem; "": none */
    struct watched watched;
    struct timer ask_timer, more, save;
    struct thread_job ask; /* asks the brokers for partitions */
};

/* ---- the sums -------------------------------------------------------------------------------- */

static json_t *root_workers_json(const struct merged *merged)
{
    const int64_t now_ns = wall_clock_ns();
    json_t *list = json_array();

    for (size_t i = 0; i < merged->worker_count; i++) {
        const struct merged_worker *worker = &merged->workers[i];
        const struct work_counts *counts = &worker->counts;
        const bool is_there = worker_is_there(worker, now_ns);

        (void)json_array_append_new(
            list,
            json_pack(
                "{ss, ss, so, so, so, sI, sI, sI}", "worker", worker->instance, "state",
                is_there ? "there" : "away", "heard", json_time(worker->heard_ns), "busy_percent",
                is_there ? json_real(round(counts->busy * 1000) / 10) : json_null(), "behind_s",
                is_there ? json_real(round(counts->behind_s * 10) / 10) : json_null(), "counted",
                (json_int_t)counts->spans_counted, "late", (json_int_t)counts->spans_late, "kept",
                (json_int_t)counts->spans_kept));
    }
    return list;
}

/* Returns sums and workers for `blkin status` and for --once. NULL: out of memory. */
static json_t *root_summary_json(const struct root_deltas *deltas)
{
    const struct merged *merged = deltas->merged;

    return json_pack("{ss, so, so, sI, sI, sI, sI, sI, so}", "topic", deltas->url.shown, "from",
                     json_time(merged->from_ns), "to", json_time(merged->to_ns), "rows",
                     (json_int_t)statistics_size(merged->statistics, STATISTICS_ROWS), "edges",
                     (json_int_t)statistics_size(merged->statistics, STATISTICS_EDGES), "deltas",
                     (json_int_t)merged->messages, "refused", (json_int_t)merged->refused, "gaps",
                     (json_int_t)merged->gaps, "workers", root_workers_json(merged));
}

/* ---- the option --once ----------------------------------------------------------------------- */

static bool root_print(const struct root_deltas *deltas, bool is_json, struct error *error)
{
    char *document = is_json ? merged_document(deltas->merged, wall_clock_ns()) : NULL;
    json_t *summary = is_json ? NULL : root_summary_json(deltas);

    if (document)
        (void)fputs(document, stdout);
    else if (summary)
        show_json(summary);
    free(document);
    json_decref(summary);
    if (!document && !summary)
        return error_set(error, "out of memory");
    return (fflush(stdout) == 0 && !ferror(stdout)) ||
           error_set(error, "cannot write the sums to the standard output");
}

/* --once: reads the whole topic and prints the sums. Returns the exit status. */
static int root_once(struct root_deltas *deltas, int64_t since_ns, bool is_json)
{
    struct error error;
    const bool is_right = root_deltas_read(deltas, since_ns, &error) &&
                          topic_read_all(deltas->topic, ONCE_LIMIT_MS, &error) &&
                          root_print(deltas, is_json, &error);

    if (!is_right)
        say(BK7043, "%s", error.text);
    return is_right ? 0 : 1;
}

/* ---- page and status ------------------------------------------------------------------------- */

static char *root_page(void *context)
{
    const struct root *root = context;

    if (!root->is_ready)
        return NULL;
    return merged_page(root->deltas.merged,
                       (size_t)config_integer(root->frame.config, "page-series"), wall_clock_ns());
}

static char *root_document(void *context)
{
    const struct root *root = context;

    return root->is_ready ? merged_document(root->deltas.merged, wall_clock_ns()) : NULL;
}

static json_t *root_status(void *context)
{
    const struct root *root = context;
    const char *problem = topic_problem(root->deltas.topic);
    json_t *json = json_pack("{ss, sI, ss*, ss*}", "state",
                             problem          ? "waiting"
                             : root->is_ready ? "serving"
                                              : "reading old deltas",
                             "saving_ms", (json_int_t)saver_busy_ms(), "error", problem, "url",
                             root->frame.metrics ? metrics_url(root->frame.metrics) : NULL);
    json_t *summary = root_summary_json(&root->deltas);

    (void)json_object_update(json, summary);
    json_decref(summary);
    return json;
}

/* ---- the saved state ------------------------------------------------------------------------- */

static void root_saved(void *context, const char *problem)
{
    struct root *root = context;
    const int64_t pause_ms = (clock_ms() - root->save_began_ms) * SAVE_SHARE;

    if (problem && !root->is_unsaved)
        say(BK7044, "state-dir: %s: a restart reads again the messages since the last save",
            problem);
    root->is_unsaved = problem != NULL;
    root->deltas.is_changed |= root->is_unsaved;
    timer_set(root->frame.loop, &root->save,
              pause_ms <= ROOT_SAVE_MS ? ROOT_SAVE_MS
              : pause_ms < SAVE_MAX_MS ? pause_ms
                                       : SAVE_MAX_MS);
}

static void root_give_state(struct root *root)
{
    char *text;

    if (!root->deltas.is_changed)
        return;
    text = root_deltas_state(&root->deltas, wall_clock_ns());
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
    const char *folder = config_text(root->frame.config, "state-dir");

    if (!folder_make_private(folder, error))
        return false;
    (void)snprintf(root->state_path, sizeof(root->state_path), "%s/" ROOT_SERVICE ".json", folder);
    error_set(error, "out of memory");
    return root_deltas_load(&root->deltas, root->state_path);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Logs the begin and the end of a problem. */
static void root_tell_problem(struct root *root)
{
    const char *problem = topic_problem(root->deltas.topic);

    if (problem && strncmp(problem, root->told, sizeof(root->told) - 1) != 0) {
        say(BK7045, "%s", problem);
        notify("STATUS=%.400s", problem);
    } else if (!problem && root->told[0]) {
        say(BK7046, "%s answers again", root->deltas.url.shown);
        notify("STATUS=reads %.400s", root->deltas.url.shown);
    }
    (void)snprintf(root->told, sizeof(root->told), "%s", problem ? problem : "");
}

static void root_read(void *context)
{
    struct root *root = context;
    bool has_more;

    if (!topic_read(root->deltas.topic, &has_more)) {
        root->has_failed = true;
        loop_stop(root->frame.loop);
        return;
    }
    if (!root->is_ready && topic_is_at_end(root->deltas.topic)) {
        root->is_ready = true;
        say(BK7047, "%s: the whole topic is read: %llu messages%s%s", root->deltas.url.shown,
            (unsigned long long)root->deltas.merged->messages,
            root->frame.metrics ? "; serves at " : "",
            root->frame.metrics ? metrics_url(root->frame.metrics) : "");
        notify("STATUS=reads %.400s", root->deltas.url.shown);
    }
    if (has_more)
        timer_set(root->frame.loop, &root->more, 0);
}

static void root_ask_brokers(void *context)
{
    const struct root *root = context;

    topic_ask(root->deltas.topic, ROOT_ANSWER_MS);
}

static void root_take_answer(void *context)
{
    struct root *root = context;

    topic_take_answer(root->deltas.topic, ROOT_ANSWER_MS);
    root_tell_problem(root);
    timer_set(root->frame.loop, &root->ask_timer,
              topic_partitions(root->deltas.topic) ? ROOT_ASK_LATER_MS : ROOT_ASK_MS);
    root_read(root);
}

static void root_start_asking(void *context)
{
    struct root *root = context;

    if (thread_job_start(root->frame.loop, &root->ask))
        return;
    say(BK7048, "cannot start the thread that asks the brokers: %s", strerror(errno));
    timer_set(root->frame.loop, &root->ask_timer, ROOT_ASK_MS);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static bool root_take(void *context, struct config **config, struct error *error)
{
    (void)context;
    (void)config;
    return error_set(
        error,
        "the root reads its configuration only at its start: restart it, which loses nothing");
}

static bool root_open_displays(struct root *root, struct error *error)
{
    if (!frame_open(&root->frame, error) || !frame_open_page(&root->frame, error))
        return false;
    if (root->frame.metrics)
        metrics_add(root->frame.metrics, "/statistics", "application/json", root_document);
    return true;
}

static bool root_serve(struct root *root)
{
    notify("READY=1");
    root->watched =
        (struct watched){topic_fd(root->deltas.topic), POLLIN, root_read, root, NULL, 0};
    loop_watch(root->frame.loop, &root->watched);
    root->ask_timer = (struct timer){.due = root_start_asking, .context = root};
    root->ask =
        (struct thread_job){.run = root_ask_brokers, .done = root_take_answer, .context = root};
    root->more = (struct timer){.due = root_read, .context = root};
    root->save = (struct timer){.due = root_save, .context = root};
    timer_set(root->frame.loop, &root->save, ROOT_SAVE_MS);
    root_start_asking(root);
    return frame_run(&root->frame) && !root->has_failed;
}

/* Returns the exit status. */
static int root_run(struct root *root)
{
    struct error error;
    bool is_right;

    is_right = root_open_displays(root, &error) && root_load(root, &error) &&
               root_deltas_read(&root->deltas, 0, &error);
    if (!is_right)
        say(BK1010, "%s", error.text);
    else
        is_right = root_serve(root);
    if (is_right) {
        root_give_state(root);
        is_right = saver_end();
    }
    thread_job_end(&root->ask);
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

/* Parses "10m" (ago), or a date and time. Returns ns since 1970; 0: the text is neither. */
static int64_t root_parse_since(const char *text)
{
    struct tm tm = {0};
    const int64_t ago_ns = duration_read(text);
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &tm);

    if (ago_ns >= 0)
        return wall_clock_ns() - ago_ns;
    return rest && *rest == '\0' ? (int64_t)timegm(&tm) * 1000000000 : 0;
}

static bool root_check_usage(const char *name, int64_t *since_ns)
{
    const char *problem = NULL;

    *since_ns = since ? root_parse_since(since) : 0;
    if (since && *since_ns <= 0)
        problem = "--since: expected 10m (s, m, h, d), or 2026-11-21T11:33:27Z";
    else if (!is_once && (since || is_json))
        problem = "--since and --json go with --once";
    if (problem)
        fprintf(stderr, "%s: %s\n%s", name, problem, usage);
    return !problem;
}

/* Returns the exit status. */
static int root_work(struct root *root, int64_t since_ns)
{
    struct error error;
    int status = 1;

    if (!root_deltas_open(&root->deltas, root->frame.config, &error))
        say(BK1010, "%s", error.text);
    else
        status = is_once ? root_once(&root->deltas, since_ns, is_json) : root_run(root);
    root_deltas_close(&root->deltas);
    return status;
}

static int root_command(int argc, char *argv[])
{
    static const struct frame_calls calls = {.name = ROOT_SERVICE,
                                             .title = "blkin work --root",
                                             .status = root_status,
                                             .take = root_take,
                                             .page = root_page};
    const struct config_request request = {.section = "work", .usage = usage, .flags = flags};
    static struct root root;
    int64_t since_ns;
    int status;

    if (!frame_read(&root.frame, &calls, &root, &request, argc, argv, &status))
        return status;
    status = root_check_usage(argv[0], &since_ns) ? root_work(&root, since_ns) : 2;
    frame_close(&root.frame);
    return status;
}

static bool is_for_root(int argc, char *argv[])
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--root") == 0)
            return true;
    }
    return false;
}

int work_command(int argc, char *argv[])
{
    return is_for_root(argc, argv) ? root_command(argc, argv) : worker_command(argc, argv);
}
