/*
 * The page for Prometheus in a service's loop: beside children, and without descriptors.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "in_loop.h"
#include "tools/base/child.h"
#include "tools/base/metrics.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
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
    const int port = atoi(strrchr(metrics_url(metrics), ':') + 1);
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CHECK(fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
    return fd;
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

/* ---- children ---- */

struct own {
    int fds[3]; /* the test's own, which are no leak */
};

static bool is_own(const struct own *own, int fd)
{
    for (size_t i = 0; i < sizeof(own->fds) / sizeof(own->fds[0]); i++)
        if (own->fds[i] == fd)
            return true;
    return false;
}

/* Returns how many descriptors are sockets or epoll sets. */
static int count_of_server(const struct own *own)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    int count = 0;

    while ((entry = readdir(folder)) != NULL) {
        char target[64] = "";

        if (readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1) < 0)
            continue;
        if (strncmp(target, "socket:", 7) != 0 && strcmp(target, "anon_inode:[eventpoll]") != 0)
            continue;
        if (atoi(entry->d_name) > STDERR_FILENO && !is_own(own, atoi(entry->d_name)))
            count++;
    }
    closedir(folder);
    return count;
}

static int look(const void *own, size_t size)
{
    (void)size;
    return count_of_server(own);
}

static const struct job look_job = {.name = "look", .run = look};

static void ended(void *context, int status)
{
    *(int *)context = status;
    loop_stop(loop);
}

/* A child inherits nothing of the server, and the server does not notice it. */
static void test_child(void)
{
    struct own own = {{-1, -1, -1}};
    int status = -1;
    struct child child = {.ended = ended, .context = &status};

    begin();
    own.fds[0] = connect_there();
    own.fds[1] = connect_there();
    for (int tries = 0; count_of_server(&own) != 4 && tries < 6000; tries++)
        run_for(10);
    CHECK(count_of_server(&own) == 4); /* listening, epoll, two connections */
    CHECK(child_start(loop, &child,
                      &(struct child_order){.job = &look_job, .bytes = &own, .size = sizeof(own)}));
    ask(own.fds[0]);
    run_for(60000);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    check_answer(own.fds[0]);
    ask(own.fds[1]);
    check_answer(own.fds[1]);
    own.fds[2] = connect_there();
    ask(own.fds[2]);
    check_answer(own.fds[2]);
    own = (struct own){{-1, -1, -1}};
    CHECK(count_of_server(&own) == 2);
    end();
    CHECK(count_of_server(&own) == 0);
}

/* ---- no descriptors ---- */

static double cpu_ms(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e3 + (double)used.tv_nsec / 1e6;
}

/* Without descriptors no connection can be accepted: the loop does not spin, and accepts when there
 * are descriptors again. */
static void test_no_descriptors(void)
{
    struct rlimit limit;
    int fds[64], count = 0;
    double used_ms;
    int fd;

    begin();
    fd = connect_there();
    ask(fd);
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = 64;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    while (count < 64 && (fds[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        count++;
    used_ms = cpu_ms();
    run_for(500);
    CHECK(cpu_ms() - used_ms < 100);
    while (count > 0)
        close(fds[--count]);
    check_answer(fd);
    end();
}

/* ---- errors ---- */

static void test_error(void)
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

int main(int argc, char *argv[])
{
    static const struct job *const jobs[] = {&look_job, NULL};
    int status;

    if (job_is_done(argc, argv, jobs, &status))
        return status;
    test_child();
    test_no_descriptors();
    test_error();
    return check_status();
}
