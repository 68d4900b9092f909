/*
 * The client of the example storage stack: writes blocks, reads each back and compares.
 *
 * Tracing with the span API in C, client side: run_request() starts a new trace for each request.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define _GNU_SOURCE
#include "wire.h"

#include <blkin/blkin.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCK_SIZE        4096
#define BLOCKS_PER_THREAD 256 /* after the last one, again the first */
#define MAX_THREADS       256
#define GATEWAY_TIMEOUT_S 30 /* longer than the gateway takes to give up on the mapper */

struct worker {
    pthread_t thread;
    struct net_address gateway;
    uint64_t first_offset;
    int64_t requests;
    int64_t done, failed, mismatched;
    int fd;
    struct net_address local;
};

/* Fills a block with data that depend on the block and the run, so that an earlier run's data
 * differ. */
static void fill(char *data, uint64_t seed)
{
    for (size_t i = 0; i < BLOCK_SIZE; i += sizeof(seed)) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        memcpy(data + i, &seed, sizeof(seed));
    }
}

static const char *error_text(int status)
{
    return status == EILSEQ ? "not the data that was written" : strerror(status);
}

/*
 * Begins the root of a new trace. The trace's id has 64 bits, not the 128 that the span API would
 * choose: the gateway uses the original API, which knows only 64.
 */
static void begin_trace(struct blkin_span *span, const char *name)
{
    struct blkin_trace_info made;
    struct blkin_context context = {0};

    blkin_init_trace_info(&made);
    context.trace_id = (uint64_t)made.trace_id;
    blkin_span_begin_remote(span, name, BLKIN_CLIENT, &context);
}

/*
 * Makes one request, which is one trace. A write sends data. A read must return data (NULL: any).
 * Sets *status to 0 or an errno; EILSEQ: a read returned other data. Returns -errno if the
 * connection is broken.
 */
static int run_request(struct worker *worker, struct wire_message *request, const char *data,
                       int *status)
{
    char found[BLOCK_SIZE];
    struct blkin_span span;
    int rc;

    begin_trace(&span, wire_op_name(request->op));
    blkin_span_tag_uint64(&span, "offset", request->offset);
    blkin_span_tag_uint64(&span, "length", request->length);
    /* The request carries the context, so the gateway's span is a child. A span that is not
     * recorded leaves zeros: not traced. */
    blkin_context_to_packed(blkin_span_context(&span), &request->trace);

    rc = wire_send_request(worker->fd, request, data);
    if (rc == 0)
        rc = wire_receive_reply(worker->fd, request, found, status);
    if (rc < 0)
        *status = -rc;
    if (rc == 0 && *status == 0 && request->op == WIRE_READ && data &&
        memcmp(found, data, BLOCK_SIZE) != 0)
        *status = EILSEQ;

    if (*status != 0)
        blkin_span_error(&span, error_text(*status));
    blkin_span_end(&span);
    return rc;
}

/* Returns 0, or -1 after a message. */
static int take_snapshot(struct worker *worker)
{
    struct wire_message request = {.op = WIRE_SNAPSHOT};
    int status = 0;

    run_request(worker, &request, NULL, &status);
    if (status != 0)
        fprintf(stderr, "client: snapshot: %s\n", error_text(status));
    return status != 0 ? -1 : 0;
}

static void *run_worker(void *arg)
{
    struct worker *worker = arg;
    const uint64_t seed = (uint64_t)time(NULL) ^ ((uint64_t)getpid() << 32);
    char data[BLOCK_SIZE];
    bool written = false;
    int rc = 0;

    for (int64_t i = 0; i < worker->requests && rc == 0; i++) {
        const uint64_t block = (uint64_t)(i / 2) % BLOCKS_PER_THREAD;
        struct wire_message request = {
            .op = i % 2 == 0 ? WIRE_WRITE : WIRE_READ,
            .length = BLOCK_SIZE,
            .offset = worker->first_offset + block * BLOCK_SIZE,
        };
        int status = 0;

        fill(data, seed + (uint64_t)(i / 2) + worker->first_offset);
        rc = run_request(worker, &request, i % 2 == 0 || written ? data : NULL, &status);
        written = status == 0;
        worker->done++;
        if (status == EILSEQ)
            worker->mismatched++;
        else if (status != 0)
            worker->failed++;
        if (status != 0)
            fprintf(stderr, "client: %s at offset %" PRIu64 ": %s\n", wire_op_name(request.op),
                    request.offset, error_text(status));
    }
    return NULL;
}

/* Returns 0, or -1 after a message. */
static int connect_worker(struct worker *worker, const char *gateway)
{
    worker->fd = net_connect(&worker->gateway, GATEWAY_TIMEOUT_S, &worker->local);
    if (worker->fd < 0) {
        fprintf(stderr, "client: cannot connect to gateway %s: %s; is it running?\n", gateway,
                strerror(-worker->fd));
        return -1;
    }
    return 0;
}

/* Returns -1, after a message, if text is no number from min to max. */
static int64_t number(const char *text, int64_t min, int64_t max)
{
    char *end;
    int64_t value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno == 0 && end != text && *end == '\0' && value >= min && value <= max)
        return value;
    fprintf(stderr, "client: bad number '%s': expected %" PRId64 " to %" PRId64 "\n", text, min,
            max);
    return -1;
}

static int usage(void)
{
    fprintf(stderr, "usage: client --connect HOST:PORT [--requests N] [--threads N] [--offset N]\n"
                    "              [--snapshot]\n"
                    "  --requests  number of requests, writes and reads in turn; default 10\n"
                    "  --threads   number of threads that share the requests; default 1\n"
                    "  --offset    the first byte; each thread needs 1 MiB of its own; default 0\n"
                    "  --snapshot  take a snapshot first: the writes go to copies\n");
    return 2;
}

/* Returns the exit status. */
static int run(const char *gateway, int64_t requests, int threads, int64_t offset, bool snapshot)
{
    static struct worker worker[MAX_THREADS];
    const int64_t pairs = (requests + 1) / 2;
    int64_t done = 0, failed = 0, mismatched = 0;
    struct net_address address;
    int ready, started;
    int rc = 0;

    if (net_resolve(gateway, &address) < 0)
        return 1;
    for (ready = 0; ready < threads; ready++) {
        struct worker *w = &worker[ready];
        w->gateway = address;
        w->first_offset = (uint64_t)offset + (uint64_t)ready * BLOCKS_PER_THREAD * BLOCK_SIZE;
        w->requests = 2 * (pairs / threads + (ready < pairs % threads));
        if (connect_worker(w, gateway) < 0)
            break;
    }
    worker[0].requests -= requests % 2;
    /* A client listens nowhere: port 0 says that there is none. */
    blkin_set_service("client", worker[0].local.ip, 0);
    if (ready == threads && snapshot && take_snapshot(&worker[0]) < 0)
        return 1;
    for (started = 0; ready == threads && started < threads && rc == 0; started += rc == 0)
        rc = pthread_create(&worker[started].thread, NULL, run_worker, &worker[started]);
    if (rc != 0)
        fprintf(stderr, "client: cannot start thread %d: %s\n", started, strerror(rc));
    for (int i = 0; i < started; i++) {
        pthread_join(worker[i].thread, NULL);
        done += worker[i].done;
        failed += worker[i].failed;
        mismatched += worker[i].mismatched;
    }
    for (int i = 0; i < ready; i++)
        close(worker[i].fd);
    if (started > 0)
        printf("client: %" PRId64 " of %" PRId64 " requests done, %" PRId64 " failed, %" PRId64
               " mismatched\n",
               done, requests, failed, mismatched);
    return done == requests && failed == 0 && mismatched == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"connect", required_argument, NULL, 'c'}, {"requests", required_argument, NULL, 'r'},
        {"threads", required_argument, NULL, 't'}, {"offset", required_argument, NULL, 'o'},
        {"snapshot", no_argument, NULL, 's'},      {NULL, 0, NULL, 0},
    };
    const char *gateway = NULL;
    int64_t requests = 10, threads = 1, offset = 0;
    bool snapshot = false;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'c')
            gateway = optarg;
        else if (option == 'r')
            requests = number(optarg, 1, INT64_MAX / 2);
        else if (option == 't')
            threads = number(optarg, 1, MAX_THREADS);
        else if (option == 'o')
            offset = number(optarg, 0, INT64_C(1) << 39);
        else if (option == 's')
            snapshot = true;
        else
            return usage();
    }
    if (!gateway || requests < 0 || threads < 0 || offset < 0 || optind != argc)
        return usage();

    signal(SIGPIPE, SIG_IGN);
    blkin_init(); /* once, before there are threads */
    return run(gateway, requests, (int)threads, offset, snapshot);
}
