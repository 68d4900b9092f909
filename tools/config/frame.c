/*
 * The frame of a service.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "frame.h"

#include "reload.h"
#include "tools/base/notify.h"
#include "tools/base/say.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void frame_end(void *context)
{
    struct frame *frame = context;

    notify("STOPPING=1");
    frame->calls->end(frame->context);
}

static json_t *frame_reload(struct frame *frame)
{
    struct error error = {""};
    struct config *config;

    notify_reloading();
    config = config_read_again(frame->config);
    if (!config)
        return reload_answer(frame->title, frame->config, reload_is_wrong);
    if (frame->calls->take && !frame->calls->take(frame->context, config, &error)) {
        config_free(config);
        return reload_answer(frame->title, frame->config, error.text);
    }
    config_free(frame->config);
    frame->config = config;
    return reload_answer(frame->title, config, NULL);
}

static void frame_reload_by_signal(void *context)
{
    json_decref(frame_reload(context));
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
    *frame = (struct frame){.calls = calls, .context = context};
    (void)snprintf(frame->title, sizeof(frame->title), "blkin %s", calls->name);
    frame->config = config_read(request, argc, argv, status);
    if (!frame->config)
        return false;
    if (config_operands(frame->config) > 0) {
        fprintf(stderr, "%s: expected no operand\n%s", argv[0], request->usage);
        config_free(frame->config);
        *status = 2;
        return false;
    }
    say_open(frame->title, config_text(frame->config, "log-level"));
    return true;
}

bool frame_open(struct frame *frame, struct error *error)
{
    frame->loop = loop_new(&(struct loop_signals){
        .end = frame_end, .reload = frame_reload_by_signal, .context = frame});
    if (!frame->loop) {
        error_set(error, "cannot start: %s", strerror(errno));
        return false;
    }
    frame->control = control_open(frame->loop, config_text(frame->config, "runtime-dir"),
                                  frame->calls->name, frame_answer, frame, error);
    return frame->control != NULL;
}

static char *frame_page(void *context)
{
    const struct frame *frame = context;

    return frame->calls->page(frame->context);
}

bool frame_open_page(struct frame *frame, struct error *error)
{
    const char *listen = config_text(frame->config, "prometheus-listen");

    if (!listen)
        return true;
    frame->metrics =
        metrics_open(frame->loop, "prometheus-listen", listen, frame_page, frame, error);
    if (frame->metrics)
        say(BK1012, "metrics for Prometheus: %s", metrics_url(frame->metrics));
    return frame->metrics != NULL;
}

bool frame_run(struct frame *frame)
{
    watchdog_start(&frame->watchdog, frame->loop);
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
    config_free(frame->config);
}
