/*
 * Snapshots for the fuzzers of tools/record: files of packets, in memory first.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_FUZZ_STREAMS_H
#define TESTS_FUZZ_STREAMS_H

#include "fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STREAMS     2
#define STREAM_MAX  16384
#define PACKETS_MAX 16
#define HEAD        72

struct made_packet {
    size_t at, bytes, content;
    uint64_t begin, end, number;
};

static struct made_stream {
    char bytes[STREAM_MAX];
    size_t length;
    struct made_packet packets[PACKETS_MAX];
    unsigned count;
    bool is_damaged; /* so what is in it is not known */
} streams[STREAMS];

static char folder[128];

static void remove_folder(void)
{
    char command[200];

    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    (void)!system(command);
}

/* Of this process, in memory. */
static void make_folder(const char *name)
{
    if (folder[0])
        return;
    snprintf(folder, sizeof(folder), "/dev/shm/%s.%ld", name, (long)getpid());
    REQUIRE(mkdir(folder, 0700) == 0 && atexit(remove_folder) == 0);
}

static const char *path_in(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t length)
{
    const int fd = open(path_in(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

    REQUIRE(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
    close(fd);
}

static void write_streams(void)
{
    write_file("blkin_0", streams[0].bytes, streams[0].length);
    write_file("blkin_1", streams[1].bytes, streams[1].length);
}

static uint64_t take_edge(struct input *source)
{
    static const uint64_t edges[] = {UINT64_MAX, INT64_MAX, (uint64_t)INT64_MAX + 1, 1000000000,
                                     4096};
    const uint64_t choice = take(source, 1);

    return choice < 240 ? choice : edges[choice % (sizeof(edges) / sizeof(edges[0]))];
}

static void put_64(struct made_stream *stream, size_t at, uint64_t value)
{
    memcpy(stream->bytes + at, &value, sizeof(value));
}

/* A packet of this content, if there is room. */
static void add_packet(struct made_stream *stream, const char *content, size_t length,
                       struct input *source)
{
    static const uint32_t magic = 0xc1fc1fc1;
    const size_t at = stream->length, used = HEAD + length;
    const size_t size = used + take(source, 1) % 64;
    const uint64_t begin = take_edge(source), end = begin + take(source, 1);
    struct made_packet *packet = &stream->packets[stream->count];

    if (stream->count == PACKETS_MAX || size > STREAM_MAX - at || end < begin)
        return;
    memset(stream->bytes + at, 0, size);
    memcpy(stream->bytes + at, &magic, sizeof(magic));
    *packet = (struct made_packet){at, size, used, begin, end, take_edge(source)};
    put_64(stream, at + 32, begin);
    put_64(stream, at + 40, end);
    put_64(stream, at + 48, used * 8);
    put_64(stream, at + 56, size * 8);
    put_64(stream, at + 64, packet->number);
    memcpy(stream->bytes + at + HEAD, content, length);
    stream->length += size;
    stream->count++;
}

/* Some bytes are others, or its end is missing. */
static void damage(struct made_stream *stream, struct input *source)
{
    const size_t at = stream->length ? take(source, 2) % stream->length : 0;
    const struct text bytes = take_bytes(source, 1 + take(source, 1) % 16);

    stream->is_damaged = true;
    for (size_t i = 0; i < bytes.length && at + i < stream->length; i++)
        stream->bytes[at + i] = bytes.data[i];
    if (bytes.length == 0)
        stream->length = at;
}

static void clear_streams(void)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        streams[i].length = 0;
        streams[i].count = 0;
        streams[i].is_damaged = false;
    }
}

#endif
