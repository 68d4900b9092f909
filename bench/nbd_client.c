/*
 * A client for benchmarks of an NBD server: random reads and writes of 4 KiB, DEPTH at once.
 *
 *     nbd_client SOCKET SERVER-PID DEPTH WARM COUNT
 *
 * Measures COUNT times 2000 requests, after WARM times that are not counted. Prints "REQUESTS
 * CPU_US LATENCY_US": the number of all requests, and two medians. CPU_US is the server's CPU time
 * for a request, LATENCY_US the time from its sending to its answer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define NBD_BLOCK     4096
#define BLOCKS        16384 /* 64 MiB */
#define NBD_DEPTH_MAX 256
#define IN_TURN       2000
#define SILENT_S      20
#define HELLO_SIZE    18 /* two magics, flags */
#define INFO_SIZE     10 /* of the export: size, flags */

#define OPTION_MAGIC  UINT64_C(0x49484156454F5054)
#define REQUEST_MAGIC 0x25609513
#define REPLY_MAGIC   0x67446698

enum { OPT_EXPORT_NAME = 1 };
enum { CMD_READ, CMD_WRITE, CMD_DISC };
enum { FIXED_NEWSTYLE = 1, NO_ZEROES = 2 };

struct option {
    uint64_t magic;
    uint32_t option, length;
};

struct nbd_request {
    uint32_t magic;
    uint16_t flags, type;
    uint64_t handle, offset;
    uint32_t length;
} __attribute__((packed));

struct reply {
    uint32_t magic, error;
    uint64_t handle;
};

struct nbd_slot {
    int64_t sent_ns;
    uint16_t type;
};

static int fd;
static struct nbd_slot slots[NBD_DEPTH_MAX];
static char block[NBD_BLOCK];

_Noreturn static void fail(const char *what)
{
    fprintf(stderr, "nbd_client: %s: %s\n", what, errno ? strerror(errno) : "not as expected");
    exit(1);
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec time;

    if (clock_gettime(clock, &time) != 0)
        fail("the server's clock");
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void receive(void *data, size_t size)
{
    errno = 0;
    if (recv(fd, data, size, MSG_WAITALL) != (ssize_t)size)
        fail("the server's answer");
}

static void send_all(const struct iovec *pieces, int count)
{
    size_t size = 0;

    for (int i = 0; i < count; i++)
        size += pieces[i].iov_len;
    errno = 0;
    if (writev(fd, pieces, count) != (ssize_t)size) /* small enough for the socket's buffer */
        fail("sending");
}

static uint64_t next_random(void)
{
    static uint64_t state = UINT64_C(88172645463325252);

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void submit(unsigned number)
{
    const uint64_t dice = next_random();
    struct nbd_slot *slot = &slots[number];
    struct nbd_request request = {.magic = htobe32(REQUEST_MAGIC),
                                  .handle = number,
                                  .offset = htobe64((dice >> 1) % BLOCKS * NBD_BLOCK),
                                  .length = htobe32(NBD_BLOCK)};
    const struct iovec pieces[] = {{&request, sizeof(request)}, {block, sizeof(block)}};

    slot->type = dice & 1 ? CMD_WRITE : CMD_READ;
    request.type = htobe16(slot->type);
    slot->sent_ns = clock_ns(CLOCK_MONOTONIC);
    send_all(pieces, slot->type == CMD_WRITE ? 2 : 1);
}

/* Returns the slot of the answered request. */
static unsigned take_answer(unsigned depth)
{
    struct reply reply;

    receive(&reply, sizeof(reply));
    if (be32toh(reply.magic) != REPLY_MAGIC || reply.error || reply.handle >= depth)
        fail("an answer");
    if (slots[reply.handle].type == CMD_READ)
        receive(block, sizeof(block));
    return (unsigned)reply.handle;
}

static void connect_to(const char *path)
{
    const struct timeval limit = {.tv_sec = SILENT_S};
    const uint32_t flags = htobe32(FIXED_NEWSTYLE | NO_ZEROES);
    const struct option option = {htobe64(OPTION_MAGIC), htobe32(OPT_EXPORT_NAME), 0};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char answer[HELLO_SIZE];

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0 ||
        connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0)
        fail(path);
    receive(answer, HELLO_SIZE);
    send_all(&(struct iovec){(void *)(uintptr_t)&flags, sizeof(flags)}, 1);
    send_all(&(struct iovec){(void *)(uintptr_t)&option, sizeof(option)}, 1);
    receive(answer, INFO_SIZE);
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* Measures a turn. Sets means per request. */
static void measure(clockid_t server, unsigned depth, double *cpu_us, double *latency_us)
{
    const int64_t cpu = clock_ns(server);
    int64_t sum = 0;

    for (int i = 0; i < IN_TURN; i++) {
        const unsigned slot = take_answer(depth);

        sum += clock_ns(CLOCK_MONOTONIC) - slots[slot].sent_ns;
        submit(slot);
    }
    *cpu_us = (double)(clock_ns(server) - cpu) / 1e3 / IN_TURN;
    *latency_us = (double)sum / 1e3 / IN_TURN;
}

static int compare(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    return values[count / 2];
}

/* Prints medians, because other load on the machine disturbs only few of the turns. `all` has room
 * for two values of each counted turn. */
static void run(unsigned depth, size_t warm, size_t count, clockid_t server, double *all)
{
    for (unsigned i = 0; i < depth; i++)
        submit(i);
    for (size_t i = 0; i < warm; i++)
        measure(server, depth, &all[0], &all[1]);
    for (size_t i = 0; i < count; i++)
        measure(server, depth, &all[i], &all[count + i]);
    for (unsigned i = 0; i < depth; i++)
        (void)take_answer(depth);
    printf("%zu %.4f %.4f\n", (warm + count) * IN_TURN + depth, median(all, count),
           median(all + count, count));
}

int main(int argc, char *argv[])
{
    const struct nbd_request bye = {.magic = htobe32(REQUEST_MAGIC), .type = htobe16(CMD_DISC)};
    clockid_t server;
    unsigned long depth, warm, count;
    double *all;

    if (argc != 6) {
        fprintf(stderr, "usage: nbd_client SOCKET SERVER-PID DEPTH WARM COUNT\n");
        return 2;
    }
    depth = strtoul(argv[3], NULL, 10);
    warm = strtoul(argv[4], NULL, 10);
    count = strtoul(argv[5], NULL, 10);
    all = count ? calloc(count, 2 * sizeof(*all)) : NULL;
    if (!all || depth == 0 || depth > NBD_DEPTH_MAX) {
        fprintf(stderr, "nbd_client: expected a depth of 1 to %d, and a count\n", NBD_DEPTH_MAX);
        return 2;
    }
    errno = clock_getcpuclockid((pid_t)strtol(argv[2], NULL, 10), &server);
    if (errno)
        fail(argv[2]);
    connect_to(argv[1]);
    run((unsigned)depth, warm, count, server, all);
    send_all(&(struct iovec){(void *)(uintptr_t)&bye, sizeof(bye)}, 1);
    close(fd);
    free(all);
    return 0;
}
