/*
 * The filter between babeltrace2 and the relay daemon's viewer port: LTTng's live protocol 2.4,
 * one request and one reply at a time, numbers in network byte order.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "viewer_parts.h"

#include "babeltrace-plugin/base/thread.h"

#include <arpa/inet.h>
#include <babeltrace2/babeltrace.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define LISTED_BYTES 339   /* a session in a list */
#define STREAMS_MAX  16384 /* of a session: CPUs times users times channels */
#define STREAM_BYTES 4371  /* a stream in a list: id, trace, metadata flag, path, channel */

/* ---- bytes ----------------------------------------------------------------------------------- */

bool viewer_get(int fd, void *bytes, size_t count)
{
    return count == 0 || recv(fd, bytes, count, MSG_WAITALL) == (ssize_t)count;
}

bool viewer_pass(const struct viewer *viewer, uint64_t count)
{
    char bytes[16384];

    while (count) {
        const size_t some = count < sizeof(bytes) ? (size_t)count : sizeof(bytes);

        if (!viewer_get(viewer->relay, bytes, some) || !write_all(viewer->reader, bytes, some))
            return false;
        count -= some;
    }
    return true;
}

bool viewer_ask(const struct viewer *viewer, uint32_t command, const void *data, size_t size)
{
    unsigned char request[16 + VIEWER_REQUEST_MAX];
    const uint64_t size_sent = htobe64(size);
    const uint32_t command_sent = htobe32(command), version = 0;

    memcpy(request, &size_sent, 8);
    memcpy(request + 8, &command_sent, 4);
    memcpy(request + 12, &version, 4);
    memcpy(request + 16, data, size);
    return write_all(viewer->relay, request, 16 + size);
}

/* ---- streams, and those that babeltrace2 knows ----------------------------------------------- */

struct stream *viewer_find_stream(const struct viewer *viewer, uint64_t id)
{
    for (size_t i = 0; i < viewer->stream_count; i++) {
        if (viewer->streams[i].id == id)
            return &viewer->streams[i];
    }
    return NULL;
}

static bool viewer_add_stream(struct viewer *viewer, const unsigned char *listed)
{
    const char *path = (const char *)listed + 20;

    if (viewer->stream_count == STREAMS_MAX ||
        (viewer_number_at(listed + 16) && !viewer_add_text(viewer, listed)) ||
        !ARRAY_FITS(viewer->streams, viewer->stream_room, viewer->stream_count))
        return false;
    viewer->streams[viewer->stream_count++] =
        (struct stream){.id = viewer_long_at(listed),
                        .trace = viewer_long_at(listed + 8),
                        .packet_at = UINT64_MAX,
                        .header_bytes = !memmem(path, 4096, "ust/", 4)    ? 0
                                        : memmem(path, 4096, "32-bit", 6) ? VIEWER_HEADER_BYTES - 4
                                                                          : VIEWER_HEADER_BYTES};
    return true;
}

/* Returns the whole reply to "attach" or "new streams". NULL: the filter cannot continue. */
static unsigned char *viewer_take_streams(struct viewer *viewer, size_t *bytes)
{
    unsigned char head[8], *reply = NULL;
    uint32_t count;

    if (!viewer_get(viewer->relay, head, sizeof(head)))
        return NULL;
    count = viewer_number_at(head) == STATUS_OK ? viewer_number_at(head + 4) : 0;
    if (count > STREAMS_MAX)
        return NULL;
    *bytes = sizeof(head) + (size_t)count * STREAM_BYTES;
    reply = malloc(*bytes);
    if (reply)
        memcpy(reply, head, sizeof(head));
    if (!reply || !viewer_get(viewer->relay, reply + sizeof(head), *bytes - sizeof(head))) {
        free(reply);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!viewer_add_stream(viewer, reply + sizeof(head) + (size_t)i * STREAM_BYTES)) {
            free(reply);
            return NULL;
        }
    }
    return reply;
}

static bool viewer_attach(struct viewer *viewer, unsigned char *request, size_t size)
{
    const uint32_t seek = htobe32(SEEK_BEGINNING);
    unsigned char *reply;
    size_t bytes;
    bool is_good;

    if (size < 20 || viewer->session_count == SESSIONS_MAX)
        return false;
    if (viewer->is_from_beginning)
        memcpy(request + 16, &seek, sizeof(seek));
    if (!viewer_ask(viewer, CMD_ATTACH, request, size) ||
        (reply = viewer_take_streams(viewer, &bytes)) == NULL)
        return false;
    if (viewer_number_at(reply) == STATUS_OK)
        viewer->sessions[viewer->session_count++] = (struct session){.id = viewer_long_at(request)};
    is_good = write_all(viewer->reader, reply, bytes);
    free(reply);
    return is_good;
}

static void viewer_forget_session(struct viewer *viewer, const unsigned char *request, size_t size)
{
    for (size_t i = 0; size >= 8 && i < viewer->session_count; i++) {
        if (viewer->sessions[i].id != viewer_long_at(request))
            continue;
        free(viewer->sessions[i].streams);
        viewer->sessions[i] = viewer->sessions[--viewer->session_count];
        break;
    }
    if (viewer->session_count == 0) {
        viewer->stream_count = 0;
        viewer_forget_texts(viewer);
    }
}

bool viewer_look_for_streams(struct viewer *viewer)
{
    for (size_t i = 0; i < viewer->session_count; i++) {
        struct session *session = &viewer->sessions[i];
        const uint64_t id = htobe64(session->id);
        unsigned char *reply;

        if (session->streams)
            continue;
        if (!viewer_ask(viewer, CMD_NEW_STREAMS, &id, sizeof(id)) ||
            (reply = viewer_take_streams(viewer, &session->bytes)) == NULL)
            return false;
        if (session->bytes > 8)
            session->streams = reply;
        else
            free(reply);
    }
    return true;
}

bool viewer_has_new_streams(const struct viewer *viewer)
{
    for (size_t i = 0; i < viewer->session_count; i++) {
        if (viewer->sessions[i].streams)
            return true;
    }
    return false;
}

static bool viewer_give_new_streams(struct viewer *viewer, const unsigned char *request,
                                    size_t size)
{
    struct session *session = viewer->sessions;
    unsigned char *reply = NULL;
    size_t bytes;
    bool is_good;

    if (size < 8)
        return false;
    while (session < viewer->sessions + viewer->session_count &&
           session->id != viewer_long_at(request))
        session++;
    if (session < viewer->sessions + viewer->session_count && session->streams) {
        reply = session->streams;
        bytes = session->bytes;
        session->streams = NULL;
    } else if (!viewer_ask(viewer, CMD_NEW_STREAMS, request, size) ||
               (reply = viewer_take_streams(viewer, &bytes)) == NULL) {
        return false;
    }
    is_good = write_all(viewer->reader, reply, bytes);
    free(reply);
    return is_good;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Passes a reply on: the number of sessions, then the sessions. */
static bool viewer_pass_list(const struct viewer *viewer)
{
    unsigned char head[4];

    return viewer_get(viewer->relay, head, 4) && write_all(viewer->reader, head, 4) &&
           viewer_pass(viewer, (uint64_t)viewer_number_at(head) * LISTED_BYTES);
}

static void viewer_limit_minor(unsigned char *version)
{
    const uint32_t minor = htobe32(4);

    if (viewer_number_at(version + 12) > 4)
        memcpy(version + 12, &minor, sizeof(minor));
}

/* Announces version 2.4, as later versions have longer replies. Both sides use the older of their
 * two versions; LTTng 2.16 replies with its own version. */
static bool viewer_connect(const struct viewer *viewer, unsigned char *request, size_t size)
{
    unsigned char reply[20];

    if (size < 20)
        return false;
    viewer_limit_minor(request);
    if (!viewer_ask(viewer, CMD_CONNECT, request, size) ||
        !viewer_get(viewer->relay, reply, sizeof(reply)))
        return false;
    viewer_limit_minor(reply);
    return write_all(viewer->reader, reply, sizeof(reply));
}

static bool viewer_serve(struct viewer *viewer)
{
    unsigned char head[16], request[VIEWER_REQUEST_MAX];
    uint64_t size;

    if (!viewer_get(viewer->reader, head, sizeof(head)) ||
        (size = viewer_long_at(head)) > sizeof(request) ||
        !viewer_get(viewer->reader, request, (size_t)size))
        return false;
    switch (viewer_number_at(head + 8)) {
    case CMD_ATTACH:
        return viewer_attach(viewer, request, (size_t)size);
    case CMD_NEW_STREAMS:
        return viewer_give_new_streams(viewer, request, (size_t)size);
    case CMD_INDEX:
        return viewer_give_index(viewer, request, (size_t)size);
    case CMD_PACKET:
        return viewer_give_packet(viewer, request, (size_t)size);
    case CMD_CONNECT:
        return viewer_connect(viewer, request, (size_t)size);
    case CMD_LIST:
        return viewer_ask(viewer, CMD_LIST, request, (size_t)size) && viewer_pass_list(viewer);
    case CMD_METADATA:
        return viewer_give_metadata(viewer, request, (size_t)size);
    case CMD_DETACH:
        viewer_forget_session(viewer, request, (size_t)size);
        return viewer_ask(viewer, CMD_DETACH, request, (size_t)size) && viewer_pass(viewer, 4);
    case CMD_CREATE:
        return viewer_ask(viewer, CMD_CREATE, request, (size_t)size) && viewer_pass(viewer, 4);
    default:
        return false;
    }
}

static void *viewer_run(void *argument)
{
    struct viewer *viewer = argument;
    const int one = 1;

    viewer->reader = accept4(viewer->listener, NULL, NULL, SOCK_CLOEXEC);
    close(viewer->listener);
    (void)setsockopt(viewer->reader, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void)setsockopt(viewer->relay, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    while (viewer->reader >= 0 && viewer_serve(viewer))
        ;
    close(viewer->relay);
    if (viewer->reader >= 0)
        close(viewer->reader);
    for (size_t i = 0; i < viewer->session_count; i++)
        free(viewer->sessions[i].streams);
    viewer_forget_texts(viewer);
    free(viewer->texts);
    free(viewer->streams);
    free(viewer);
    return NULL;
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* IPv4 only, like babeltrace2. */
static int viewer_connect_to_relay(const char *live_url)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char host[320], *colon;
    int fd = -1;

    (void)snprintf(host, sizeof(host), "%s", live_url + strlen("net://"));
    colon = strrchr(host, ':');
    if (!colon)
        return -1;
    *colon = '\0';
    errno = EADDRNOTAVAIL;
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0)
        return -1;
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) != 0) {
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

/* Blocks all signals: a signal that ends babeltrace2 must interrupt babeltrace2's thread. */
static bool viewer_start_thread(struct viewer *viewer)
{
    pthread_t thread;

    errno = EAGAIN;
    return thread_start(&thread, viewer_run, viewer, "blkin-viewer") && pthread_detach(thread) == 0;
}

int viewer_start(const char *live_url, bool is_local, bool from_beginning, int64_t from_ns)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    struct viewer *viewer = calloc(1, sizeof(*viewer));

    if (!viewer)
        return 0;
    *viewer =
        (struct viewer){.has_offset = is_local, /* the offset is 0 */
                        .is_from_beginning = from_beginning,
                        .from_ns = from_ns,
                        .reader = -1,
                        .listener = -1,
                        .asked_ns = clock_ns(),
                        .has_flags = bt_version_get_major() > 2 || bt_version_get_minor() > 0};
    viewer->relay = viewer_connect_to_relay(live_url);
    if (viewer->relay >= 0)
        viewer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (viewer->listener >= 0 &&
        bind(viewer->listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        listen(viewer->listener, 1) == 0 &&
        getsockname(viewer->listener, (struct sockaddr *)&address, &size) == 0 &&
        viewer_start_thread(viewer))
        return ntohs(address.sin_port);
    if (viewer->listener >= 0)
        close(viewer->listener);
    if (viewer->relay >= 0)
        close(viewer->relay);
    free(viewer);
    return 0;
}
