/*
 * A collector that stores nothing: takes HTTP/1.1 requests on loopback and answers each with 202.
 *
 *     null_server [count | latency | traces SPANS] [MILLISECONDS] [ADDRESS:PORT]
 *
 * With MILLISECONDS each answer comes so late, as from a slow or a distant collector. Requests on
 * several connections do not wait for each other.
 *
 * Prints "listening on 127.0.0.1:PORT", or the given address. At SIGTERM or SIGINT it prints
 * "requests N spans N bytes N", with spans only for "count". "latency" adds, in microseconds from
 * the end of a span to the answer, "latency p50 N p99 N max N". "traces" adds "traces N whole N": a
 * trace is whole if it came with SPANS spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHUNK      (256U << 10)
#define HEAD_MAX   16384U
#define TRACES_MAX (UINT64_C(1) << 23)

static const char accepted[] = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";

enum { COUNT_NOTHING, COUNT_SPANS, COUNT_LATENCY, COUNT_TRACES };

/* A connection reads a request's head, then its body. It keeps the body only to count spans. */
struct connection {
    int fd; /* -1: closed, and freed with its answer */
    bool in_body;
    bool is_waiting; /* whether an answer is due */
    int64_t due_us;
    struct connection *next; /* with the next answer */
    size_t length;           /* of data */
    size_t capacity;         /* of data */
    size_t left;             /* of the body, to read */
    char *data;
};

static int counting;
static long pause_ms;
static struct connection *first_due, *last_due;
static uint64_t requests, spans, bytes;
static uint32_t *latencies; /* us */
static size_t latency_count, latency_capacity;
static struct {
    uint64_t id; /* 0: free slot */
    uint64_t spans;
} * traces; /* open addressing with TRACES_MAX slots */
static uint64_t trace_count, spans_of_trace;

static void die(const char *what)
{
    fprintf(stderr, "null_server: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void keep(struct connection *connection, const char *data, size_t length)
{
    if (connection->length + length > connection->capacity) {
        connection->capacity = 2 * (connection->length + length);
        connection->data = realloc(connection->data, connection->capacity);
        if (!connection->data)
            die("a body");
    }
    memcpy(connection->data + connection->length, data, length);
    connection->length += length;
}

static int64_t clock_us(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
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
            die("latencies");
    }
    latencies[latency_count++] = latency > 0 ? (uint32_t)latency : 0;
}

static void count_trace(const char *digits, const char *end)
{
    const char *quote = memchr(digits, '"', (size_t)(end - digits));
    char text[17] = "";
    uint64_t id, i;

    if (!quote || quote - digits < 16)
        return;
    memcpy(text, quote - 16, 16);
    id = strtoull(text, NULL, 16);
    for (i = id % TRACES_MAX; traces[i].id != 0 && traces[i].id != id; i = (i + 1) % TRACES_MAX)
        ;
    if (traces[i].id == 0 && trace_count < TRACES_MAX / 2) {
        trace_count++;
        traces[i].id = id;
    }
    traces[i].spans += traces[i].id != 0;
}

/* A span begins with its trace id; its own time comes before that of its annotations. */
static void count_body(const char *body, size_t length)
{
    static const char mark[] = "\"traceId\":\"";
    const char *end = body + length;
    const int64_t now = counting == COUNT_LATENCY ? clock_us(CLOCK_REALTIME) : 0;

    while ((body = memmem(body, (size_t)(end - body), mark, sizeof(mark) - 1))) {
        spans++;
        body += sizeof(mark) - 1;
        if (counting == COUNT_TRACES)
            count_trace(body, end);
        if (counting == COUNT_LATENCY) {
            const int64_t start = number_after(body, end, "\"timestamp\":");
            const char *next = memchr(body, '}', (size_t)(end - body));

            add_latency(now - start - number_after(body, next ? next : end, "\"duration\":"));
        }
    }
}

static bool answer(const struct connection *connection)
{
    return send(connection->fd, accepted, sizeof(accepted) - 1, MSG_NOSIGNAL) ==
           (ssize_t)sizeof(accepted) - 1;
}

/* All answers have the same delay, so the first request is the first due. */
static bool answer_later(struct connection *connection)
{
    connection->is_waiting = true;
    connection->due_us = clock_us(CLOCK_MONOTONIC) + pause_ms * 1000;
    connection->next = NULL;
    if (first_due)
        last_due->next = connection;
    else
        first_due = connection;
    last_due = connection;
    return true;
}

static bool finish_request(struct connection *connection)
{
    requests++;
    if (counting != COUNT_NOTHING)
        count_body(connection->data, connection->length);
    connection->length = 0;
    connection->in_body = false;
    return pause_ms > 0 ? answer_later(connection) : answer(connection);
}

/* Takes the bytes that belong to the body. Returns their number. */
static size_t take_body(struct connection *connection, const char *data, size_t length)
{
    if (length > connection->left)
        length = connection->left;
    if (counting != COUNT_NOTHING)
        keep(connection, data, length);
    connection->left -= length;
    bytes += length;
    return length;
}

static bool read_head(struct connection *connection)
{
    static const char name[] = "\r\nContent-Length:";
    const char *at;

    keep(connection, "", 1);
    at = strcasestr(connection->data, name);
    if (!at) {
        fprintf(stderr, "null_server: a request without Content-Length\n");
        return false;
    }
    connection->left = strtoull(at + sizeof(name) - 1, NULL, 10);
    connection->length = 0;
    connection->in_body = true;
    return true;
}

/* Returns the bytes that belong to the head; sets *ends when the head is complete. */
static size_t take_head(struct connection *connection, const char *data, size_t length, bool *ends)
{
    size_t taken = 0;

    *ends = false;
    while (taken < length && !*ends && connection->length < HEAD_MAX) {
        keep(connection, data + taken++, 1);
        *ends = connection->length >= 4 &&
                memcmp(connection->data + connection->length - 4, "\r\n\r\n", 4) == 0;
    }
    return taken;
}

static bool take(struct connection *connection, const char *data, size_t length)
{
    bool ends;

    while (length > 0) {
        size_t taken;

        if (connection->in_body) {
            taken = take_body(connection, data, length);
        } else {
            taken = take_head(connection, data, length, &ends);
            if (taken == 0 || (ends && !read_head(connection)))
                return false;
        }
        data += taken;
        length -= taken;
        if (connection->in_body && connection->left == 0 && !finish_request(connection))
            return false;
    }
    return true;
}

static void end_connection(struct connection *connection)
{
    close(connection->fd);
    connection->fd = -1;
    if (connection->is_waiting)
        return;
    free(connection->data);
    free(connection);
}

/* Sends due answers. Returns the time until the next one, for epoll_wait(). */
static int answer_due(void)
{
    while (first_due) {
        struct connection *connection = first_due;
        const int64_t left_us = connection->due_us - clock_us(CLOCK_MONOTONIC);

        if (left_us > 0)
            return (int)((left_us + 999) / 1000);
        first_due = connection->next;
        connection->is_waiting = false;
        if (connection->fd < 0) {
            free(connection->data);
            free(connection);
        } else {
            (void)answer(connection); /* a closed connection is read as well */
        }
    }
    return -1;
}

static void serve(struct connection *connection)
{
    static char chunk[CHUNK];
    const ssize_t got = recv(connection->fd, chunk, sizeof(chunk), 0);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0 || !take(connection, chunk, (size_t)got))
        end_connection(connection);
}

static void watch(int epoll, int fd, void *data)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = data};

    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        die("epoll");
}

static void accept_one(int epoll, int listener)
{
    struct connection *connection = calloc(1, sizeof(*connection));

    if (!connection)
        die("a connection");
    connection->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection->fd < 0)
        free(connection);
    else
        watch(epoll, connection->fd, connection);
}

static int listen_on(struct sockaddr_in address)
{
    socklen_t length = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        die("listen");
    printf("null_server: listening on %s:%u\n", inet_ntoa(address.sin_addr),
           ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

static int signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

static int compare(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static void print_counts(void)
{
    printf("requests %" PRIu64 " spans %" PRIu64 " bytes %" PRIu64 "\n", requests, spans, bytes);
    if (counting == COUNT_TRACES) {
        uint64_t whole = 0;

        for (uint64_t i = 0; i < TRACES_MAX; i++)
            whole += traces[i].spans == spans_of_trace;
        printf("traces %" PRIu64 " whole %" PRIu64 "\n", trace_count, whole);
    }
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
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int ends = signals(), listener;
    struct epoll_event events[16];

    for (int i = 1; i < argc; i++) {
        char *end;

        if (strcmp(argv[i], "count") == 0)
            counting = COUNT_SPANS;
        else if (strcmp(argv[i], "latency") == 0)
            counting = COUNT_LATENCY;
        else if (strcmp(argv[i], "traces") == 0 && i + 1 < argc &&
                 (spans_of_trace = strtoull(argv[++i], NULL, 10)) > 0)
            counting = COUNT_TRACES;
        else if (read_address(argv[i], &address))
            ;
        else if ((pause_ms = strtol(argv[i], &end, 10)) <= 0 || *end)
            return fprintf(stderr,
                           "usage: null_server [count | latency | traces SPANS] [MILLISECONDS] "
                           "[ADDRESS:PORT]\n"),
                   2;
    }
    if (counting == COUNT_TRACES && (traces = calloc(TRACES_MAX, sizeof(*traces))) == NULL)
        die("traces");
    listener = listen_on(address);
    watch(epoll, listener, &listener);
    watch(epoll, ends, &ends);
    for (;;) {
        const int timeout_ms = answer_due();
        const int count = epoll_wait(epoll, events, sizeof(events) / sizeof(events[0]), timeout_ms);

        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == &ends)
                return print_counts(), 0;
            if (events[i].data.ptr == &listener)
                accept_one(epoll, listener);
            else
                serve(events[i].data.ptr);
        }
    }
}
