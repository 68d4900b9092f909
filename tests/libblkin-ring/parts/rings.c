/* SPDX-License-Identifier: BSD-2-Clause */
#include "rings.h"

#include "babeltrace-plugin/base/unix_socket.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- the memory ---- */

void rings_make(struct rings *rings, uint64_t event_bytes, uint64_t alarm_bytes)
{
    const struct memory_size size = {memory_host_cpus(), event_bytes, alarm_bytes};
    struct error error;

    if (!memory_begin(&rings->memory, geteuid(), &size, &error) ||
        !memory_fill(&rings->memory, rings->memory.bytes, &error)) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    rings->descriptor = rings->memory.fd;
    rings->head = (struct ring_memory *)(void *)rings->memory.at;
    rings->heads = (struct ring_head *)(void *)(rings->memory.at + rings->memory.heads_at);
    rings->cpus = size.cpus;
    rings->bytes = rings->memory.bytes;
}

void rings_close(struct rings *rings)
{
    memory_close(&rings->memory);
}

/* ---- a reader of the memory ---- */

void rings_walk(const struct rings *rings, uint32_t ring, struct rings_walker *walk,
                record_fn *record, void *context)
{
    static struct ring_reader reader; /* uses the memory of its copy again */
    struct ring_entry entry;

    reader.ring = memory_ring(&rings->memory, ring);
    reader.at = 0;
    reader.counts = (struct ring_counts){0};
    if (!ring_read(&reader))
        err(1, "malloc");
    walk->bad += reader.counts.damaged + reader.counts.jumps;
    walk->overwritten += reader.counts.overwritten;
    for (; ring_peek(&reader, &entry); ring_pass(&reader)) {
        walk->records++;
        if (record)
            record(context, &(struct rings_record){ring, reader.at, entry});
    }
}

struct rings_walker rings_walk_all(const struct rings *rings, record_fn *record, void *context)
{
    struct rings_walker walk = {0};

    for (uint32_t ring = 0; ring < memory_rings(&rings->memory); ring++)
        rings_walk(rings, ring, &walk, record, context);
    return walk;
}

static void count_record(void *context, const struct rings_record *record)
{
    unsigned *counts = context;

    counts[record->entry.event]++;
}

unsigned rings_count(const struct rings *rings, unsigned event)
{
    unsigned counts[256] = {0};

    (void)rings_walk_all(rings, count_record, counts);
    return counts[event];
}

/* ---- the agent's socket ---- */

void agent_prepare(struct rings_agent *agent)
{
    const char *folder = getenv("TMPDIR");

    *agent = (struct rings_agent){.listener = -1};
    (void)snprintf(agent->folder, sizeof(agent->folder), "%.40s/rings.XXXXXX",
                   folder ? folder : "/tmp");
    if (!mkdtemp(agent->folder) || chmod(agent->folder, 0755) != 0 ||
        (folder && chmod(folder, 0755) != 0)) /* another user must be able to connect */
        err(1, "%s", agent->folder);
    (void)snprintf(agent->path, sizeof(agent->path), "%s/socket", agent->folder);
    setenv(RING_VARIABLE, agent->path, 1);
}

static void answer(const struct rings_agent *agent, int connection)
{
    const struct rings *rings = __atomic_load_n(&agent->rings, __ATOMIC_ACQUIRE);
    const struct ring_hello hello = {RING_MARK, agent->bytes};
    if (rings)
        (void)unix_socket_send(connection, &hello, sizeof(hello), rings->descriptor, 0);
}

/* Serves connections. A connection without an answer stays open until the end. */
static void *serve(void *argument)
{
    struct rings_agent *agent = argument;
    struct pollfd events[3] = {
        {agent->listener, POLLIN, 0}, {agent->stop[0], POLLIN, 0}, {-1, POLLIN, 0}};
    int open[64], count = 0;
    struct ucred peer;
    socklen_t size = sizeof(peer);

    while ((poll(events, 3, 500) >= 0 || errno == EINTR) && !events[1].revents) {
        const struct rings *rings = __atomic_load_n(&agent->rings, __ATOMIC_ACQUIRE);
        int connection;

        if (rings && !agent->is_quiet)
            (void)__atomic_add_fetch(&rings->head->beats, 1, __ATOMIC_RELAXED);
        if (__atomic_load_n(&agent->is_busy, __ATOMIC_ACQUIRE)) {
            (void)poll(&events[1], 1, 1);
            continue;
        }
        connection = accept4(agent->listener, NULL, NULL, SOCK_CLOEXEC);
        if (events[2].revents && unix_socket_sender(events[2].fd, &agent->user))
            answer(agent, events[2].fd);
        if (connection < 0)
            continue;
        if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
            agent->user = peer.uid;
        (void)__atomic_add_fetch(&agent->asked, 1, __ATOMIC_RELEASE);
        answer(agent, connection);
        (void)__atomic_add_fetch(&agent->answered, 1, __ATOMIC_RELEASE);
        if (agent->stays)
            events[2].fd = connection;
        if ((agent->rings && !agent->stays) || count == 64)
            close(connection);
        else
            open[count++] = connection;
    }
    while (count > 0)
        close(open[--count]);
    return NULL;
}

void agent_start(struct rings_agent *agent, const struct rings *rings)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    agent->rings = rings;
    agent->bytes = rings ? rings->bytes : 0;
    agent->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* the socket gets its name when it listens: a refused program asks again only after a second */
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s.new", agent->path);
    if (agent->listener < 0 ||
        bind(agent->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        !unix_socket_name_senders(agent->listener) || chmod(address.sun_path, 0777) != 0 ||
        listen(agent->listener, 16) != 0 || rename(address.sun_path, agent->path) != 0 ||
        pipe2(agent->stop, O_CLOEXEC) != 0 ||
        (errno = pthread_create(&agent->thread, NULL, serve, agent)) != 0)
        err(1, "%s", agent->path);
}

void agent_give(struct rings_agent *agent, const struct rings *rings)
{
    agent->bytes = rings->bytes;
    __atomic_store_n(&agent->rings, rings, __ATOMIC_RELEASE);
}

unsigned agent_asked(const struct rings_agent *agent)
{
    return __atomic_load_n(&agent->asked, __ATOMIC_ACQUIRE);
}

void agent_stop(struct rings_agent *agent)
{
    close(agent->stop[1]);
    pthread_join(agent->thread, NULL);
    close(agent->stop[0]);
    close(agent->listener);
    agent->listener = -1;
    unlink(agent->path);
}

void agent_remove(struct rings_agent *agent)
{
    rmdir(agent->folder);
}
