/*
 * Snapshots as LTTng writes them, made by hand: a folder with a trace of metadata and streams.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_RECORD_RING_H
#define TESTS_RECORD_RING_H

#include "tracepoints/format/events.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RING_HEAD 84 /* of a packet: its header and context */

struct ring_packet {
    uint64_t begin, end, number;
    const void *content;
    size_t length;
    size_t packet_bytes; /* 0: as the content needs, in whole pages */
};

static char ring_folder[256];

/* An empty folder for snapshots. */
static inline const char *ring_begin(const char *name)
{
    const char *where = getenv("TMPDIR");
    char command[600];

    snprintf(ring_folder, sizeof(ring_folder), "%s/%s.%ld", where ? where : "/tmp", name,
             (long)getpid());
    snprintf(command, sizeof(command), "rm -rf '%s'; mkdir -m 700 '%s'", ring_folder, ring_folder);
    if (system(command) != 0)
        abort();
    return ring_folder;
}

static inline void ring_end(void)
{
    char command[600];

    snprintf(command, sizeof(command), "rm -rf '%s'", ring_folder);
    if (system(command) != 0)
        abort();
}

/* "SNAPSHOT/TRACE/FILE" below the folder; makes the folders of it. */
static inline const char *ring_path(const char *name)
{
    static char path[600];

    snprintf(path, sizeof(path), "%s/%s", ring_folder, name);
    for (char *slash = path + strlen(ring_folder) + 1; (slash = strchr(slash, '/')) != NULL;) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash++ = '/';
    }
    return path;
}

static inline void ring_append(const char *name, const void *bytes, size_t length)
{
    const int fd = open(ring_path(name), O_WRONLY | O_CREAT | O_APPEND, 0600);

    if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
        abort();
    close(fd);
}

static inline void ring_put(char **at, const void *value, size_t length)
{
    memcpy(*at, value, length);
    *at += length;
}

static inline void ring_put_64(char **at, uint64_t value)
{
    ring_put(at, &value, sizeof(value));
}

/* Appends a packet to the stream. */
static inline void ring_add(const char *name, const struct ring_packet *packet)
{
    const uint32_t magic = 0xc1fc1fc1;
    const size_t content = RING_HEAD + packet->length;
    const size_t size =
        packet->packet_bytes ? packet->packet_bytes : (content + 4095) / 4096 * 4096;
    char *bytes = calloc(1, size > content ? size : content), *at = bytes;

    if (bytes == NULL)
        abort();
    ring_put(&at, &magic, sizeof(magic));
    at += 16 + 4 + 8; /* uuid, stream, its instance */
    ring_put_64(&at, packet->begin);
    ring_put_64(&at, packet->end);
    ring_put_64(&at, content * 8);
    ring_put_64(&at, size * 8);
    ring_put_64(&at, packet->number);
    at = bytes + RING_HEAD;
    if (packet->length)
        ring_put(&at, packet->content, packet->length);
    ring_append(name, bytes, size);
    free(bytes);
}

/* What a packet has. */
struct ring_content {
    char bytes[2 << 20];
    size_t length;
};

/* Something that is none of ours: an event's header and contexts. */
static inline void ring_other(struct ring_content *content, size_t length)
{
    memset(content->bytes + content->length, 'F', length);
    content->length += length;
}

static inline void ring_slow(struct ring_content *content, const struct blkin_slow_event *event,
                             const char *why, const char *name, const char *service)
{
    char *at = content->bytes + content->length;

    ring_put(&at, event, sizeof(*event));
    ring_put(&at, why, strlen(why) + 1);
    ring_put(&at, name, strlen(name) + 1);
    ring_put(&at, service, strlen(service) + 1);
    content->length = (size_t)(at - content->bytes);
}

#endif
