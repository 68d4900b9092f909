/* SPDX-License-Identifier: BSD-2-Clause */
#include "frame.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/utf8.h"
#include "keys.h"
#include "tools/base/notify.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the configuration in answers ------------------------------------------------------------ */

/* Returns the answer to `blkin reload`, and passes the answer to the log and systemd. config: the
 * configuration in force. problem: why the service kept the old configuration; NULL: it did not. */
static json_t *reload_answer(const struct config *config, const char *problem)
{
    static const char *const needs[] = {", but a restart is needed for: ",
                                        ", but a new session of LTTng is needed for: "};
    json_t *waiting[2] = {NULL, NULL}; /* changed keys that need a restart, or a new session */
    char text[1024] = "the new configuration is in force";

    if (problem) {
        notify_reloaded(BK1022, problem);
        return json_pack("{ss}", "error", problem);
    }
    for (int i = 0; i < 2; i++) {
        waiting[i] = json_array();
        for (int key = 0; key_rule(key); key++) {
            const char *name = key_rule(key)->name;
            const size_t length = strlen(text);

            if (!config_waiting(config, name) || (key_when(key) == KEY_IN_SESSION) != i)
                continue;
            (void)snprintf(text + length, sizeof(text) - length, "%s%s",
                           json_array_size(waiting[i]) ? ", " : needs[i], name);
            (void)json_array_append_new(waiting[i], json_string(name));
        }
    }
    notify_reloaded(json_array_size(waiting[0]) + json_array_size(waiting[1]) ? BK1021 : BK1020,
                    text);
    return json_pack("{ss, so, so}", "result", text, "needs_restart", waiting[0], "needs_session",
                     waiting[1]);
}

/* Adds the keys that are set, and new values that need a restart, to `status`, the answer to `blkin
 * status`. Returns the answer. */
static json_t *reload_status(json_t *status, const struct config *config)
{
    json_t *in_force = json_object(), *waiting = json_object();

    for (int key = 0; key_rule(key); key++) {
        const char *name = key_rule(key)->name, *wanted = config_waiting(config, name);
        char *shown = NULL;

        if (wanted)
            (void)json_object_set_new(waiting, name, json_string(wanted));
        if (wanted || strcmp(config_origin(config, name), "default") != 0)
            shown = config_shown(config, name);
        if (shown)
            (void)json_object_set_new(in_force, name, json_string(shown));
        free(shown);
    }
    (void)json_object_set_new(status, "keys_in_force", in_force);
    (void)json_object_set_new(status, "keys_after_a_restart", waiting);
    return status;
}

/* ---- recent losses --------------------------------------------------------------------------- */

#define HALF_HOUR_MS (30 * 60 * 1000)

static const char *const counted_members[] = {"counters", "totals", "lost", "rings",
                                              "host_metrics"};

/* Returns the numbers that have grown. NULL: none. */
static json_t *growth(const json_t *now, const json_t *before)
{
    json_t *grown = NULL, *value;
    const char *name;

    json_object_foreach((json_t *)(uintptr_t)now, name, value)
    {
        const json_int_t more =
            json_integer_value(value) - json_integer_value(json_object_get(before, name));

        if (more <= 0)
            continue;
        grown = grown ? grown : json_object();
        (void)json_object_set_new(grown, name, json_integer(more));
    }
    return grown;
}

/* Adds the growth of the counters since 30 to 60 minutes ago, or since the start. Older losses are
 * no current problem. */
static void frame_add_lately(const struct frame *frame, json_t *status)
{
    json_t *lately = json_pack("{so}", "since", json_time(frame->counted_before_ns));

    for (size_t i = 0; i < sizeof(counted_members) / sizeof(counted_members[0]); i++) {
        json_t *grown = growth(json_object_get(status, counted_members[i]),
                               json_object_get(frame->counted_before, counted_members[i]));

        if (grown)
            (void)json_object_set_new(lately, counted_members[i], grown);
    }
    (void)json_object_set_new(status, "lately", lately);
}

static void frame_count(void *context)
{
    struct frame *frame = context;

    json_decref(frame->counted_before);
    frame->counted_before = frame->counted;
    frame->counted_before_ns = frame->counted_ns;
    frame->counted = frame->calls->status(frame->context);
    frame->counted_ns = wall_clock_ns();
    if (!frame->counted_before) {
        frame->counted_before = json_incref(frame->counted);
        frame->counted_before_ns = frame->counted_ns;
    }
    timer_set(frame->loop, &frame->counting, HALF_HOUR_MS);
}

/* ---- the frame ------------------------------------------------------------------------------- */

static void frame_end(void *context)
{
    struct frame *frame = context;

    notify("STOPPING=1");
    if (frame->calls->end)
        frame->calls->end(frame->context);
    else
        loop_stop(frame->loop);
}

/* The service uses this configuration already. The frame frees the old one. */
static void frame_set_config(struct frame *frame, struct config *config)
{
    config_free(frame->config);
    frame->config = config;
    say_open(frame->calls->title, config_text(config, "log-level"));
}

/* Returns false with error set: the old configuration stays in force. */
static bool frame_read_again(struct frame *frame, const char *topic, struct error *error)
{
    struct error first = {""};
    struct config *config = config_read_again(frame->config, topic, &first);

    if (!config)
        return error_set(error, "the configuration is wrong, the old one stays in force: %s",
                         first.text);
    if (frame->calls->take && !frame->calls->take(frame->context, &config, error)) {
        config_free(config);
        return false;
    }
    frame_set_config(frame, config);
    return true;
}

static json_t *frame_reload(struct frame *frame)
{
    struct error error = {""};
    bool is_new;

    notify_reloading();
    is_new = frame_read_again(frame, frame->topic.text, &error);
    return reload_answer(frame->config, is_new ? NULL : error.text);
}

static void frame_reload_by_signal(void *context)
{
    json_decref(frame_reload(context));
}

/* ---- the configuration for all hosts --------------------------------------------------------- */

/* Returns the comment in the first line, by which an administrator may name the version. */
static const char *topic_version(const char *text, char version[80])
{
    const size_t blanks = *text == '#' ? 1 + strspn(text + 1, " ") : 0;
    const size_t length = blanks ? strcspn(text + blanks, "\r\n") : 0;
    struct text line = {text + blanks, length};

    if (length == 0 || !utf8_is_valid(line))
        return "without a comment in its first line";
    line = utf8_beginning(line, length < 79 ? length : 79);
    (void)snprintf(version, 80, "%.*s", (int)line.length, line.data);
    return version;
}

void frame_take_topic(struct frame *frame, const char *text)
{
    struct frame_topic *topic = &frame->topic;
    char *copy = NULL;

    topic->error.text[0] = '\0';
    if (strcmp(text, topic->text ? topic->text : "") == 0)
        return;
    copy = strdup(text);
    if (!copy)
        error_set(&topic->error, "out of memory");
    if (!copy || !frame_read_again(frame, text, &topic->error)) {
        say(BK1024, "%s is refused: %s", CONFIG_TOPIC, topic->error.text);
        free(copy);
        return;
    }
    topic->error.text[0] = '\0';
    free(topic->text);
    topic->text = copy;
    topic->since_ns = wall_clock_ns();
    if (*text)
        say(BK1023, "%s is in force: %s", CONFIG_TOPIC, topic_version(text, (char[80]){""}));
    else
        say(BK1023, "%s is empty: only the file of this host is in force", CONFIG_TOPIC);
}

/* Returns NULL if the topic has sent nothing, or an empty text. */
static json_t *topic_json(const struct frame_topic *topic)
{
    const bool holds = topic->text && *topic->text;

    if (!holds && !topic->error.text[0])
        return NULL;
    return json_pack("{ss, so, ss}", "version",
                     holds ? topic_version(topic->text, (char[80]){""}) : "none", "since",
                     json_time(holds ? topic->since_ns : 0), "refused", topic->error.text);
}

static json_t *frame_status(struct frame *frame)
{
    json_t *own = frame->calls->status(frame->context);
    json_t *status = json_pack("{ss, ss, sI}", "mode", frame->calls->name, "version", BLKIN_RELEASE,
                               "pid", (json_int_t)getpid());

    if (!own || json_object_update(status, own) != 0) {
        json_decref(status);
        status = NULL;
    }
    json_decref(own);
    if (!status)
        return NULL;
    own = topic_json(&frame->topic);
    if (own)
        (void)json_object_set_new(status, "cluster_config", own);
    frame_add_lately(frame, status);
    (void)json_object_set_new(status, "messages", say_last());
    return reload_status(status, frame->config);
}

static json_t *frame_answer(void *context, const char *request)
{
    struct frame *frame = context;

    if (strcmp(request, "status") == 0)
        return frame_status(frame);
    if (strcmp(request, "reload") == 0)
        return frame_reload(frame);
    return frame->calls->ask ? frame->calls->ask(frame->context, request) : NULL;
}

bool frame_read(struct frame *frame, const struct frame_calls *calls, void *context,
                const struct config_request *request, int argc, char *argv[], int *status)
{
    struct config *config = config_read(request, argc, argv, status);

    if (!config)
        return false;
    if (config_operands(config) > 0) {
        fprintf(stderr, "%s: expected no operand\n%s", argv[0], request->usage);
        config_free(config);
        *status = 2;
        return false;
    }
    *frame = (struct frame){.calls = calls, .context = context};
    frame_set_config(frame, config);
    return true;
}

bool frame_open(struct frame *frame, struct error *error)
{
    frame->loop = loop_new(&(struct loop_signals){
        .end = frame_end, .reload = frame_reload_by_signal, .context = frame});
    if (!frame->loop || !saver_open(frame->loop))
        return error_set(error, "cannot start: %s", strerror(errno));
    frame->control = control_open(frame->loop, config_text(frame->config, "runtime-dir"),
                                  frame->calls->name, frame_answer, frame, error);
    return frame->control != NULL;
}

bool frame_open_page(struct frame *frame, struct error *error)
{
    const char *listen = config_text(frame->config, "prometheus-listen");

    if (!listen)
        return true;
    frame->metrics = metrics_open(frame->loop, "prometheus-listen", listen, frame->calls->page,
                                  frame->context, error);
    if (frame->metrics)
        say(BK1012, "metrics for Prometheus: %s", metrics_url(frame->metrics));
    return frame->metrics != NULL;
}

/* Notifies systemd that the loop runs, at the watchdog's interval. */
static void frame_feed_watchdog(void *context)
{
    struct frame *frame = context;

    notify("WATCHDOG=1");
    timer_set(frame->loop, &frame->watchdog, notify_watchdog_ms());
}

bool frame_run(struct frame *frame)
{
    frame->watchdog = (struct timer){.due = frame_feed_watchdog, .context = frame};
    if (notify_watchdog_ms())
        frame_feed_watchdog(frame);
    frame->counting = (struct timer){.due = frame_count, .context = frame};
    frame_count(frame);
    if (loop_run(frame->loop))
        return true;
    say(BK1011, "cannot wait: %s", strerror(errno));
    return false;
}

void frame_close(struct frame *frame)
{
    metrics_close(frame->metrics);
    if (frame->control)
        control_close(frame->control);
    if (frame->loop)
        loop_free(frame->loop);
    json_decref(frame->counted);
    json_decref(frame->counted_before);
    free(frame->topic.text);
    config_free(frame->config);
}
