/*
 * The filter: bytes are received, sent and passed on.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "viewer_parts.h"

#include <sys/socket.h>
#include <time.h>

bool viewer_get(int fd, void *bytes, size_t count)
{
    return count == 0 || recv(fd, bytes, count, MSG_WAITALL) == (ssize_t)count;
}

bool viewer_put(int fd, const void *bytes, size_t count)
{
    const char *at = bytes;

    while (count) {
        const ssize_t sent = send(fd, at, count, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        at += sent;
        count -= (size_t)sent;
    }
    return true;
}

bool viewer_pass(const struct viewer *viewer, uint64_t count)
{
    char bytes[16384];

    while (count) {
        const size_t some = count < sizeof(bytes) ? (size_t)count : sizeof(bytes);

        if (!viewer_get(viewer->relay, bytes, some) || !viewer_put(viewer->reader, bytes, some))
            return false;
        count -= some;
    }
    return true;
}

bool viewer_ask(const struct viewer *viewer, uint32_t command, const void *data, size_t size)
{
    unsigned char request[16 + REQUEST_MAX];
    const uint64_t size_sent = htobe64(size);
    const uint32_t command_sent = htobe32(command), version = 0;

    memcpy(request, &size_sent, 8);
    memcpy(request + 8, &command_sent, 4);
    memcpy(request + 12, &version, 4);
    memcpy(request + 16, data, size);
    return viewer_put(viewer->relay, request, 16 + size);
}

int64_t viewer_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}
