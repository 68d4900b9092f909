/*
 * The same requests, their layers once as spans and once as steps, for test-steps.sh; layers.cpp is
 * its counterpart.
 *
 *     layers spans|steps
 *
 * Prints a line for each layer: its name, that of the layer above ("-": none), and, in ns, the
 * least and the most that it can have lasted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static bool as_steps;

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* ---- a layer: a span, or a step of the request's ---- */

struct layer {
    struct blkin_span *span; /* to say something of the layer */
    struct blkin_span own;
    char name[32];
    char above[32];
    uint64_t before;
    uint64_t after;
};

static void enter(struct layer *layer, struct layer *above, const char *name, enum blkin_kind kind)
{
    snprintf(layer->name, sizeof(layer->name), "%s", name);
    snprintf(layer->above, sizeof(layer->above), "%s", above ? above->name : "-");
    layer->span = as_steps && above ? above->span : &layer->own;
    layer->before = now();
    if (layer->span != &layer->own)
        blkin_step_begin(layer->span, name, kind);
    else
        blkin_span_begin(layer->span, name, kind, above ? above->span : NULL);
    layer->after = now();
}

/* Below one in another thread or process. */
static void enter_remote(struct layer *layer, const char *above, const char *name,
                         const struct blkin_context *context)
{
    snprintf(layer->name, sizeof(layer->name), "%s", name);
    snprintf(layer->above, sizeof(layer->above), "%s", above);
    layer->span = &layer->own;
    layer->before = now();
    blkin_span_begin_remote(layer->span, name, BLKIN_SERVER, context);
    layer->after = now();
}

static void leave(struct layer *layer)
{
    const uint64_t before = now();
    uint64_t after;

    if (layer->span == &layer->own)
        blkin_span_end(layer->span);
    else
        blkin_step_end(layer->span);
    after = now();
    printf("%s\t%s\t%" PRIu64 "\t%" PRIu64 "\n", layer->name, layer->above, before - layer->after,
           after - layer->before);
}

static void context_of(const struct layer *layer, struct blkin_context *context)
{
    blkin_step_context(layer->span, context); /* without steps: that of the span */
}

static void work(void)
{
    const uint64_t end = now() + 20000;

    while (now() < end)
        ;
}

/* ---- the other side ---- */

static struct blkin_context sent;

static void *flush(void *unused)
{
    struct layer server, journal;

    enter_remote(&server, "flush", "flusher", &sent);
    enter(&journal, &server, "journal", BLKIN_INTERNAL);
    work();
    leave(&journal);
    leave(&server);
    return unused;
}

/* As it would come over a wire. */
static void replicate(const char *traceparent)
{
    struct blkin_context context;
    struct layer server, store;

    if (blkin_context_from_traceparent(&context, traceparent, strlen(traceparent)) != 0)
        abort();
    enter_remote(&server, "replicate", "replica", &context);
    enter(&store, &server, "store", BLKIN_INTERNAL);
    blkin_span_error(store.span, "ENOSPC");
    leave(&store);
    leave(&server);
}

/* ---- the requests: each fits into a log ---- */

static void write_request(void)
{
    char traceparent[BLKIN_TRACEPARENT_SIZE];
    struct layer request, look_up, index, client, aside;
    struct blkin_context context;
    pthread_t thread;
    pid_t child;

    enter(&request, NULL, "write", BLKIN_SERVER);
    blkin_span_annotate(request.span, "dequeued");
    enter(&look_up, &request, "look up", BLKIN_INTERNAL);
    blkin_span_tag_bool(look_up.span, "cached", 0);
    enter(&index, &look_up, "index", BLKIN_INTERNAL);
    blkin_span_error(index.span, "ENOENT");
    work();
    leave(&index);
    blkin_span_annotate(look_up.span, "made");
    leave(&look_up);

    enter(&client, &request, "replicate", BLKIN_CLIENT);
    blkin_span_set_remote(client.span, "osd.2", "10.0.0.2", 6802);
    context_of(&client, &context);
    blkin_context_to_traceparent(&context, traceparent);
    child = fork();
    if (child == 0) {
        replicate(traceparent);
        _exit(0);
    }
    if (child < 0 || waitpid(child, NULL, 0) != child)
        abort();
    leave(&client);

    enter(&client, &request, "flush", BLKIN_CLIENT);
    context_of(&client, &sent);
    if (pthread_create(&thread, NULL, flush, NULL) != 0 || pthread_join(thread, NULL) != 0)
        abort();
    /* a span below the request's own, whatever is open */
    enter_remote(&aside, "write", "aside", blkin_span_context(request.span));
    leave(&aside);
    leave(&client);
    blkin_span_tag_int64(request.span, "status", -2);
    leave(&request);
}

static void read_request(void)
{
    struct layer request, step, within;
    struct blkin_context context;

    enter(&request, NULL, "read", BLKIN_SERVER);
    enter(&step, &request, "produce", BLKIN_PRODUCER);
    blkin_span_tag_string(step.span, "string", "a|b\n\"c\"");
    blkin_span_tag_int64(step.span, "int64", INT64_MIN);
    blkin_span_tag_uint64(step.span, "uint64", UINT64_MAX);
    blkin_span_tag_double(step.span, "double", 0.1);
    blkin_span_tag_bool(step.span, "bool", 1);
    context_of(&step, &context);
    enter(&within, &step, "link", BLKIN_CONSUMER);
    blkin_span_link(within.span, blkin_span_context(request.span));
    leave(&within);
    blkin_span_link(step.span, &context);
    leave(&step);
    leave(&request);
}

static void log_request(void)
{
    static const char *const texts[] = {"emerg",   "alert",  "crit", "err",
                                        "warning", "notice", "info", "debug"};
    struct layer request, step;

    enter(&request, NULL, "log", BLKIN_INTERNAL);
    enter(&step, &request, "severities", BLKIN_INTERNAL);
    for (int severity = BLKIN_EMERG; severity <= BLKIN_DEBUG; severity++)
        blkin_span_log(step.span, (enum blkin_severity)severity, texts[severity]);
    BLKIN_ANNOTATEF(step.span, "%d of a format", 1);
    leave(&step);
    enter(&step, &request, "ago", BLKIN_INTERNAL);
    work();
    blkin_span_log_at(step.span, BLKIN_INFO, "at a time", now() - 10000);
    leave(&step);
    leave(&request);
}

/* More than a log holds. */
static void scan_request(void)
{
    struct layer request, extent, block;
    char name[32];

    enter(&request, NULL, "scan", BLKIN_SERVER);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "extent %d", i);
        enter(&extent, &request, name, BLKIN_INTERNAL);
        blkin_span_tag_int64(extent.span, "number", i);
        snprintf(name, sizeof(name), "block %d", i);
        enter(&block, &extent, name, BLKIN_CLIENT);
        if (i % 7 == 0)
            blkin_span_error(block.span, "EIO");
        blkin_span_annotate(block.span, "read");
        leave(&block);
        leave(&extent);
    }
    leave(&request);
}

int main(int argc, char **argv)
{

    if (argc != 2)
        return 2;
    as_steps = strcmp(argv[1], "steps") == 0;
    setvbuf(stdout, NULL, _IOLBF, 0); /* of a child, too */
    blkin_init();
    blkin_set_service("osd.1", "10.0.0.1", 6801);
    write_request();
    read_request();
    log_request();
    scan_request();
    return 0;
}
