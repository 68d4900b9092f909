/*
 * A server with one of the usual designs:
 *
 *     serve ADDRESS threads|shared|fork|epoll|poll|select|pool CONNECTIONS
 *
 * The server ends after CONNECTIONS connections. shared: each connection has eight threads; a
 * thread reads a request, and answers it in two parts. pool: one thread reads, another one answers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "wire.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/wait.h>

static char body[BODY_MAX];
static int listener;
static int left; /* connections that have not ended, also those to come */

/* ---- a thread or a process for each connection ---- */

static void serve_all(int fd)
{
    static __thread char taken[BODY_MAX];
    char line[LINE];
    unsigned in, out;

    for (unsigned way = 0; take_all(way, fd, line, LINE); way++) {
        line_read(line, &in, &out);
        if (!take_all(way + 1, fd, taken, in))
            break;
        give_all(way, fd, body, out);
    }
    close(fd);
}

static void *serve_thread(void *fd)
{
    serve_all((int)(long)fd);
    return NULL;
}

static void serve_by_threads(void)
{
    pthread_t threads[64];
    int count = left;

    if (count > 64)
        exit(2);
    for (int i = 0; i < count; i++) {
        const int fd = accept(listener, NULL, NULL);

        if (fd < 0 || pthread_create(&threads[i], NULL, serve_thread, (void *)(long)fd) != 0)
            err(1, "thread");
    }
    while (count > 0)
        pthread_join(threads[--count], NULL);
}

/* ---- eight threads for each connection ---- */

#define SHARERS 8

struct serving_shared {
    int fd;
    pthread_mutex_t reading, writing;
    pthread_t threads[SHARERS];
};

/* Sends an answer in two parts. Before the second part, another thread may read the peer's next
 * request. */
static void give_parts(unsigned way, int fd, unsigned out)
{
    unsigned first = out / 2;

    while (first) {
        const ssize_t count = send(fd, body, first, MSG_MORE | MSG_NOSIGNAL);

        if (count < 0)
            err(1, "send");
        first -= (unsigned)count;
    }
    give_all(way, fd, body, out - out / 2);
}

static void *serve_shared(void *argument)
{
    struct serving_shared *shared = argument;
    char *taken = malloc(BODY_MAX), line[LINE];
    unsigned in, out;

    for (unsigned way = 0;; way++) {
        pthread_mutex_lock(&shared->reading);
        if (!take_all(way, shared->fd, line, LINE))
            break;
        line_read(line, &in, &out);
        if (!take_all(way + 1, shared->fd, taken, in))
            break;
        pthread_mutex_unlock(&shared->reading);
        pthread_mutex_lock(&shared->writing);
        give_parts(way, shared->fd, out);
        pthread_mutex_unlock(&shared->writing);
    }
    pthread_mutex_unlock(&shared->reading);
    free(taken);
    return NULL;
}

static void serve_by_sharers(void)
{
    struct serving_shared *all = calloc((size_t)left, sizeof(*all));

    for (int i = 0; i < left; i++) {
        all[i].fd = accept(listener, NULL, NULL);
        pthread_mutex_init(&all[i].reading, NULL);
        pthread_mutex_init(&all[i].writing, NULL);
        for (int k = 0; k < SHARERS; k++) {
            if (pthread_create(&all[i].threads[k], NULL, serve_shared, &all[i]) != 0)
                err(1, "thread");
        }
    }
    for (int i = 0; i < left; i++) {
        for (int k = 0; k < SHARERS; k++)
            pthread_join(all[i].threads[k], NULL);
        close(all[i].fd);
    }
    free(all);
}

static void serve_by_forks(void)
{
    int status;

    for (; left > 0; left--) {
        const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

        if (fork() == 0) {
            close(listener);
            serve_all(fd);
            _exit(0);
        }
        close(fd);
    }
    while (wait(&status) > 0) {
        if (status)
            exit(1);
    }
}

/* ---- one thread for all ---- */

struct serve_client {
    int fd;
    char line[LINE];
    size_t line_length;
    unsigned in, out;
    unsigned way;
    bool is_answered_by_other;
};

static struct serve_client *clients;
static int efd;

/* ---- the answering thread of pool ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct serve_client queue[1024]; /* of copies */
static unsigned queue_first, queue_end;
static bool has_ended;

static void *answer_queue(void *unused)
{
    (void)unused;
    for (;;) {
        struct serve_client client;

        pthread_mutex_lock(&lock);
        while (queue_first == queue_end && !has_ended)
            pthread_cond_wait(&changed, &lock);
        if (queue_first == queue_end)
            break;
        client = queue[queue_first++ % 1024];
        pthread_mutex_unlock(&lock);
        give_all(client.way, client.fd, body, client.out);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void hand_over(struct serve_client *client)
{
    pthread_mutex_lock(&lock);
    queue[queue_end++ % 1024] = *client;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

/* ---- events ---- */

/* Returns true if the response is sent, or if the answering thread will send it. */
static bool answer(struct serve_client *client)
{
    if (client->is_answered_by_other) {
        hand_over(client);
        return true;
    }
    while (client->out) {
        const ssize_t count = give_by(client->way++, client->fd, body, client->out);

        if (count < 0 && errno == EAGAIN)
            return false;
        if (count < 0)
            err(1, "write");
        client->out -= (unsigned)count;
    }
    return true;
}

/* Serves the client as far as no call blocks. Returns the events to wait for; 0: the connection has
 * ended. */
static int advance(struct serve_client *client)
{
    static char taken[65536];

    for (;;) {
        ssize_t count;

        if (client->line_length == LINE && !client->in) {
            if (!answer(client))
                return POLLOUT;
            client->line_length = 0;
        }
        if (client->line_length < LINE)
            count = take_by(client->way++, client->fd, client->line + client->line_length,
                            LINE - client->line_length);
        else
            count = take_by(client->way++, client->fd, taken,
                            client->in < sizeof(taken) ? client->in : sizeof(taken));
        if (count < 0 && errno == EAGAIN)
            return POLLIN;
        if (count <= 0)
            break;
        if (client->line_length == LINE) {
            client->in -= (unsigned)count;
            continue;
        }
        client->line_length += (size_t)count;
        if (client->line_length == LINE)
            line_read(client->line, &client->in, &client->out);
    }
    return 0;
}

static struct serve_client *accept_client(bool is_pool)
{
    const int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0)
        return NULL;
    clients[fd] = (struct serve_client){.fd = fd, .is_answered_by_other = is_pool};
    return &clients[fd];
}

static void end_client(struct serve_client *client)
{
    close(client->fd);
    client->fd = -1;
    left--;
}

static void watch(int fd, int how, int operation)
{
    struct epoll_event event = {.events = how == POLLOUT ? EPOLLOUT : EPOLLIN, .data.fd = fd};

    if (epoll_ctl(efd, operation, fd, &event) < 0)
        err(1, "epoll_ctl");
}

static void serve_by_epoll(bool is_pool)
{
    struct epoll_event events[64];

    efd = epoll_create1(EPOLL_CLOEXEC);
    watch(listener, POLLIN, EPOLL_CTL_ADD);
    while (left > 0) {
        const int count = epoll_wait(efd, events, 64, -1);

        for (int i = 0; i < count; i++) {
            struct serve_client *client;
            int next;

            if (events[i].data.fd == listener) {
                while ((client = accept_client(is_pool)))
                    watch(client->fd, POLLIN, EPOLL_CTL_ADD);
                continue;
            }
            client = &clients[events[i].data.fd];
            if (client->fd < 0)
                continue; /* an event from before the close */
            next = advance(client);
            if (next)
                watch(client->fd, next, EPOLL_CTL_MOD);
            else
                end_client(client);
        }
    }
}

static void serve_by_poll(void)
{
    static struct pollfd fds[1024];
    nfds_t count = 1;

    fds[0] = (struct pollfd){listener, POLLIN, 0};
    while (left > 0) {
        if (poll(fds, count, -1) < 0)
            err(1, "poll");
        for (nfds_t i = count - 1; i > 0; i--) {
            if (!fds[i].revents)
                continue;
            fds[i].events = (short)advance(&clients[fds[i].fd]);
            if (!fds[i].events) {
                end_client(&clients[fds[i].fd]);
                fds[i] = fds[--count];
            }
        }
        if (fds[0].revents) {
            struct serve_client *client;

            while ((client = accept_client(false)))
                fds[count++] = (struct pollfd){client->fd, POLLIN, 0};
        }
    }
}

static void serve_by_select(void)
{
    fd_set readable, writable;
    int next[FD_SETSIZE] = {0};

    while (left > 0) {
        FD_ZERO(&readable);
        FD_ZERO(&writable);
        FD_SET(listener, &readable);
        for (int fd = 0; fd < FD_SETSIZE; fd++) {
            if (next[fd] == POLLIN)
                FD_SET(fd, &readable);
            if (next[fd] == POLLOUT)
                FD_SET(fd, &writable);
        }
        if (select(FD_SETSIZE, &readable, &writable, NULL, NULL) < 0)
            err(1, "select");
        for (int fd = 0; fd < FD_SETSIZE; fd++) {
            if (fd == listener || !(FD_ISSET(fd, &readable) || FD_ISSET(fd, &writable)))
                continue;
            next[fd] = advance(&clients[fd]);
            if (!next[fd])
                end_client(&clients[fd]);
        }
        if (FD_ISSET(listener, &readable)) {
            struct serve_client *client;

            while ((client = accept_client(false)))
                next[client->fd] = POLLIN;
        }
    }
}

int main(int argc, char **argv)
{
    struct rlimit limit;
    pthread_t other;

    if (argc != 4)
        return 2;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    memset(body, 'x', sizeof(body));
    clients = calloc(limit.rlim_cur < 65536 ? limit.rlim_cur : 65536, sizeof(*clients));
    listener = listen_at(argv[1]);
    left = atoi(argv[3]);
    if (strcmp(argv[2], "threads") == 0) {
        serve_by_threads();
        return 0;
    }
    if (strcmp(argv[2], "shared") == 0) {
        serve_by_sharers();
        return 0;
    }
    if (strcmp(argv[2], "fork") == 0) {
        serve_by_forks();
        return 0;
    }
    fcntl(listener, F_SETFL, O_NONBLOCK);
    if (strcmp(argv[2], "pool") == 0) {
        pthread_create(&other, NULL, answer_queue, NULL);
        serve_by_epoll(true);
        pthread_mutex_lock(&lock);
        has_ended = true;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
        pthread_join(other, NULL);
    } else if (strcmp(argv[2], "poll") == 0) {
        serve_by_poll();
    } else if (strcmp(argv[2], "select") == 0) {
        serve_by_select();
    } else {
        serve_by_epoll(false);
    }
    return 0;
}
