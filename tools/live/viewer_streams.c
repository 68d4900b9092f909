/*
 * The filter: which sessions and streams there are, and which of them babeltrace2 knows.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "viewer_parts.h"

#include <stdlib.h>

#define STREAMS_MAX  16384 /* a session's: CPUs times users times channels */
#define STREAM_BYTES 4371  /* a stream in a list: id, trace, is it metadata, path, channel */

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
    struct stream *streams;

    if (viewer->stream_count == STREAMS_MAX)
        return false;
    if (viewer_number_at(listed + 16) && !viewer_add_text(viewer, listed))
        return false;
    if ((viewer->stream_count & (viewer->stream_count - 1)) == 0) {
        streams = realloc(viewer->streams,
                          sizeof(*streams) * (viewer->stream_count ? 2 * viewer->stream_count : 1));
        if (!streams)
            return false;
        viewer->streams = streams;
    }
    viewer->streams[viewer->stream_count++] =
        (struct stream){.id = viewer_long_at(listed),
                        .trace = viewer_long_at(listed + 8),
                        .packet_at = UINT64_MAX,
                        .header_bytes = !memmem(path, 4096, "ust/", 4)    ? 0
                                        : memmem(path, 4096, "32-bit", 6) ? HEADER_BYTES - 4
                                                                          : HEADER_BYTES};
    return true;
}

/* The reply to "attach" and to "new streams", whole. NULL: the connection is gone. */
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

bool viewer_attach(struct viewer *viewer, unsigned char *request, size_t size)
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
    is_good = viewer_put(viewer->reader, reply, bytes);
    free(reply);
    return is_good;
}

void viewer_forget_session(struct viewer *viewer, const unsigned char *request, size_t size)
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

bool viewer_give_new_streams(struct viewer *viewer, const unsigned char *request, size_t size)
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
    is_good = viewer_put(viewer->reader, reply, bytes);
    free(reply);
    return is_good;
}
