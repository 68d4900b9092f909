/*
 * A chain of programs that send each other no ids: each request goes from the first process to the
 * last one and back, and all that their spans have in common are the keys of its halves.
 *
 *     halves PROCESSES REQUESTS [PAUSE-US]     of the first process after each request
 *
 * Of each request the first process has a client's span, each other one a server's with a
 * "work" below it and, but for the last, a client's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <blkin/blkin.h>

#include "tracepoints/format/join.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int processes, requests;
static useconds_t pause_us;

static void tag_key(struct blkin_span *span, int hop, uint32_t request)
{
    char key[17];

    (void)snprintf(key, sizeof(key), "%08x%08" PRIx32, 1 + (unsigned)hop, request);
    blkin_span_tag_string(span, JOIN_TAG, key);
}

/* Returns false if the peer is gone. */
static bool ask(int fd, int hop, uint32_t request, const struct blkin_span *cause)
{
    struct blkin_span span;
    char answer;
    bool done;

    blkin_span_begin(&span, "ask", BLKIN_CLIENT, cause);
    done = write(fd, &request, sizeof(request)) == sizeof(request) && read(fd, &answer, 1) == 1;
    tag_key(&span, hop, request);
    blkin_span_tag_uint64(&span, "request", request);
    blkin_span_end(&span);
    return done;
}

static bool answer(int from, int to, int hop, uint32_t request)
{
    struct blkin_context root = {.trace_id_high = JOIN_TRACE_HIGH, .flags = BLKIN_CONTEXT_RANDOM};
    struct blkin_span span, work;
    bool done;

    if (getrandom(&root.trace_id, sizeof(root.trace_id), 0) < 0)
        return false;
    blkin_span_begin_remote(&span, "answer", BLKIN_SERVER, &root);
    blkin_span_begin(&work, "work", BLKIN_INTERNAL, &span);
    blkin_span_end(&work);
    done = (to < 0 || ask(to, hop + 1, request, &span)) && write(from, "", 1) == 1;
    tag_key(&span, hop, request);
    blkin_span_tag_uint64(&span, "request", request);
    blkin_span_end(&span);
    return done;
}

static int serve(int from, int to, int hop)
{
    uint32_t request;

    while (read(from, &request, sizeof(request)) == sizeof(request)) {
        if (!answer(from, to, hop, request))
            return 1;
    }
    return 0;
}

static int drive(int to)
{
    for (uint32_t request = 0; request < (uint32_t)requests; request++) {
        if (!ask(to, 0, request, NULL))
            return 1;
        if (pause_us > 0)
            (void)usleep(pause_us);
    }
    return 0;
}

/* The last process first: each one has the end of the next. */
int main(int argc, char *argv[])
{
    int to = -1, status = 1, result;

    processes = argc >= 3 ? atoi(argv[1]) : 0;
    requests = argc >= 3 ? atoi(argv[2]) : 0;
    pause_us = argc == 4 ? (useconds_t)atoi(argv[3]) : 0;
    if (processes < 2 || requests < 1)
        return 2;
    for (int hop = processes - 2; hop >= 0; hop--) {
        int ends[2];

        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
            return 1;
        switch (fork()) {
        case -1:
            return 1;
        case 0:
            (void)close(ends[0]);
            return serve(ends[1], to, hop);
        default:
            (void)close(ends[1]);
            if (to >= 0)
                (void)close(to);
            to = ends[0];
        }
    }
    result = drive(to);
    (void)close(to);
    while (wait(&status) > 0)
        result |= status != 0;
    return result;
}
