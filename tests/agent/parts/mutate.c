/*
 * Mutates any bytes of its own rings, and of the memory's head, from four threads while the agent
 * reads them. Half of the mutations hit what the agent relies on: the head, the positions, and the
 * trailers before the positions.
 *
 *     mutate SOCKET COUNT SEED
 *
 * Prints "begun" when it has its rings, and "N mutations" at the end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "seed.h"
#include "tracepoints/format/ring.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MUTATE_THREADS 4

static struct ring_memory head; /* as the agent has made it */
static char *rings;
static uint64_t count;

/* Returns a descriptor of this user's rings; -1: not yet. */
static int ask(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ring_hello hello;
    struct iovec bytes = {&hello, sizeof(hello)};
    char room[CMSG_SPACE(sizeof(int))];
    struct msghdr message = {
        .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    const int asked = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    int fd = -1;

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (connect(asked, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        recvmsg(asked, &message, 0) == sizeof(hello) && CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    (void)close(asked);
    return fd;
}

static bool take_rings(const char *path)
{
    int fd = -1;

    for (int tries = 0; fd < 0 && tries < 6000; tries++) {
        fd = ask(path);
        if (fd < 0)
            (void)poll(NULL, 0, 10);
    }
    if (fd < 0 || pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
        return false;
    rings = mmap(NULL, head.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return rings != MAP_FAILED;
}

static uint64_t *position_of(uint64_t ring)
{
    return (uint64_t *)(void *)(rings + head.heads_at + ring * sizeof(struct ring_head));
}

/* Writes a trailer just before the position of a ring, for a record of any length. */
static void mutate_trailer(uint64_t random)
{
    const uint64_t ring = random % (2 * head.cpus);
    const bool is_alarms = ring >= head.cpus;
    const uint64_t size = is_alarms ? head.alarm_bytes : head.event_bytes;
    const uint64_t at = (*position_of(ring) & ~UINT64_C(7)) - 8;
    const uint64_t begin = head.data_at + (is_alarms ? head.cpus * head.event_bytes +
                                                           (ring - head.cpus) * head.alarm_bytes
                                                     : ring * head.event_bytes);
    const uint64_t trailer =
        ring_trailer(at, is_alarms ? 5 : (random >> 16) & 255, (random >> 24) & 0x1fff);

    memcpy(rings + begin + (at & (size - 1)), &trailer, sizeof(trailer));
}

static void mutate(uint64_t random, uint64_t value)
{
    uint64_t *position;

    if (value % 8 == 0)
        value = value % 16 ? UINT64_MAX : 0;
    switch (random % 8) {
    case 0: /* the head and the rules */
        memcpy(rings + (random >> 8) % 512 * 8, &value, 8);
        break;
    case 1: /* positions: any, or near the true one */
        position = position_of((random >> 8) % (2 * head.cpus));
        *position = random & 8 ? value : *position + value % 4096;
        break;
    case 2:
    case 3:
        mutate_trailer(random >> 8);
        break;
    default:
        memcpy(rings + (random >> 8) % (head.bytes / 8) * 8, &value, 8);
    }
}

static void *mutate_on(void *context)
{
    uint64_t state = *(uint64_t *)context;

    for (uint64_t n = 0; n < count / MUTATE_THREADS; n++) {
        const uint64_t random = seed_next(&state);

        mutate(random, seed_next(&state));
    }
    return NULL;
}

int main(int argc, char *argv[])
{
    pthread_t threads[MUTATE_THREADS];
    uint64_t seeds[MUTATE_THREADS];

    if (argc != 4 || !take_rings(argv[1]))
        return 2;
    count = strtoull(argv[2], NULL, 10);
    puts("begun");
    (void)fflush(stdout);
    for (unsigned i = 0; i < MUTATE_THREADS; i++) {
        seeds[i] = strtoull(argv[3], NULL, 10) * MUTATE_THREADS + i + 1;
        if (pthread_create(&threads[i], NULL, mutate_on, &seeds[i]) != 0)
            return 2;
    }
    for (unsigned i = 0; i < MUTATE_THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    printf("%" PRIu64 " mutations\n", count / MUTATE_THREADS * MUTATE_THREADS);
    return 0;
}
