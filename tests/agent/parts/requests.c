/*
 * Makes requests and prints their trace ids. Each request has three spans: "request", "work" in
 * "request", and "disk" in "work". Lines of the standard input describe the requests:
 *
 *     fast N        N requests that take no time; "fast" when they are made
 *     slow MS       one request with so many ms in "disk"; "slow ID" when it has ended
 *     late MS MORE  the same, but "request" ends so many ms after the others; "late ID"
 *     keep          a fast request that the program asks to keep; "keep ID"
 *     orphan MS     a slow request whose parent was not recorded; "orphan ID"
 *     rate N        from now on N fast requests a second, until the next line; 0: none
 *     service NAME  spans are of that service from now on
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include "waits.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void print_id(const char *what, const struct blkin_context *context)
{
    printf("%s %016" PRIx64 "%016" PRIx64 "\n", what, context->trace_id_high, context->trace_id);
    (void)fflush(stdout);
}

static struct blkin_context request(long ms, long more, const char *keep)
{
    struct blkin_span root, work, disk;
    struct blkin_context context;

    blkin_span_begin(&root, "request", BLKIN_SERVER, NULL);
    blkin_span_begin(&work, "work", BLKIN_INTERNAL, &root);
    blkin_span_begin(&disk, "disk", BLKIN_INTERNAL, &work);
    context = *blkin_span_context(&root);
    if (ms)
        pause_us(ms * 1000);
    if (keep)
        blkin_span_keep(&work, keep);
    blkin_span_end(&disk);
    blkin_span_end(&work);
    if (more)
        pause_us(more * 1000);
    blkin_span_end(&root);
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
    struct timespec begun, now;
    double made = 0;

    clock_gettime(CLOCK_MONOTONIC, &begun);
    while (poll(&in, 1, 1) == 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        while (made < rate * ((double)(now.tv_sec - begun.tv_sec) +
                              (double)(now.tv_nsec - begun.tv_nsec) / 1e9)) {
            (void)request(0, 0, NULL);
            made++;
        }
    }
}

static void obey(char *line)
{
    struct blkin_context context;
    long a = 0, b = 0;
    char name[64];

    if (sscanf(line, "fast %ld", &a) == 1) {
        while (a-- > 0)
            (void)request(0, 0, NULL);
        puts("fast");
        (void)fflush(stdout);
    } else if (sscanf(line, "slow %ld", &a) == 1) {
        context = request(a, 0, NULL);
        print_id("slow", &context);
    } else if (sscanf(line, "late %ld %ld", &a, &b) == 2) {
        context = request(a, b, NULL);
        print_id("late", &context);
    } else if (sscanf(line, "orphan %ld", &a) == 1) {
        context = orphan(a);
        print_id("orphan", &context);
    } else if (strcmp(line, "keep\n") == 0) {
        context = request(0, 0, "as the test wants it");
        print_id("keep", &context);
    } else if (sscanf(line, "rate %ld", &a) == 1) {
        puts("rate");
        (void)fflush(stdout);
        make_at((double)a);
    } else if (sscanf(line, "service %63s", name) == 1) {
        blkin_set_service(name, "10.0.0.1", 6789);
        puts("service");
        (void)fflush(stdout);
    }
}

int main(void)
{
    char line[128];

    if (blkin_init() != 0)
        return 2;
    (void)setvbuf(stdin, NULL, _IONBF, 0);
    blkin_set_service("server", "10.0.0.1", 6789);
    while (fgets(line, sizeof(line), stdin))
        obey(line);
    return 0;
}
