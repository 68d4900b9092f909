/*
 * The filter before the relay daemon's viewer port delays each packet. It announces a new stream
 * before it passes on a later time: with a beacon, or with a packet for babeltrace2 2.0. The filter
 * gives metadata only when the metadata is whole, and before the events that it describes. The
 * filter survives any bytes from a relay daemon.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/monotonic.h"
#include "check.h"
#include "tools/live/metadata.h"
#include "tools/live/viewer.h"
#include "loopback.h"
#include "waits.h"

#include <babeltrace2/babeltrace.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENTRY_BYTES     4371
#define METADATA_STREAM 9                     /* of the trace of stream 8 */
#define METADATA_WAIT   UINT64_C(10000000000) /* of viewer_index.c */

static int listener;
static uint64_t beacon_ns;      /* the time in the relay daemon's answers; 0: they are noise */
static int new_streams;         /* the number of streams to announce */
static int metadata_parts = -1; /* the number of parts of metadata that the relay daemon has; -1: no
                                 * trace has metadata */
static unsigned metadata_asks;  /* requests for metadata */
static int metadata_given;      /* parts that the relay daemon has given */
static unsigned seed;

static void put(int fd, const void *bytes, size_t count)
{
    (void)!send(fd, bytes, count, MSG_NOSIGNAL);
}

/* In a process that was stopped, recv(2) fails with EINTR if the socket has a time limit. */
static bool get(int fd, void *bytes, size_t count)
{
    size_t got = 0;

    while (got < count) {
        const ssize_t more = recv(fd, (char *)bytes + got, count - got, MSG_WAITALL);

        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            return false;
        got += (size_t)more;
    }
    return true;
}

static void put_streams(int fd, uint64_t first, uint32_t count)
{
    const uint32_t head[2] = {htobe32(1), htobe32(count)};
    unsigned char stream[ENTRY_BYTES] = "";

    put(fd, head, sizeof(head));
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t id = htobe64(first + i);

        memcpy(stream, &id, sizeof(id));
        stream[15] = 1;                            /* trace */
        stream[19] = first + i == METADATA_STREAM; /* is it metadata? */
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

static const char *const parts[] = {
    ("/* CTF 1.8 { */ trace { major = 1; byte_order = le; }; clock { description = \"a \\\" {\"; "
     "};\n"),
    "event { name = \"a\"; id = 0; stream_id = 0; fields := struct { string _id; }; };\nstr",
    "eam { id = 0; event.header := struct event_header_compact; };\n",
};

/* Makes a packet of metadata with the text. Returns the packet's size. */
static size_t make_metadata(unsigned char *packet, const char *text)
{
    const uint32_t magic = 0x75d11d57, bits[2] = {(37 + (uint32_t)strlen(text)) * 8, 512 * 8};

    memset(packet, 0, 512);
    memcpy(packet, &magic, sizeof(magic));
    memcpy(packet + 24, bits, sizeof(bits));
    memcpy(packet + 37, text, strlen(text));
    return 512;
}

static void put_metadata(int fd)
{
    unsigned char head[12] = {[11] = 2}, packet[512];
    uint64_t size;

    if (metadata_given >= metadata_parts) {
        put(fd, head, sizeof(head));
        return;
    }
    size = htobe64(make_metadata(packet, parts[metadata_given++]));
    memcpy(head, &size, sizeof(size));
    head[11] = 1;
    put(fd, head, sizeof(head));
    put(fd, packet, sizeof(packet));
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
        put_streams(fd, metadata_parts < 0 ? 1 : METADATA_STREAM - 1, metadata_parts < 0 ? 1 : 3);
    } else if (command == 4) {
        put_index(fd, indexes++ ? 5 : 1, beacon_ns); /* a packet, then beacons */
    } else if (command == 6) {
        metadata_asks++;
        put_metadata(fd);
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
        const struct timeval limit = {beacon_ns ? PATIENCE_MS / 1000 : 0, 10000};

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

static int connect_to(int port)
{
    const struct timeval limit = {PATIENCE_MS / 1000, 0};
    const int fd = loopback_connect((uint16_t)port);

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

/* Asks until the answer is not "retry". */
static struct index index_of(int fd, uint64_t id)
{
    const uint64_t sent = htobe64(id);
    struct index index;
    int64_t end_ms = 0;

    do {
        ask(fd, 4, &sent, 8);
        CHECK(get(fd, &index, sizeof(index)));
    } while (be32toh(index.status) == 2 && wait_up_to(PATIENCE_MS, &end_ms));
    return index;
}

static void check_times(const char *url)
{
    unsigned char packet[12 + 84], streams[8 + 2 * ENTRY_BYTES], request[20] = {[7] = 1, [15] = 0};
    const uint64_t session = htobe64(1);
    struct index index;
    uint64_t time;
    int fd;

    beacon_ns = (uint64_t)clock_ns();
    fd = connect_to(viewer_start(url, false, true, 0));
    ask(fd, 3, request, 20);
    CHECK(get(fd, streams, 8 + ENTRY_BYTES));
    index = index_of(fd, 1);
    CHECK(be32toh(index.status) == 1 && (be32toh(index.flags) & 2) == 0);
    CHECK((uint64_t)clock_ns() - beacon_ns >= 500000000); /* held */
    request[19] = 84;
    ask(fd, 5, request, 20);
    CHECK(get(fd, packet, sizeof(packet)));
    /* a beacon after a new stream announces the stream; babeltrace2 2.0 gets it as a packet */
    new_streams = 1;
    beacon_ns = (uint64_t)clock_ns();
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
    CHECK(get(fd, streams, 8 + ENTRY_BYTES) && streams[8 + 7] == 2);
    /* the next one is a beacon */
    beacon_ns = (uint64_t)clock_ns();
    index = index_of(fd, 1);
    CHECK(be32toh(index.status) == 5 && be64toh(index.end) == beacon_ns);
    close(fd);
}

static uint32_t metadata_status(int fd, uint64_t *size)
{
    const uint64_t sent = htobe64(METADATA_STREAM);
    unsigned char head[12];

    ask(fd, 6, &sent, 8);
    CHECK(get(fd, head, sizeof(head)));
    memcpy(size, head, sizeof(*size));
    *size = be64toh(*size);
    return head[11];
}

static uint32_t index_status(int fd, uint64_t stream, struct index *index)
{
    const uint64_t sent = htobe64(stream);

    ask(fd, 4, &sent, 8);
    CHECK(get(fd, index, sizeof(*index)));
    return be32toh(index->status);
}

#define STREAM_A (METADATA_STREAM - 1) /* two streams of the trace */
#define STREAM_B (METADATA_STREAM + 1)

/* LTTng gives the metadata in parts, and events before the last part. Returns false if it took so
 * long that the filter had to pass on events without their metadata. */
static bool check_metadata(const char *url)
{
    unsigned char streams[8 + 3 * ENTRY_BYTES], request[20] = {[7] = 1}, packets[2048];
    struct index index;
    unsigned asks;
    uint64_t size;
    int fd;

    metadata_parts = metadata_given = metadata_asks = 0;
    beacon_ns = (uint64_t)clock_ns();
    fd = connect_to(viewer_start(url, false, true, 0));
    ask(fd, 3, request, 20);
    CHECK(get(fd, streams, sizeof(streams)));
    CHECK(index_status(fd, STREAM_A, &index) == 2 && index_status(fd, STREAM_B, &index) == 2);
    /* from here on, the filter holds indexes only because of the metadata */
    WORK_UNTIL(metadata_asks > 0, CHECK(index_status(fd, STREAM_A, &index) == 2));
    asks = metadata_asks;
    for (int round = 0; round < 10; round++) { /* the filter asks once for both streams */
        CHECK(index_status(fd, STREAM_A, &index) == 2 && index_status(fd, STREAM_B, &index) == 2);
    }
    CHECK(metadata_asks - asks <= 11);
    for (int part = 0; part < 3; part++) { /* nothing, no stream class, and a block that is cut */
        metadata_parts = part;
        CHECK(metadata_status(fd, &size) == 2 && size == 0);
        CHECK(index_status(fd, STREAM_A, &index) == 2 && index_status(fd, STREAM_A, &index) == 2);
    }
    metadata_parts = 3;
    CHECK(index_status(fd, STREAM_A, &index) == 5 && be32toh(index.flags) & 1);
    CHECK(metadata_status(fd, &size) == 1 && size == 3 * 512);
    CHECK(get(fd, packets, (size_t)size) && strstr((char *)packets + 1024 + 37, "eam {"));
    CHECK(metadata_status(fd, &size) == 2 && size == 0);
    /* unchanged: no request */
    asks = metadata_asks;
    for (int round = 0; round < 10; round++)
        CHECK(index_status(fd, STREAM_A, &index) == 5 && index_status(fd, STREAM_B, &index) == 5);
    CHECK(metadata_asks == asks);
    close(fd);
    metadata_parts = -1;
    return (uint64_t)clock_ns() - beacon_ns < METADATA_WAIT;
}

static struct metadata metadata_of(const char *text)
{
    struct metadata metadata = {.is_other = false};
    unsigned char packet[512];
    const size_t size = make_metadata(packet, text);

    metadata_add(&metadata, packet, size);
    return metadata;
}

static void check_texts(void)
{
    static const char *const whole[] = {
        "stream { };", "stream { id = 3; }; // }\n",
        "event { stream_id = 1; }; stream { id = 1; };",
        "stream { id = 0; }; typealias integer { size = 8; } := uint8_t; /* { */",
        "stream { id = 0; }; env { a = \"\\\\\"; };"};
    static const char *const cut[] = {"",
                                      "trace { major = 1; };",
                                      "stream { id = 0; }; ev",
                                      "stream { id = 0; }",
                                      "stream { id = 0; }; env { a = \"};",
                                      "stream { id = 0; }; /* a",
                                      "stream { id = 0; }; event { stream_id = 1; };"};
    struct metadata metadata;

    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
        metadata = metadata_of(whole[i]);
        CHECK(metadata_is_whole(&metadata));
    }
    for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
        metadata = metadata_of(cut[i]);
        CHECK(!metadata_is_whole(&metadata));
    }
    metadata = metadata_of(whole[1]);
    CHECK(metadata_has(&metadata, 3) && !metadata_has(&metadata, 0));
    CHECK(metadata_has(&metadata, UINT64_MAX));
    metadata = (struct metadata){.is_other = false};
    metadata_add(&metadata, (const unsigned char *)"{\"type\": \"preamble\"}", 20); /* CTF 2 */
    CHECK(metadata_is_whole(&metadata) && metadata_has(&metadata, 7));
}

/* The relay daemon answers with noise. The connection ends, at the latest when the daemon does. */
static void check_noise(const char *url)
{
    unsigned char data[255] = "", taken[4096];
    size_t noise = 0;
    ssize_t got;

    beacon_ns = 0;
    for (int round = 0; round < 200; round++) {
        const int fd = connect_to(viewer_start(url, false, round & 1, 0));

        for (int i = 0; i < 20; i++) {
            data[7] = (unsigned char)(rand_r(&seed) % 3);
            ask(fd, (uint32_t)(rand_r(&seed) % 11), data,
                (unsigned char)(rand_r(&seed) % 2 ? 20 : 8));
        }
        (void)shutdown(fd, SHUT_WR);
        while ((got = recv(fd, taken, sizeof(taken), 0)) > 0 || (got < 0 && errno == EINTR))
            noise += got > 0 ? (size_t)got : 0;
        CHECK(got == 0 || errno == ECONNRESET); /* not because time was over */
        close(fd);
    }
    CHECK(noise > 0);
}

int main(void)
{
    pthread_t thread;
    uint16_t port;
    char url[64];

    seed = getenv("SEED") ? (unsigned)atoi(getenv("SEED")) : (unsigned)getpid();
    printf("SEED=%u\n", seed);
    listener = loopback_listen(&port);
    (void)snprintf(url, sizeof(url), "net://127.0.0.1:%u", port);
    CHECK(pthread_create(&thread, NULL, relay, NULL) == 0);
    check_texts();
    check_times(url);
    for (const int failures = check_failures; !check_metadata(url); check_failures = failures)
        continue;
    check_noise(url);
    return check_status();
}
