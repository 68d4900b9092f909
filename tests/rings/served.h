/*
 * A service that holds rings, the fdserver (fdserver.h), and programs that ask for memory: each is
 * a child of the test. A program is the test's own executable with more arguments.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_RINGS_SERVED_H
#define TESTS_RINGS_SERVED_H

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/unix_socket.h"
#include "tools/rings/holder.h"
#include "tools/rings/ring_read.h"
#include "tools/rings/fdserver.h"
#include "tracepoints/format/provider_table.h"
#include "waits.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct served {
    char path[200], fdserver[200]; /* paths of the two sockets */
    pid_t keeper, service;
};

/* Notes of the test and its programs for each other. */
static inline void *served_share(int fd, size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (at == MAP_FAILED)
        exit(1);
    return at;
}

static inline uint64_t get(const uint64_t *shared)
{
    return __atomic_load_n(shared, __ATOMIC_ACQUIRE);
}

/* Marks the memory as busy, as if programs had written much: the user gets a larger memory. */
static inline void served_make_busy(void *context, struct held *held)
{
    (void)context;
    held->is_busy = true;
}

static inline void served_ignore(void *context, struct held *held)
{
    (void)context, (void)held;
}

static inline void served_run(const struct served *served, uint64_t event_bytes, int ready)
{
    static const struct loop_signals signals;
    const struct holder_options options = {
        .path = served->path,
        .fdserver = served->fdserver,
        .answer_ms = PATIENCE_MS,
        .size = {memory_host_cpus(), event_bytes, RING_BYTES_MIN},
        .max_users = 8,
        .max_bytes = UINT64_C(1) << 32,
        .left_ms = 1000,
        .idle_ms = 600000,
        .hold_ms = 600000,
    };
    const struct holder_callbacks callbacks = {served_make_busy, served_ignore, NULL};
    struct loop *loop = loop_new(&signals);
    struct error error;

    if (!holder_open(loop, &options, &callbacks, &error)) {
        fprintf(stderr, "%s\n", error.text);
        _exit(1);
    }
    (void)!write(ready, "", 1);
    loop_run(loop);
    _exit(1);
}

/* Programs can connect when this returns. */
static inline void served_begin(struct served *served, const char *folder, uint64_t event_bytes)
{
    int ready[2];
    char byte;

    (void)snprintf(served->path, sizeof(served->path), "%s/rings", folder);
    (void)snprintf(served->fdserver, sizeof(served->fdserver), "%s/fdserver", folder);
    served->keeper = fork();
    if (served->keeper == 0)
        _exit(fdserver_run(served->fdserver));
    for (int64_t end_ms = 0; !is_listening(served->fdserver);)
        if (!wait_up_to(PATIENCE_MS, &end_ms))
            exit(1);
    if (pipe(ready) != 0)
        exit(1);
    served->service = fork();
    if (served->service == 0)
        served_run(served, event_bytes, ready[1]);
    (void)close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        exit(1);
    (void)close(ready[0]);
}

/* Asks for a memory at that socket. Returns the size of a ring; 0: no memory. */
static inline uint64_t served_ask(const char *path)
{
    struct ring_hello hello = {.mark = 0};
    struct memory memory;
    struct error error;
    const int socket = unix_socket_connect(SOCK_SEQPACKET, path, &error);
    struct pollfd wait = {socket, POLLIN, 0};
    uint64_t bytes;
    int fd = -1;

    if (socket < 0)
        return 0;
    (void)poll(&wait, 1, PATIENCE_MS); /* a refusal hangs up at once */
    (void)unix_socket_receive(socket, &hello, sizeof(hello), &fd, MSG_DONTWAIT);
    (void)close(socket);
    if (fd < 0 || hello.mark != RING_MARK || !memory_open(&memory, fd, &error))
        return 0;
    bytes = memory_state(&memory) == RING_ON ? memory.size.event_bytes : 0;
    memory_close(&memory);
    return bytes;
}

/* A user's first memory is a small one where rings are large or CPUs many: returns when the next
 * one is there. */
static inline bool served_await_all(const struct served *served, uint64_t event_bytes)
{
    for (int64_t end_ms = 0; served_ask(served->path) != event_bytes;)
        if (!wait_up_to(PATIENCE_MS, &end_ms))
            return false;
    return true;
}

static inline void served_kill(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

/* Gets the memories that the fdserver has, after the service was killed. */
static inline bool served_kept(const struct served *served, notify_stored_fn *give, void *context)
{
    struct error error;
    int socket;

    fdserver_open(&socket, NULL, served->fdserver, 2000, give, context, &error);
    if (socket >= 0)
        (void)close(socket);
    return socket >= 0;
}

/* Returns the number of records in a ring without damage. */
static inline uint64_t served_spans(struct ring ring, uint64_t *overwritten)
{
    struct ring_reader reader;
    struct ring_entry entry;
    uint64_t spans = 0;

    ring_reader_open(&reader, ring, 0);
    CHECK(ring_read(&reader));
    for (; ring_peek(&reader, &entry); ring_pass(&reader))
        spans += entry.event == BLKIN_EVENT_SPAN;
    *overwritten += reader.counts.overwritten;
    CHECK(reader.counts.damaged == 0 && reader.counts.jumps == 0);
    CHECK(reader.counts.read + reader.counts.overwritten == ring_committed(ring));
    ring_reader_close(&reader);
    return spans;
}

static inline void served_kill_service(const struct served *served)
{
    served_kill(served->service);
}

/* Kills the fdserver with all its descriptors. */
static inline void served_kill_keeper(const struct served *served)
{
    served_kill(served->keeper);
    (void)unlink(served->fdserver);
    (void)unlink(served->path);
}

static inline pid_t served_program(const struct served *served, char *arguments[])
{
    const pid_t pid = fork();

    if (pid == 0) {
        (void)setenv(RING_VARIABLE, served->path, 1);
        (void)execv("/proc/self/exe", arguments);
        _exit(1);
    }
    return pid;
}

#endif
