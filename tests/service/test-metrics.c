/*
 * The page for Prometheus in a service's loop, also while no descriptor is free. test-loop.c checks
 * that a child inherits no descriptor.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "in_loop.h"
#include "babeltrace-plugin/base/listen.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "loopback.h"
#include "tools/base/metrics.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static struct metrics *metrics;

static char *page(void *context)
{
    (void)context;
    return strdup("a_metric 1\n");
}

static void begin(void)
{
    struct error error;

    loop = loop_new(&signals);
    metrics = metrics_open(loop, "prometheus-listen", "0", page, NULL, &error);
    CHECK(loop && metrics);
}

static void end(void)
{
    metrics_close(metrics);
    loop_free(loop);
}

static int connect_there(void)
{
    return loopback_connect((uint16_t)atoi(strrchr(metrics_url(metrics), ':') + 1));
}

static void ask(int fd)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

    CHECK(send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) == (ssize_t)sizeof(request) - 1);
}

/* Runs the loop until the whole answer is there, and the server has hung up. */
static void check_answer(int fd)
{
    char answer[4096] = "";
    size_t length = 0;
    ssize_t n = -1;

    for (int tries = 0; n != 0 && tries < 6000; tries++) {
        n = recv(fd, answer + length, sizeof(answer) - 1 - length, MSG_DONTWAIT);
        if (n > 0)
            length += (size_t)n;
        else if (n < 0)
            run_for(10);
    }
    CHECK(n == 0);
    CHECK(strncmp(answer, "HTTP/1.1 200 OK\r\n", 17) == 0);
    CHECK(strstr(answer, "\r\n\r\na_metric 1\n") != NULL);
    close(fd);
}

/* ---- no descriptors ---- */

static int64_t attempts; /* calls of accept4() */

int __real_accept4(int fd, struct sockaddr *from, socklen_t *length, int flags);
int __wrap_accept4(int fd, struct sockaddr *from, socklen_t *length, int flags);
int __wrap_accept4(int fd, struct sockaddr *from, socklen_t *length, int flags)
{
    attempts++;
    return __real_accept4(fd, from, length, flags);
}

/* Without descriptors no connection can be accepted: the loop tries seldom, and accepts when there
 * are descriptors again. */
TEST(test_no_descriptors)
{
    const int first = dup(0);
    struct rlimit limit;
    int fds[64], count = 0;
    int64_t begin_ms;
    int fd;

    close(first);
    begin();
    fd = connect_there();
    ask(fd);
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = 64;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    while (count < 64 && (fds[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        count++;
    attempts = 0;
    begin_ms = clock_ms();
    run_for(500);
    CHECK(attempts > 0 && attempts <= (clock_ms() - begin_ms) / LISTENER_BACKOFF_MS + 2);
    while (count > 0)
        close(fds[--count]);
    check_answer(fd);
    end();
    CHECK(dup(0) == first); /* nothing is left open */
    close(first);
}

/* ---- errors ---- */

TEST(test_error)
{
    struct error error;
    char where[32];

    begin();
    CHECK(!metrics_open(loop, "host-listen", "nonsense", page, NULL, &error));
    CHECK(strstr(error.text, "host-listen \"nonsense\": expected PORT") != NULL);
    snprintf(where, sizeof(where), "%d", atoi(strrchr(metrics_url(metrics), ':') + 1));
    CHECK(!metrics_open(loop, "host-listen", where, page, NULL, &error));
    CHECK(strstr(error.text, ": cannot listen: Address already in use") != NULL);
    end();
}

CHECK_MAIN
