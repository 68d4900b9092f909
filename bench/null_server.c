/*
 * A collector that keeps nothing: takes HTTP/1.1 requests on loopback and answers each with 202.
 *
 *     null_server [count | latency] [MILLISECONDS] [ADDRESS:PORT]
 *
 * MILLISECONDS delays each answer, as a collector does that is slow or far away.
 * Requests on several connections do not wait for each other.
 *
 * The program prints "null_server: listening on ADDRESS:PORT"; the default is any port of
 * 127.0.0.1. At SIGTERM or SIGINT it prints "requests N spans N bytes N". Without "count" or
 * "latency", the number of spans is 0. With "latency" it also prints "latency p50 N p99 N max N":
 * the microseconds from the end of a span to the arrival of its request.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/date.h"

#include <arpa/inet.h>
#include <err.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NULL_MEMORY (512U << 10) /* of a connection: the most bytes of one read */

enum { COUNT_NOTHING, COUNT_SPANS, COUNT_LATENCY };

/* A request. The data is kept only if its spans are counted. */
struct null_body {
    size_t length;
    size_t capacity;
    char *data;
};

static int counting;
static long pause_ms;
static struct MHD_Response *accepted;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the following */
static uint64_t requests, spans, bytes;
static uint32_t *latencies; /* us */
static size_t latency_count, latency_capacity;

static void keep(struct null_body *body, const char *data, size_t length)
{
    if (counting == COUNT_NOTHING) {
        body->length += length;
        return;
    }
    if (body->length + length > body->capacity) {
        body->capacity = 2 * (body->length + length);
        body->data = realloc(body->data, body->capacity);
        if (!body->data)
            err(1, "a body");
    }
    memcpy(body->data + body->length, data, length);
    body->length += length;
}

static int64_t number_after(const char *text, const char *end, const char *key)
{
    const char *at = memmem(text, (size_t)(end - text), key, strlen(key));

    return at ? strtoll(at + strlen(key), NULL, 10) : 0;
}

static void add_latency(int64_t latency)
{
    if (latency_count == latency_capacity) {
        latency_capacity = latency_capacity ? 2 * latency_capacity : 65536;
        latencies = realloc(latencies, latency_capacity * sizeof(*latencies));
        if (!latencies)
            err(1, "latencies");
    }
    latencies[latency_count++] = latency > 0 ? (uint32_t)latency : 0;
}

/* In the JSON, a span begins with its trace id, and its own time precedes those of annotations. */
static void count_body(const char *body, size_t length)
{
    static const char mark[] = "\"traceId\":\"";
    const char *end = body + length;
    const int64_t now = counting == COUNT_LATENCY ? wall_clock_ns() / 1000 : 0;

    while ((body = memmem(body, (size_t)(end - body), mark, sizeof(mark) - 1))) {
        spans++;
        body += sizeof(mark) - 1;
        if (counting == COUNT_LATENCY) {
            const int64_t start = number_after(body, end, "\"timestamp\":");
            const char *next = memchr(body, '}', (size_t)(end - body));

            add_latency(now - start - number_after(body, next ? next : end, "\"duration\":"));
        }
    }
}

static void finish_request(struct null_body *body)
{
    pthread_mutex_lock(&lock);
    requests++;
    bytes += body->length;
    if (counting != COUNT_NOTHING)
        count_body(body->data, body->length);
    pthread_mutex_unlock(&lock);
    free(body->data);
    free(body);
    if (pause_ms > 0)
        nanosleep(&(struct timespec){pause_ms / 1000, pause_ms % 1000 * 1000000}, NULL);
}

/* Called by libmicrohttpd, which has a thread for each connection. */
static enum MHD_Result serve(void *unused, struct MHD_Connection *connection, const char *url,
                             const char *method, const char *version, const char *data,
                             size_t *size, void **body)
{
    (void)unused, (void)url, (void)method, (void)version;
    if (!*body) {
        *body = calloc(1, sizeof(struct null_body));
        return *body ? MHD_YES : MHD_NO;
    }
    if (*size > 0) {
        keep(*body, data, *size);
        *size = 0;
        return MHD_YES;
    }
    finish_request(*body);
    *body = NULL;
    return MHD_queue_response(connection, MHD_HTTP_ACCEPTED, accepted);
}

/* Called at the end of each request. Frees the body of a request that has broken off. */
static void forget(void *unused, struct MHD_Connection *connection, void **body,
                   enum MHD_RequestTerminationCode why)
{
    (void)unused, (void)connection, (void)why;
    if (*body)
        free(((struct null_body *)*body)->data);
    free(*body);
}

static int compare(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void print_counts(void)
{
    printf("requests %" PRIu64 " spans %" PRIu64 " bytes %" PRIu64 "\n", requests, spans, bytes);
    if (latency_count == 0)
        return;
    qsort(latencies, latency_count, sizeof(*latencies), compare);
    printf("latency p50 %u p99 %u max %u\n", latencies[latency_count / 2],
           latencies[latency_count * 99 / 100], latencies[latency_count - 1]);
}

static bool read_address(const char *text, struct sockaddr_in *address)
{
    char ip[32];
    unsigned short port;

    if (sscanf(text, "%31[0-9.]:%hu", ip, &port) != 2)
        return false;
    address->sin_port = htons(port);
    return inet_pton(AF_INET, ip, &address->sin_addr) == 1;
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct MHD_Daemon *daemon;
    sigset_t ends;
    int signal;

    for (int i = 1; i < argc; i++) {
        char *end;

        if (strcmp(argv[i], "count") == 0)
            counting = COUNT_SPANS;
        else if (strcmp(argv[i], "latency") == 0)
            counting = COUNT_LATENCY;
        else if (read_address(argv[i], &address))
            ;
        else if ((pause_ms = strtol(argv[i], &end, 10)) <= 0 || *end)
            return fprintf(stderr, "usage: null_server [count | latency] [MILLISECONDS] "
                                   "[ADDRESS:PORT]\n"),
                   2;
    }
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    accepted = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0, NULL,
        NULL, serve, NULL, MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_NOTIFY_COMPLETED, forget,
        NULL, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)NULL_MEMORY, MHD_OPTION_END);
    if (!accepted || !daemon)
        err(1, "listen");
    printf("null_server: listening on %s:%u\n", inet_ntoa(address.sin_addr),
           MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);
    sigwait(&ends, &signal);
    pthread_mutex_lock(&lock);
    print_counts();
    return 0;
}
