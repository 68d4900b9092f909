/*
 * blkin work --root: its parts put together in one loop.
 *
 * It reads the deltas of all workers from their topic, in no group: several roots may run, each has
 * all. Numbers are shown only when all has been read that there is: what was shown before a restart
 * is never more than what is shown after it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "root.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "job.h"
#include "push.h"
#include "root_state.h"
#include "tools/base/control.h"
#include "tools/base/folders.h"
#include "tools/base/metrics.h"
#include "tools/base/notify.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"
#include "tools/base/show_json.h"
#include "tools/config/config.h"
#include "tools/kafka/topic.h"
#include "tools/merged/merged.h"
#include "tools/merged/merged_page.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: blkin work --root [--once [--since=TIME]] [--json] [--KEY=VALUE]...\n"
    "\n"
    "Adds up what all workers have counted, and gives it to Prometheus, to a\n"
    "collector of OTLP metrics, to `blkin stat`, `blkin graph` and `blkin report`.\n"
    "It may be killed and started again: nothing is counted twice or lost.\n"
    "\n"
    "  --once         read what the topic has, print it and end\n"
    "  --since=TIME   of that only what is newer: 10m (s, m, h, d), or\n"
    "                 2026-11-21T11:33:27Z\n"
    "  --json         with --once: the document that `blkin stat` and others read\n"
    "  --config=FILE  instead of $BLKIN_CONFIG and /etc/blkin/blkin.conf\n"
    "  --KEY=VALUE    a key of the configuration; here matter: input (its brokers),\n"
    "                 deltas, kafka-file, prometheus-listen, otlp-metrics, state-dir\n"
    "  -h, --help     print this\n"
    "\n"
    "The page has /metrics, and the document as /statistics.\n"
    "Exit status: 0 ended in order; 1 it failed; 2 wrong usage or configuration.\n";

#define LOOK_MS       2000 /* for partitions, as long as there are none */
#define LOOK_LATER_MS 30000
#define LOOK_LIMIT_MS 1000 /* so long the brokers may take to answer */
#define SAVE_MS       1000
#define SAVE_SHARE    20    /* of the time, one part of so many at most is for saving */
#define SAVE_MAX_MS   60000 /* also when the disk has hung for long */
#define ONCE_LIMIT_MS 30000 /* without anything new */

struct root {
    struct config *config;
    struct loop *loop;
    struct control *control;
    struct metrics *metrics;
    struct merged *merged;
    struct topic *topic;
    int64_t offsets[TOPIC_PARTITIONS_MAX]; /* what to read next; -1: not known */
    char shown[1100];                      /* of the topic */
    char state_path[4100];
    bool is_ready; /* all has been read that there was at the start */
    bool is_changed;
    bool has_failed;
    bool is_unsaved; /* it was said that the state cannot be saved */
    struct saver_wait saved;
    int64_t save_began_ms;
    char told[512]; /* the problem that was said last; "": none */
    struct watched watched;
    struct timer look, more, save, watchdog;
    struct job ask; /* the brokers, for partitions */
    struct push push;
};

/* ---- reading --------------------------------------------------------------------------------- */

static bool take_message(void *context, const struct topic_message *message)
{
    struct root *root = context;
    const int64_t log_ns = message->log_ns ? message->log_ns : wall_clock_ns();
    struct error error;

    if (!merged_add_message(root->merged, message->data, message->length, log_ns, &error)) {
        say(BK7040, "%s", error.text);
        root->has_failed = true;
        return false;
    }
    if (error.text[0] && root->merged->refused == 1)
        say(BK7041, "%s: partition %d, offset %lld: %s: such messages are counted, and left out",
            root->shown, (int)message->partition, (long long)message->offset, error.text);
    root->offsets[message->partition] = message->offset + 1;
    root->is_changed = true;
    return true;
}

static void note_gap(void *context, int32_t partition)
{
    struct root *root = context;

    root->merged->gaps++;
    root->offsets[partition] = -1;
    say(BK7042,
        "%s: partition %d has not kept what was to be read next: what was counted then is missing; "
        "let the topic keep more (retention.ms)",
        root->shown, (int)partition);
}

static bool find_topic(struct root *root, struct error *error)
{
    const char *input = config_text(root->config, "input");
    const char *name = config_text(root->config, "deltas");

    if (!input || !*input)
        error_set(error, "input: expected kafka://BROKER[,BROKER...]/TOPIC, as for the workers");
    else if (!name || !*name)
        error_set(error, "deltas: expected the name of the topic that the workers write");
    else
        return topic_show(input, name, root->shown, sizeof(root->shown), error);
    return false;
}

static bool open_topic(struct root *root, int64_t since_ns, struct error *error)
{
    const struct topic_options options = {
        .parameter = "input",
        .client_id = "blkin-work-root",
        .fetch_wait_ms = "500",
        .brokers_url = config_text(root->config, "input"),
        .name = config_text(root->config, "deltas"),
        .kafka_file = config_text(root->config, "kafka-file"),
        .since_ns = since_ns,
        .offsets = root->offsets,
        .message = take_message,
        .gap = note_gap,
        .context = root,
    };

    root->topic = topic_open(&options, error);
    return root->topic != NULL;
}

/* ---- once ------------------------------------------------------------------------------------ */

static bool read_until_end(struct root *root, struct error *error)
{
    int64_t until_ms = clock_ms() + ONCE_LIMIT_MS;
    struct pollfd fd = {topic_fd(root->topic), POLLIN, 0};
    uint64_t seen = 0;
    bool has_more;

    while (!topic_is_at_end(root->topic)) {
        if (topic_partitions(root->topic) == 0)
            topic_look(root->topic, LOOK_LIMIT_MS);
        if (!topic_read(root->topic, &has_more)) {
            error_set(error, "out of memory");
            return false;
        }
        if (root->merged->messages != seen)
            until_ms = clock_ms() + ONCE_LIMIT_MS;
        seen = root->merged->messages;
        if (clock_ms() > until_ms) {
            error_set(error, "%s",
                      topic_problem(root->topic) ? topic_problem(root->topic)
                                                 : "the brokers do not answer");
            return false;
        }
        if (!has_more)
            (void)poll(&fd, 1, 100);
    }
    return true;
}

static json_t *workers_json(const struct root *root)
{
    const int64_t now_ns = wall_clock_ns();
    json_t *list = json_array();

    for (size_t i = 0; i < root->merged->worker_count; i++) {
        const struct merged_worker *worker = &root->merged->workers[i];
        const struct work_counts *counts = &worker->counts;
        const bool is_there = worker_is_there(worker, now_ns);
        json_t *row = json_pack("{ss, ss, so}", "worker", worker->instance, "state",
                                is_there ? "there" : "away", "heard", json_time(worker->heard_ns));

        (void)json_object_set_new(row, "busy_percent",
                                  is_there ? json_real(round(counts->busy * 1000) / 10)
                                           : json_null());
        (void)json_object_set_new(
            row, "behind_s", is_there ? json_real(round(counts->behind_s * 10) / 10) : json_null());
        (void)json_object_set_new(row, "counted", json_integer((json_int_t)counts->spans_counted));
        (void)json_object_set_new(row, "late", json_integer((json_int_t)counts->spans_late));
        (void)json_object_set_new(row, "kept", json_integer((json_int_t)counts->spans_kept));
        (void)json_array_append_new(list, row);
    }
    return list;
}

static json_t *summary_json(const struct root *root)
{
    const struct merged *merged = root->merged;

    return json_pack("{ss, so, so, sI, sI, sI, sI, sI, so}", "topic", root->shown, "from",
                     json_time(merged->from_ns), "to", json_time(merged->to_ns), "rows",
                     (json_int_t)statistics_rows(merged->statistics), "edges",
                     (json_int_t)statistics_edges(merged->statistics), "messages",
                     (json_int_t)merged->messages, "refused", (json_int_t)merged->refused, "gaps",
                     (json_int_t)merged->gaps, "workers", workers_json(root));
}

static bool print_once(const struct root *root, bool is_json)
{
    char *document = is_json ? merged_document(root->merged, wall_clock_ns()) : NULL;
    json_t *summary = is_json ? NULL : summary_json(root);

    if (document)
        (void)fputs(document, stdout);
    else if (summary)
        show_json(summary);
    free(document);
    json_decref(summary);
    return (document || summary) && fflush(stdout) == 0 && !ferror(stdout);
}

static int run_once(struct root *root, int64_t since_ns, bool is_json)
{
    struct error error = {"cannot write"};
    bool is_right;

    for (int i = 0; i < TOPIC_PARTITIONS_MAX; i++)
        root->offsets[i] = -1;
    is_right = find_topic(root, &error) && open_topic(root, since_ns, &error) &&
               read_until_end(root, &error) && print_once(root, is_json);
    if (!is_right)
        say(BK7043, "%s", error.text);
    topic_close(root->topic);
    return is_right ? 0 : 1;
}

/* ---- the service: what it shows -------------------------------------------------------------- */

static char *page(void *context)
{
    const struct root *root = context;

    return root->is_ready ? merged_page(root->merged, wall_clock_ns()) : NULL;
}

static char *document(void *context)
{
    const struct root *root = context;

    return root->is_ready ? merged_document(root->merged, wall_clock_ns()) : NULL;
}

static json_t *status_json(const struct root *root)
{
    const char *problem = topic_problem(root->topic);
    json_t *json = json_pack("{ss, ss, sI, ss}", "mode", ROOT_SERVICE, "version", BLKIN_RELEASE,
                             "pid", (json_int_t)getpid(), "state",
                             problem          ? "waiting"
                             : root->is_ready ? "serving"
                                              : "reading what there was");
    json_t *summary = summary_json(root);

    (void)json_object_set_new(json, "saving_ms", json_integer((json_int_t)saver_busy_ms()));
    if (problem)
        (void)json_object_set_new(json, "error", json_string(problem));
    if (root->metrics)
        (void)json_object_set_new(json, "url", json_string(metrics_url(root->metrics)));
    if (root->push.config) {
        (void)json_object_set_new(json, "pushed", json_integer((json_int_t)root->push.requests));
        (void)json_object_set_new(json, "push_failed", json_integer((json_int_t)root->push.failed));
        (void)json_object_set_new(json, "push_error", json_string(root->push.problem));
    }
    (void)json_object_update(json, summary);
    json_decref(summary);
    (void)json_object_set_new(json, "last", say_last());
    return json;
}

/* As in the document, for `blkin work --advise`. */
static json_t *figures_json(const struct root *root)
{
    const int64_t now_ns = wall_clock_ns();
    json_t *list = json_array();

    for (size_t i = 0; i < root->merged->worker_count; i++) {
        const struct merged_worker *worker = &root->merged->workers[i];

        (void)json_array_append_new(
            list, json_pack("{ss, sb, sf, sf}", "instance", worker->instance, "is_there",
                            worker_is_there(worker, now_ns), "busy_ratio", worker->counts.busy,
                            "behind_seconds", worker->counts.behind_s));
    }
    return json_pack("{so}", "workers", list);
}

static const char no_reload[] =
    "the root reads its configuration at its start only: restart it, nothing is lost by that";

static json_t *answer(void *context, const char *request)
{
    const struct root *root = context;

    if (strcmp(request, "status") == 0)
        return status_json(root);
    if (strcmp(request, "workers") == 0)
        return figures_json(root);
    if (strcmp(request, "reload") == 0)
        return json_pack("{ss}", "error", no_reload);
    return NULL;
}

/* ---- the service: its loop ------------------------------------------------------------------- */

static void saved(void *context, const char *problem)
{
    struct root *root = context;
    const int64_t pause_ms = (clock_ms() - root->save_began_ms) * SAVE_SHARE;

    if (problem && !root->is_unsaved)
        say(BK7044, "state-dir: %s: a restart reads again what came since", problem);
    root->is_unsaved = problem != NULL;
    root->is_changed |= root->is_unsaved;
    timer_set(root->loop, &root->save,
              pause_ms <= SAVE_MS      ? SAVE_MS
              : pause_ms < SAVE_MAX_MS ? pause_ms
                                       : SAVE_MAX_MS);
}

static void give_state(struct root *root)
{
    char *text;

    if (!root->is_changed)
        return;
    text = root_state_text(root->shown, root->merged, root->offsets, wall_clock_ns());
    root->is_changed = !text;
    saver_write(root->state_path, text, text ? strlen(text) : 0);
}

static void save(void *context)
{
    struct root *root = context;

    root->save_began_ms = clock_ms();
    give_state(root);
    root->saved = (struct saver_wait){.done = saved, .context = root};
    saver_then(&root->saved);
}

/* Once when it begins, and once when it is over. */
static void tell_problem(struct root *root)
{
    const char *problem = topic_problem(root->topic);

    if (problem && strncmp(problem, root->told, sizeof(root->told) - 1) != 0) {
        say(BK7045, "%s", problem);
        notify("STATUS=%.400s", problem);
    } else if (!problem && root->told[0]) {
        say(BK7046, "%s is there again", root->shown);
        notify("STATUS=reads %.400s", root->shown);
    }
    (void)snprintf(root->told, sizeof(root->told), "%s", problem ? problem : "");
}

static void become_ready(struct root *root)
{
    root->is_ready = true;
    say(BK7047, "%s: all is read that there was: %llu messages%s%s", root->shown,
        (unsigned long long)root->merged->messages, root->metrics ? "; serves at " : "",
        root->metrics ? metrics_url(root->metrics) : "");
    notify("STATUS=reads %.400s", root->shown);
}

static void read_some(void *context)
{
    struct root *root = context;
    bool has_more;

    if (!topic_read(root->topic, &has_more)) {
        loop_stop(root->loop);
        return;
    }
    if (!root->is_ready && topic_is_at_end(root->topic))
        become_ready(root);
    if (has_more)
        timer_set(root->loop, &root->more, 0);
}

static void ready(void *context, short events)
{
    (void)events;
    read_some(context);
}

static void ask(void *context)
{
    const struct root *root = context;

    topic_ask(root->topic, LOOK_LIMIT_MS);
}

static void take_answer(void *context)
{
    struct root *root = context;

    topic_take_answer(root->topic, LOOK_LIMIT_MS);
    tell_problem(root);
    timer_set(root->loop, &root->look, topic_partitions(root->topic) ? LOOK_LATER_MS : LOOK_MS);
    read_some(root);
}

static void look(void *context)
{
    struct root *root = context;

    if (job_start(root->loop, &root->ask))
        return;
    say(BK7048, "cannot ask the brokers: %s", strerror(errno));
    timer_set(root->loop, &root->look, LOOK_MS);
}

static void wake(void *context)
{
    struct root *root = context;

    notify("WATCHDOG=1");
    timer_set(root->loop, &root->watchdog, notify_watchdog_ms());
}

static void end_service(void *context)
{
    struct root *root = context;

    notify("STOPPING=1");
    loop_stop(root->loop);
}

static void reload(void *context)
{
    (void)context;
    say(BK7049, "%s", no_reload);
}

/* ---- the service: beginning and end ---------------------------------------------------------- */

/* What cannot be used is put aside: all that the topic has is read again. */
static bool load_state(struct root *root, struct error *error)
{
    char aside[4200];

    switch (root_state_load(root->state_path, root->shown, root->merged, root->offsets, error)) {
    case STATE_READ:
        say(BK7050, "goes on after %llu messages", (unsigned long long)root->merged->messages);
        return true;
    case STATE_NONE:
        return true;
    case STATE_NO_MEMORY:
        return false;
    case STATE_DAMAGED:
    case STATE_OF_ANOTHER:
        break;
    }
    (void)snprintf(aside, sizeof(aside), "%s.old", root->state_path);
    (void)rename(root->state_path, aside);
    say(BK7051, "%s: it is put aside, and what the topic has is counted anew", error->text);
    merged_free(root->merged);
    root->merged = merged_new();
    root->push.merged = root->merged;
    error_set(error, "out of memory");
    return root->merged != NULL;
}

static bool open_state(struct root *root, struct error *error)
{
    const char *folder = config_text(root->config, "state-dir");

    if (!folder_own(folder, "state-dir", error))
        return false;
    (void)snprintf(root->state_path, sizeof(root->state_path), "%s/" ROOT_SERVICE ".json", folder);
    return load_state(root, error);
}

static bool open_displays(struct root *root, struct error *error)
{
    const char *where = config_text(root->config, "prometheus-listen");
    const char *url = config_text(root->config, "otlp-metrics");

    root->control = control_open(root->loop, config_text(root->config, "runtime-dir"), ROOT_SERVICE,
                                 answer, root, error);
    if (!root->control)
        return false;
    if (where && *where) {
        root->metrics = metrics_open(root->loop, "prometheus-listen", where, page, root, error);
        if (!root->metrics)
            return false;
        metrics_add(root->metrics, "/statistics", "application/json", document);
    }
    if (!url || !*url)
        return true;
    root->push.loop = root->loop;
    root->push.config = root->config;
    return push_open(&root->push, error);
}

static bool serve(struct root *root)
{
    notify("READY=1");
    root->watched = (struct watched){topic_fd(root->topic), POLLIN, ready, root, NULL};
    loop_watch(root->loop, &root->watched);
    root->look = (struct timer){.due = look, .context = root};
    root->ask = (struct job){.run = ask, .done = take_answer, .context = root};
    root->more = (struct timer){.due = read_some, .context = root};
    root->save = (struct timer){.due = save, .context = root};
    root->watchdog = (struct timer){.due = wake, .context = root};
    timer_set(root->loop, &root->save, SAVE_MS);
    if (notify_watchdog_ms())
        wake(root);
    look(root);
    if (loop_run(root->loop))
        return !root->has_failed;
    say(BK1011, "cannot wait: %s", strerror(errno));
    return false;
}

static int run(struct root *root)
{
    const struct loop_signals signals = {end_service, reload, root};
    struct error error = {"out of memory"};
    bool is_right;

    root->loop = loop_new(&signals);
    if (!root->loop || !saver_open(root->loop)) {
        say(BK1010, "cannot start: %s", strerror(errno));
        return 1;
    }
    is_right = find_topic(root, &error) && open_displays(root, &error) &&
               open_state(root, &error) && open_topic(root, 0, &error);
    if (!is_right)
        say(BK1010, "%s", error.text);
    else
        is_right = serve(root);
    if (is_right) {
        give_state(root);
        is_right = saver_end();
    }
    job_end(&root->ask);
    push_close(&root->push);
    metrics_close(root->metrics);
    topic_close(root->topic);
    if (root->control)
        control_close(root->control);
    loop_free(root->loop);
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
static int64_t parse_since(const char *text)
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
static int check_usage(const struct config *config, const char *name, int64_t *since_ns)
{
    const char *problem = NULL;

    *since_ns = since ? parse_since(since) : 0;
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
    int64_t since_ns;
    int status;

    root.config = config_read(&request, argc, argv, &status);
    if (!root.config)
        return status;
    say_open("blkin work --root", config_text(root.config, "log-level"));
    status = check_usage(root.config, argv[0], &since_ns);
    if (status < 0) {
        root.merged = merged_new();
        root.push.merged = root.merged;
        if (!root.merged)
            say(BK1010, "out of memory");
        status = !root.merged ? 1 : is_once ? run_once(&root, since_ns, is_json) : run(&root);
        merged_free(root.merged);
    }
    config_free(root.config);
    return status;
}
