/*
 * See memory.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* ---- the memory ---- */

void memory_make(struct memory *memory, uint64_t event_bytes, uint64_t alarm_bytes)
{
    struct ring_memory head = {
        .mark = RING_MARK,
        .cpus = (uint32_t)sysconf(_SC_NPROCESSORS_CONF),
        .user = geteuid(),
        .event_bytes = event_bytes,
        .alarm_bytes = alarm_bytes,
        .state = RING_ON,
    };
    char *base;

    ring_lay_out(&head);
    *memory = (struct memory){
        .descriptor = memfd_create("rings", MFD_CLOEXEC | MFD_ALLOW_SEALING),
        .cpus = head.cpus,
        .event_bytes = event_bytes,
        .alarm_bytes = alarm_bytes,
        .bytes = head.bytes,
    };
    if (memory->descriptor < 0 || ftruncate(memory->descriptor, (off_t)memory->bytes) != 0 ||
        fcntl(memory->descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        fail("memory");
    base = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->descriptor, 0);
    if (base == MAP_FAILED)
        fail("mmap");
    memory->head = (struct ring_memory *)(void *)base;
    memory->heads = (struct ring_head *)(void *)(base + head.heads_at);
    memory->data = base + head.data_at;
    *memory->head = head;
}

void memory_close(struct memory *memory)
{
    munmap(memory->head, memory->bytes);
    close(memory->descriptor);
}

uint64_t memory_ring(const struct memory *memory, uint32_t ring, const char **data)
{
    if (ring < memory->cpus) {
        *data = memory->data + ring * memory->event_bytes;
        return memory->event_bytes;
    }
    *data = memory->data + memory->cpus * memory->event_bytes +
            (ring - memory->cpus) * memory->alarm_bytes;
    return memory->alarm_bytes;
}

/* ---- a reader ---- */

/* [oldest, newest) of the copy is whole. */
static char *copy_ring(const struct memory *memory, uint32_t ring, struct walk *walk)
{
    static char *copy;
    static uint64_t room;
    const char *data;
    const uint64_t bytes = memory_ring(memory, ring, &data);
    uint64_t after;

    if (bytes > room) {
        free(copy);
        copy = malloc(bytes);
        room = bytes;
        if (!copy)
            fail("malloc");
    }
    walk->newest = __atomic_load_n(&memory->heads[ring].committed, __ATOMIC_ACQUIRE);
    memcpy(copy, data, bytes);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    after = __atomic_load_n(&memory->heads[ring].committed, __ATOMIC_RELAXED);
    walk->oldest = after + RING_RECORD_MAX > bytes ? after + RING_RECORD_MAX - bytes : 0;
    return copy;
}

void memory_walk(const struct memory *memory, uint32_t ring, struct walk *walk, record_fn *record,
                 void *context)
{
    const char *data, *copy = copy_ring(memory, ring, walk);
    const uint64_t mask = memory_ring(memory, ring, &data) - 1;
    uint64_t trailer;

    for (uint64_t at = walk->newest; at > walk->oldest && at - walk->oldest >= 8;) {
        const uint64_t trailer_at = at - RING_TRAILER_SIZE;
        struct ring_record head;
        uint64_t size;

        memcpy(&trailer, copy + (trailer_at & mask), sizeof(trailer));
        if (!ring_is_trailer(trailer, trailer_at)) {
            walk->bad++;
            return;
        }
        size = ring_record_size(ring_length_of(trailer));
        if (at - walk->oldest < size)
            return;
        at -= size;
        if (ring_event_of(trailer) == RING_PAD)
            continue;
        memcpy(&head, copy + (at & mask), sizeof(head));
        walk->records++;
        if (record)
            record(context, &(struct record){
                                .ring = ring,
                                .at = at,
                                .pid = head.pid,
                                .event = ring_event_of(trailer),
                                .payload = copy + (at & mask) + sizeof(head),
                                .length = ring_length_of(trailer) - sizeof(head),
                            });
    }
}

struct walk memory_walk_all(const struct memory *memory, record_fn *record, void *context)
{
    struct walk walk = {0};

    for (uint32_t ring = 0; ring < 2 * memory->cpus; ring++)
        memory_walk(memory, ring, &walk, record, context);
    return walk;
}

struct counting {
    int event;
    unsigned count;
};

static void count_record(void *context, const struct record *record)
{
    struct counting *counting = context;

    counting->count += counting->event < 0 || record->event == (unsigned)counting->event;
}

unsigned memory_count(const struct memory *memory, int event)
{
    struct counting counting = {.event = event};

    (void)memory_walk_all(memory, count_record, &counting);
    return counting.count;
}

/* ---- the agent's socket ---- */

void agent_prepare(struct agent *agent)
{
    const char *folder = getenv("TMPDIR");

    *agent = (struct agent){.listener = -1};
    (void)snprintf(agent->folder, sizeof(agent->folder), "%.40s/rings.XXXXXX",
                   folder ? folder : "/tmp");
    if (!mkdtemp(agent->folder) || chmod(agent->folder, 0755) != 0 ||
        (folder && chmod(folder, 0755) != 0)) /* for another user */
        fail(agent->folder);
    (void)snprintf(agent->path, sizeof(agent->path), "%s/socket", agent->folder);
    setenv(RING_VARIABLE, agent->path, 1);
}

static void answer(struct agent *agent, int connection)
{
    const struct memory *memory = __atomic_load_n(&agent->memory, __ATOMIC_ACQUIRE);
    struct ring_hello hello = {RING_MARK, agent->bytes};
    struct iovec text = {&hello, sizeof(hello)};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } room = {.bytes = {0}};
    struct msghdr message = {
        .msg_iov = &text,
        .msg_iovlen = 1,
        .msg_control = room.bytes,
        .msg_controllen = sizeof(room.bytes),
    };
    struct cmsghdr *part = CMSG_FIRSTHDR(&message);
    struct ucred peer;
    socklen_t size = sizeof(peer);

    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
        agent->user = peer.uid;
    if (!memory)
        return;
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(part), &memory->descriptor, sizeof(int));
    (void)sendmsg(connection, &message, MSG_NOSIGNAL);
}

/* A connection that gets no answer stays open until the end. */
static void *serve(void *argument)
{
    struct agent *agent = argument;
    struct pollfd events[2] = {{agent->listener, POLLIN, 0}, {agent->stop[0], POLLIN, 0}};
    int open[64], count = 0;

    while ((poll(events, 2, 500) >= 0 || errno == EINTR) && !events[1].revents) {
        const struct memory *memory = __atomic_load_n(&agent->memory, __ATOMIC_ACQUIRE);
        const int connection = accept4(agent->listener, NULL, NULL, SOCK_CLOEXEC);

        if (memory)
            (void)__atomic_add_fetch(&memory->head->beats, 1, __ATOMIC_RELAXED);
        if (connection < 0)
            continue;
        answer(agent, connection);
        (void)__atomic_add_fetch(&agent->asked, 1, __ATOMIC_RELEASE);
        if (agent->memory || count == 64)
            close(connection);
        else
            open[count++] = connection;
    }
    while (count > 0)
        close(open[--count]);
    return NULL;
}

void agent_start(struct agent *agent, const struct memory *memory)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    agent->memory = memory;
    agent->bytes = memory ? memory->bytes : 0;
    agent->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    strcpy(address.sun_path, agent->path);
    if (agent->listener < 0 ||
        bind(agent->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        chmod(agent->path, 0777) != 0 || listen(agent->listener, 16) != 0 ||
        pipe2(agent->stop, O_CLOEXEC) != 0 ||
        (errno = pthread_create(&agent->thread, NULL, serve, agent)) != 0)
        fail(agent->path);
}

void agent_give(struct agent *agent, const struct memory *memory)
{
    agent->bytes = memory->bytes;
    __atomic_store_n(&agent->memory, memory, __ATOMIC_RELEASE);
}

unsigned agent_asked(const struct agent *agent)
{
    return __atomic_load_n(&agent->asked, __ATOMIC_ACQUIRE);
}

void agent_stop(struct agent *agent)
{
    close(agent->stop[1]);
    pthread_join(agent->thread, NULL);
    close(agent->stop[0]);
    close(agent->listener);
    unlink(agent->path);
}

void agent_remove(struct agent *agent)
{
    rmdir(agent->folder);
}
