/*
 * The filter before the relay daemon's viewer port: it holds times, tells of new streams before a
 * later time passes, with a packet of its own where there is none, and survives any bytes that a
 * relay daemon sends.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "live/viewer.h"

#include <arpa/inet.h>
#include <babeltrace2/babeltrace.h>
#include <endian.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define STREAM_BYTES 4371

static int listener;
static uint64_t beacon_ns; /* what the relay daemon answers: 0: noise */
static int new_streams;    /* how many it has */
static unsigned seed;

static uint64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void put(int fd, const void *bytes, size_t count)
{
    (void)!send(fd, bytes, count, MSG_NOSIGNAL);
}

static bool get(int fd, void *bytes, size_t count)
{
    return recv(fd, bytes, count, MSG_WAITALL) == (ssize_t)count;
}

static void put_streams(int fd, uint64_t first, uint32_t count)
{
    const uint32_t head[2] = {htobe32(1), htobe32(count)};
    unsigned char stream[STREAM_BYTES] = "";

    put(fd, head, sizeof(head));
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t id = htobe64(first + i);

        memcpy(stream, &id, sizeof(id));
        memcpy(stream + 20, "ust/uid/0/64-bit", 16);
        put(fd, stream, sizeof(stream));
    }
}

static void put_index(int fd, uint32_t status, uint64_t end_ns)
{
    uint64_t reply[8] = {0};
    const uint32_t sent = htobe32(status);

    reply[4] = htobe64(end_ns);
    memcpy(&reply[7], &sent, sizeof(sent));
    put(fd, reply, sizeof(reply));
}

static void put_packet(int fd)
{
    const uint32_t head[3] = {htobe32(1), htobe32(84), 0}, magic = 0xc1fc1fc1;
    unsigned char packet[84] = "";

    memcpy(packet, &magic, sizeof(magic));
    put(fd, head, sizeof(head));
    put(fd, packet, sizeof(packet));
}

static void answer(int fd, uint32_t command)
{
    static int indexes;
    unsigned char noise[512];

    if (beacon_ns == 0) {
        for (size_t i = 0; i < sizeof(noise); i++)
            noise[i] = (unsigned char)(rand_r(&seed) % (rand_r(&seed) % 2 ? 256 : 3));
        put(fd, noise, (size_t)rand_r(&seed) % sizeof(noise));
    } else if (command == 3) {
        put_streams(fd, 1, 1);
    } else if (command == 4) {
        put_index(fd, indexes++ ? 5 : 1, beacon_ns); /* a packet, then beacons */
    } else if (command == 5) {
        put_packet(fd);
    } else if (command == 7) {
        put_streams(fd, 2, (uint32_t)new_streams);
        new_streams = 0;
    }
}

static void *relay(void *unused)
{
    unsigned char head[16], data[256];
    int fd;

    while ((fd = accept(listener, NULL, NULL)) >= 0) {
        const struct timeval limit = {beacon_ns ? 20 : 0, 10000};

        (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        while (get(fd, head, sizeof(head)) && get(fd, data, head[7])) {
            answer(fd, head[11]);
            if (beacon_ns == 0 && rand_r(&seed) % 4 == 0)
                break;
        }
        close(fd);
    }
    return unused;
}

static int listen_at(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    CHECK(bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, 4) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static int connect_to(int port)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval limit = {20, 0};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    CHECK(connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    return fd;
}

static void ask(int fd, uint32_t command, const void *data, unsigned char size)
{
    unsigned char request[16 + 255] = {[7] = size, [11] = (unsigned char)command};

    memcpy(request + 16, data, size);
    put(fd, request, 16U + size);
}

struct index {
    uint64_t offset, packet_size, content_size, begin, end, discarded, class_id;
    uint32_t status, flags;
};

/* Until it is no "retry". */
static struct index index_of(int fd, uint64_t id)
{
    const uint64_t sent = htobe64(id);
    struct index index;

    do {
        ask(fd, 4, &sent, 8);
        CHECK(get(fd, &index, sizeof(index)));
        usleep(5000);
    } while (be32toh(index.status) == 2);
    return index;
}

static void check_times(const char *url)
{
    unsigned char packet[12 + 84], streams[8 + 2 * STREAM_BYTES], request[20] = {[7] = 1, [15] = 0};
    const uint64_t session = htobe64(1);
    struct index index;
    uint64_t time;
    int fd;

    beacon_ns = now_ns();
    fd = connect_to(viewer_start(url, true));
    ask(fd, 3, request, 20);
    CHECK(get(fd, streams, 8 + STREAM_BYTES));
    index = index_of(fd, 1);
    CHECK(be32toh(index.status) == 1 && (be32toh(index.flags) & 2) == 0);
    CHECK(now_ns() - beacon_ns >= 500000000); /* held */
    request[19] = 84;
    ask(fd, 5, request, 20);
    CHECK(get(fd, packet, sizeof(packet)));
    /* a beacon after a new stream: it tells of it, to babeltrace2 2.0 as a packet */
    new_streams = 1;
    beacon_ns = now_ns();
    index = index_of(fd, 1);
    CHECK(be32toh(index.flags) & 2 && be64toh(index.end) == beacon_ns);
    if (bt_version_get_minor() == 0) {
        CHECK(be32toh(index.status) == 1 && be64toh(index.packet_size) == 84 * 8);
        memcpy(request + 8, &index.offset, 8);
        ask(fd, 5, request, 20);
        CHECK(get(fd, packet, sizeof(packet)));
        memcpy(&time, packet + 12 + 32, sizeof(time));
        CHECK(time == beacon_ns);
    }
    ask(fd, 7, &session, 8);
    CHECK(get(fd, streams, 8 + STREAM_BYTES) && streams[8 + 7] == 2);
    /* the next one is a beacon */
    beacon_ns = now_ns();
    index = index_of(fd, 1);
    CHECK(be32toh(index.status) == 5 && be64toh(index.end) == beacon_ns);
    close(fd);
}

/* Whatever it sends, the connection ends with its own, at the latest. */
static void check_noise(const char *url)
{
    unsigned char data[255] = "", taken[4096];

    beacon_ns = 0;
    for (int round = 0; round < 200; round++) {
        const int fd = connect_to(viewer_start(url, round & 1));

        for (int i = 0; i < 20; i++) {
            data[7] = (unsigned char)(rand_r(&seed) % 3);
            ask(fd, (uint32_t)(rand_r(&seed) % 11), data,
                (unsigned char)(rand_r(&seed) % 2 ? 20 : 8));
        }
        (void)shutdown(fd, SHUT_WR);
        while (recv(fd, taken, sizeof(taken), 0) > 0)
            ;
        close(fd);
    }
}

int main(void)
{
    pthread_t thread;
    uint16_t port;
    char url[64];

    seed = getenv("SEED") ? (unsigned)atoi(getenv("SEED")) : (unsigned)getpid();
    printf("SEED=%u\n", seed);
    listener = listen_at(&port);
    (void)snprintf(url, sizeof(url), "net://127.0.0.1:%u", port);
    CHECK(pthread_create(&thread, NULL, relay, NULL) == 0);
    check_times(url);
    check_noise(url);
    return check_status();
}
