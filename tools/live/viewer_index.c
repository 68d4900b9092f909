/*
 * The filter: when babeltrace2 may know of a packet or of a time; and the packets.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "viewer_parts.h"

/* A stream is made, its first packet begins, and only then the relay daemon is told: in less. */
#define HOLD_NS (INT64_C(500) * 1000000)

#define NO_PLACE (UINT64_C(1) << 62) /* the offset of a packet that only the filter has */

/* ---- times ----------------------------------------------------------------------------------- */

/* Any number may come: sums wrap. */
static int64_t viewer_minus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* When may babeltrace2 know of that time? By our clock, HOLD_NS after it at the earliest. */
static int64_t viewer_due_ns(struct viewer *viewer, uint64_t time, int64_t now)
{
    const int64_t offset = viewer_minus(now, (int64_t)time);

    if (!viewer->has_offset || offset < viewer->offset_ns)
        viewer->offset_ns = offset;
    viewer->has_offset = true;
    return (int64_t)(time + (uint64_t)viewer->offset_ns + HOLD_NS);
}

/*
 * babeltrace2 2.0 asks for new streams only with a packet. Where there is none, a beacon becomes an
 * empty packet: the header of the stream's last one, with the beacon's time.
 */
static void viewer_make_packet(struct stream *stream, struct index_reply *reply)
{
    const uint64_t bits = stream->header_bytes * 8;
    const uint64_t time = be64toh(reply->end);
    uint64_t discarded = 0;

    memcpy(stream->header + 32, &time, 8); /* begin, end: in the order of bytes of this host */
    memcpy(stream->header + 40, &time, 8);
    memcpy(stream->header + 48, &bits, 8); /* content, packet */
    memcpy(stream->header + 56, &bits, 8);
    memcpy(&discarded, stream->header + 72, stream->header_bytes == HEADER_BYTES ? 8 : 4);
    reply->offset = htobe64(NO_PLACE);
    reply->packet_size = reply->content_size = htobe64(bits);
    reply->begin = reply->end;
    reply->discarded = htobe64(discarded);
    reply->status = htobe32(STATUS_OK);
}

/* Has the trace's metadata what babeltrace2 needs for that? False: it is to wait. */
static bool viewer_is_described(const struct stream *stream, const struct viewer_text *text,
                                const struct index_reply *reply)
{
    const uint64_t class_id = be64toh(reply->class_id);

    return !text || text->is_gone ||
           (viewer_is_whole(text) && metadata_has(&text->all, class_id)) ||
           viewer_minus(viewer_now_ns(), stream->undescribed_ns) > METADATA_NS;
}

/* The relay daemon tells of more than it has given; or it was not looked whether the class is
 * there.
 */
static bool viewer_needs_metadata(const struct stream *stream, const struct index_reply *reply)
{
    return !stream->is_described || stream->undescribed_ns || stream->class_id != reply->class_id ||
           (be32toh(reply->flags) & FLAG_NEW_METADATA);
}

/* Streams that wait look at what another one of their trace has asked for; who comes round and
 * finds that nobody has asks. Returns false if the connection is gone. */
static bool viewer_look_for_metadata(const struct viewer *viewer, struct stream *stream,
                                     struct viewer_text *text, struct index_reply *reply)
{
    const bool is_told = be32toh(reply->flags) & FLAG_NEW_METADATA;

    if ((is_told || stream->asks_seen == text->asks) && !viewer_take_metadata(viewer, text))
        return false;
    stream->asks_seen = text->asks;
    reply->flags &= ~htobe32(FLAG_NEW_METADATA);
    return true;
}

static bool viewer_hold(const struct viewer *viewer, struct stream *stream,
                        const struct index_reply *reply)
{
    const struct index_reply later = {.status = htobe32(INDEX_RETRY)};

    stream->is_held = true;
    stream->held = *reply;
    return viewer_put(viewer->reader, &later, sizeof(later));
}

bool viewer_give_index(struct viewer *viewer, const unsigned char *request, size_t size)
{
    struct stream *stream = size < 8 ? NULL : viewer_find_stream(viewer, viewer_long_at(request));
    struct index_reply reply = {.status = htobe32(INDEX_RETRY)};
    const int64_t now = viewer_now_ns();
    struct viewer_text *text;
    int64_t due;

    if (stream && stream->is_held)
        reply = stream->held;
    else if (!viewer_ask(viewer, CMD_INDEX, request, size) ||
             !viewer_get(viewer->relay, &reply, sizeof(reply)))
        return false;
    if (!stream || (be32toh(reply.status) != STATUS_OK && be32toh(reply.status) != INDEX_INACTIVE))
        return viewer_put(viewer->reader, &reply, sizeof(reply));
    due = viewer_due_ns(viewer, be64toh(reply.end), now);
    if (viewer_minus(due, viewer->asked_ns) > 0 && viewer_minus(due, now) > 0)
        return viewer_hold(viewer, stream, &reply);
    text = viewer_find_text(viewer, BY_TRACE, stream->trace);
    if (text && viewer_needs_metadata(stream, &reply)) {
        if (!viewer_look_for_metadata(viewer, stream, text, &reply))
            return false;
        if (stream->undescribed_ns == 0)
            stream->undescribed_ns = now;
        if (!viewer_is_described(stream, text, &reply))
            return viewer_hold(viewer, stream, &reply);
        stream->undescribed_ns = 0;
        stream->is_described = true;
        stream->class_id = reply.class_id;
    }
    if (viewer_minus(due, viewer->asked_ns) > 0) {
        if (!viewer_look_for_streams(viewer))
            return false;
        stream = viewer_find_stream(viewer, viewer_long_at(request)); /* they may have moved */
        viewer->asked_ns = now;
    }
    stream->is_held = false;
    if (viewer_has_new_streams(viewer)) {
        if (be32toh(reply.status) == INDEX_INACTIVE && stream->has_header && !viewer->has_flags)
            viewer_make_packet(stream, &reply);
        reply.flags |= htobe32(FLAG_NEW_STREAM);
    }
    text = viewer_find_text(viewer, BY_TRACE, stream->trace);
    if (text && text->size) /* we have asked for it, so the relay daemon does not say so */
        reply.flags |= htobe32(FLAG_NEW_METADATA);
    if (be32toh(reply.status) == STATUS_OK)
        stream->packet_at = be64toh(reply.offset);
    return viewer_put(viewer->reader, &reply, sizeof(reply));
}

/* ---- packets --------------------------------------------------------------------------------- */

bool viewer_give_packet(struct viewer *viewer, const unsigned char *request, size_t size)
{
    static const unsigned char ours[4] = {0xc1, 0x1f, 0xfc, 0xc1}; /* of this host's byte order */
    struct stream *stream = size < 20 ? NULL : viewer_find_stream(viewer, viewer_long_at(request));
    const uint64_t offset = stream ? viewer_long_at(request + 8) : 0;
    const uint32_t length = stream ? viewer_number_at(request + 16) : 0;
    unsigned char head[12], header[HEADER_BYTES];
    uint64_t rest;

    if (stream && offset >= NO_PLACE && offset - NO_PLACE <= stream->header_bytes &&
        length <= stream->header_bytes - (offset - NO_PLACE)) {
        const uint32_t answer[3] = {htobe32(STATUS_OK), htobe32(length), 0};

        return viewer_put(viewer->reader, answer, sizeof(answer)) &&
               viewer_put(viewer->reader, stream->header + (offset - NO_PLACE), length);
    }
    if (!viewer_ask(viewer, CMD_PACKET, request, size) ||
        !viewer_get(viewer->relay, head, sizeof(head)) ||
        !viewer_put(viewer->reader, head, sizeof(head)))
        return false;
    rest = viewer_number_at(head) == STATUS_OK ? viewer_number_at(head + 4) : 0;
    if (stream && stream->header_bytes && offset == stream->packet_at && rest >= HEADER_BYTES) {
        if (!viewer_get(viewer->relay, header, sizeof(header)) ||
            !viewer_put(viewer->reader, header, sizeof(header)))
            return false;
        stream->has_header = memcmp(header, ours, sizeof(ours)) == 0;
        memcpy(stream->header, header, sizeof(header));
        rest -= sizeof(header);
    }
    return viewer_pass(viewer, rest);
}
