/*
 * Makes requests and prints their trace ids. Each request has three spans: "request", "work" in
 * "request", and "disk" in "work". Lines of the standard input describe the requests (behind ";" is
 * what the program prints):
 *
 *     fast N        N requests that take no time; "fast" when they are made
 *     slow MS       one request with MS ms in "disk"; "slow ID" when it has ended
 *     late MS       the same, but "request" stays open; "late ID" when the others have ended
 *     begin         begins a request; "begin ID"
 *     end MS        after MS ms ends the open spans of a request; "end ID"
 *     after         a fast span of that request, which has ended; "after ID"
 *     keep          a fast request that the program asks to keep; "keep ID"
 *     orphan MS     one slow span, whose parent was not recorded; "orphan ID"
 *     rate N        N fast requests a second, until the next line; "rate" before the first one
 *     service NAME  spans are of that service from now on; "service"
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include "waits.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void print_id(const char *what, const struct blkin_context *context)
{
    printf("%s %016" PRIx64 "%016" PRIx64 "\n", what, context->trace_id_high, context->trace_id);
}

struct three_spans {
    struct blkin_span root, work, disk;
};

static struct blkin_context begin(struct three_spans *request)
{
    blkin_span_begin(&request->root, "request", BLKIN_SERVER, NULL);
    blkin_span_begin(&request->work, "work", BLKIN_INTERNAL, &request->root);
    blkin_span_begin(&request->disk, "disk", BLKIN_INTERNAL, &request->work);
    return *blkin_span_context(&request->root);
}

static void end_disk_and_work(struct three_spans *request, long ms)
{
    pause_us(ms * 1000);
    blkin_span_end(&request->disk);
    blkin_span_end(&request->work);
}

/* Ends a span with the duration that it has on an idle machine: a busy machine may make it slow. */
static void end_fast(struct blkin_span *span, uint64_t at_ns, uint64_t took_ns)
{
    blkin_span_set_start(span, at_ns - took_ns);
    blkin_span_end_at(span, at_ns);
}

static struct blkin_context fast_request(const char *keep)
{
    struct three_spans request;
    const struct blkin_context context = begin(&request);
    uint64_t at_ns;

    if (keep)
        blkin_span_keep(&request.work, keep);
    at_ns = blkin_now();
    end_fast(&request.disk, at_ns, 1000);
    end_fast(&request.work, at_ns, 2000);
    end_fast(&request.root, at_ns, 3000);
    return context;
}

static struct blkin_context slow_request(long ms)
{
    struct three_spans request;
    const struct blkin_context context = begin(&request);

    end_disk_and_work(&request, ms);
    blkin_span_end(&request.root);
    return context;
}

static struct blkin_context orphan(long ms)
{
    struct blkin_context parent = {.trace_id = 0};
    struct blkin_span root, span;

    blkin_span_begin(&root, "never ends", BLKIN_CLIENT, NULL);
    parent = *blkin_span_context(&root);
    blkin_span_begin_remote(&span, "orphan", BLKIN_SERVER, &parent);
    pause_us(ms * 1000);
    blkin_span_end(&span);
    return parent;
}

/* Makes fast requests at the rate until a line can be read. */
static void make_at(double rate)
{
    struct pollfd in = {STDIN_FILENO, POLLIN, 0};
    const int64_t begun_ns = monotonic_ns();
    double made = 0;

    while (poll(&in, 1, 1) == 0) {
        const double due = rate * (double)(monotonic_ns() - begun_ns) / 1e9;

        for (; made < due; made++)
            (void)fast_request(NULL);
    }
}

static void obey(char *line)
{
    static struct three_spans held; /* of "late" or "begin", until "end" */
    static struct blkin_context of_held;
    struct blkin_context context;
    long a = 0;
    char name[64];

    if (sscanf(line, "fast %ld", &a) == 1) {
        while (a-- > 0)
            (void)fast_request(NULL);
        puts("fast");
    } else if (sscanf(line, "slow %ld", &a) == 1) {
        context = slow_request(a);
        print_id("slow", &context);
    } else if (sscanf(line, "late %ld", &a) == 1) {
        of_held = begin(&held);
        end_disk_and_work(&held, a);
        print_id("late", &of_held);
    } else if (strcmp(line, "begin\n") == 0) {
        of_held = begin(&held);
        print_id("begin", &of_held);
    } else if (sscanf(line, "end %ld", &a) == 1) {
        end_disk_and_work(&held, a); /* a second end of a span does nothing */
        blkin_span_end(&held.root);
        print_id("end", &of_held);
    } else if (strcmp(line, "after\n") == 0) {
        struct blkin_span span;

        blkin_span_begin_remote(&span, "after", BLKIN_CONSUMER, &of_held);
        end_fast(&span, blkin_now(), 1000);
        print_id("after", &of_held);
    } else if (sscanf(line, "orphan %ld", &a) == 1) {
        context = orphan(a);
        print_id("orphan", &context);
    } else if (strcmp(line, "keep\n") == 0) {
        context = fast_request("as the test wants it");
        print_id("keep", &context);
    } else if (sscanf(line, "rate %ld", &a) == 1) {
        puts("rate");
        make_at((double)a);
    } else if (sscanf(line, "service %63s", name) == 1) {
        blkin_set_service(name, "10.0.0.1", 6789);
        puts("service");
    }
}

int main(void)
{
    char line[128];

    if (blkin_init() != 0)
        return 2;
    (void)setvbuf(stdin, NULL, _IONBF, 0);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    blkin_set_service("server", "10.0.0.1", 6789);
    while (fgets(line, sizeof(line), stdin))
        obey(line);
    return 0;
}
