/* The filter: metadata, packets, and the delay of packets and beacons.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "viewer_parts.h"

#define METADATA_MAX ((size_t)64 << 20) /* bytes that babeltrace2 has not requested yet */
/* The longest wait for the missing end of cut metadata. After that, babeltrace2 gets the cut text.
 */
#define METADATA_NS (INT64_C(10) * 1000000000)

/* The delay of packets and beacons. LTTng announces a new stream within a shorter time after the
 * begin of the stream's first packet. */
#define HOLD_NS (INT64_C(500) * 1000000)

#define MADE_OFFSET (UINT64_C(1) << 62) /* the offset of a packet made by the filter */

/* ---- metadata: babeltrace2 gets it when it is whole ------------------------------------------ */

enum text_key { BY_STREAM, BY_TRACE };

/* Returns NULL if there is none. */
static struct viewer_text *viewer_find_text(const struct viewer *viewer, enum text_key key,
                                            uint64_t id)
{
    for (size_t i = 0; i < viewer->text_count; i++) {
        struct viewer_text *text = &viewer->texts[i];

        if ((key == BY_STREAM ? text->stream : text->trace) == id)
            return text;
    }
    return NULL;
}

bool viewer_add_text(struct viewer *viewer, const unsigned char *listed)
{
    if (!ARRAY_FITS(viewer->texts, viewer->text_room, viewer->text_count))
        return false;
    viewer->texts[viewer->text_count++] = (struct viewer_text){.stream = viewer_long_at(listed),
                                                               .trace = viewer_long_at(listed + 8),
                                                               .bytes.limit = METADATA_MAX};
    return true;
}

void viewer_forget_texts(struct viewer *viewer)
{
    for (size_t i = 0; i < viewer->text_count; i++)
        buffer_free(&viewer->texts[i].bytes);
    viewer->text_count = 0;
}

static bool viewer_take_metadata_packets(const struct viewer *viewer, struct viewer_text *text,
                                         size_t count)
{
    struct buffer *bytes = &text->bytes;

    if (!buffer_reserve(bytes, count) ||
        !viewer_get(viewer->relay, bytes->data + bytes->length, count))
        return false;
    metadata_add(&text->all, (const unsigned char *)bytes->data + bytes->length, count);
    bytes->length += count;
    return true;
}

/* Requests metadata until the relay daemon has no more. Returns false if the connection is gone. */
static bool viewer_take_metadata(const struct viewer *viewer, struct viewer_text *text)
{
    const uint64_t id = htobe64(text->stream);
    unsigned char head[12];
    uint64_t count;

    text->asks++;
    do {
        if (!viewer_ask(viewer, CMD_METADATA, &id, sizeof(id)) ||
            !viewer_get(viewer->relay, head, sizeof(head)))
            return false;
        count = viewer_number_at(head + 8) == STATUS_OK ? viewer_long_at(head) : 0;
        if (count && !viewer_take_metadata_packets(viewer, text, count))
            return false;
    } while (count);
    text->is_gone = viewer_number_at(head + 8) == METADATA_GONE;
    if (metadata_is_whole(&text->all))
        text->cut_since_ns = 0;
    else if (text->cut_since_ns == 0)
        text->cut_since_ns = clock_ns();
    return true;
}

/* Returns whether babeltrace2 gets the metadata: it is whole, or its end has not come in time. */
static bool viewer_is_readable(const struct viewer_text *text)
{
    return text->is_gone || metadata_is_whole(&text->all) ||
           (text->cut_since_ns && clock_ns() - text->cut_since_ns > METADATA_NS);
}

bool viewer_give_metadata(const struct viewer *viewer, const unsigned char *request, size_t size)
{
    struct viewer_text *text =
        size < 8 ? NULL : viewer_find_text(viewer, BY_STREAM, viewer_long_at(request));
    uint64_t count = 0;
    uint32_t status = METADATA_GONE;
    unsigned char head[12];
    bool is_good;

    if (text && !viewer_take_metadata(viewer, text))
        return false;
    if (text) {
        count = viewer_is_readable(text) ? text->bytes.length : 0;
        status = count ? STATUS_OK : text->is_gone ? METADATA_GONE : METADATA_NO_NEW;
    }
    count = htobe64(count);
    status = htobe32(status);
    memcpy(head, &count, 8);
    memcpy(head + 8, &status, 4);
    is_good = write_all(viewer->reader, head, sizeof(head));
    if (!text || viewer_number_at(head + 8) != STATUS_OK)
        return is_good;
    is_good = is_good && write_all(viewer->reader, text->bytes.data, text->bytes.length);
    buffer_free(&text->bytes);
    return is_good;
}

/* ---- times ----------------------------------------------------------------------------------- */

/* Subtracts with wrap-around, as the network may send any number. */
static int64_t viewer_minus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* Returns the time of this host's clock at which babeltrace2 may get a packet that ends at `time`.
 */
static int64_t viewer_due_ns(struct viewer *viewer, uint64_t time, int64_t now)
{
    const int64_t offset = viewer_minus(now, (int64_t)time);

    if (!viewer->has_offset || offset < viewer->offset_ns)
        viewer->offset_ns = offset;
    viewer->has_offset = true;
    return (int64_t)(time + (uint64_t)viewer->offset_ns + HOLD_NS);
}

/* babeltrace2 2.0 asks for new streams only after a packet. Turns a beacon into an empty packet:
 * the stream's last packet header with the beacon's time. */
static void viewer_make_packet(struct stream *stream, struct index_reply *reply)
{
    const uint64_t bits = stream->header_bytes * 8;
    const uint64_t time = be64toh(reply->end);
    uint64_t discarded = 0;

    memcpy(stream->header + 32, &time, 8); /* begin and end, in this host's byte order */
    memcpy(stream->header + 40, &time, 8);
    memcpy(stream->header + 48, &bits, 8); /* content and packet size */
    memcpy(stream->header + 56, &bits, 8);
    memcpy(&discarded, stream->header + 72, stream->header_bytes == VIEWER_HEADER_BYTES ? 8 : 4);
    reply->offset = htobe64(MADE_OFFSET);
    reply->packet_size = reply->content_size = htobe64(bits);
    reply->begin = reply->end;
    reply->discarded = htobe64(discarded);
    reply->status = htobe32(STATUS_OK);
}

/* Returns false if babeltrace2 has to wait for metadata that describes the reply's stream class. */
static bool viewer_is_described(const struct stream *stream, const struct viewer_text *text,
                                const struct index_reply *reply)
{
    const uint64_t class_id = be64toh(reply->class_id);

    return !text || text->is_gone ||
           (viewer_is_readable(text) && metadata_has(&text->all, class_id)) ||
           viewer_minus(clock_ns(), stream->undescribed_ns) > METADATA_NS;
}

/* Returns whether the relay daemon announces new metadata, or the stream's class was not checked
 * yet. */
static bool viewer_needs_metadata(const struct stream *stream, const struct index_reply *reply)
{
    return !stream->is_described || stream->undescribed_ns || stream->class_id != reply->class_id ||
           (be32toh(reply->flags) & FLAG_NEW_METADATA);
}

/* Requests new metadata, unless another stream of the same trace has done so since this stream's
 * last check. Returns false if the connection is gone. */
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
    return write_all(viewer->reader, &later, sizeof(later));
}

/* Returns whether the reply is a packet that ends before from_ns. */
static bool viewer_is_before(const struct viewer *viewer, const struct stream *stream,
                             const struct index_reply *reply)
{
    const struct viewer_text *text =
        stream && viewer->from_ns ? viewer_find_text(viewer, BY_TRACE, stream->trace) : NULL;

    return text && text->all.offset && be32toh(reply->status) == STATUS_OK &&
           viewer_minus((int64_t)(be64toh(reply->end) + text->all.offset), viewer->from_ns) < 0;
}

/* Requests the index of the next packet that does not end before from_ns. Returns false if the
 * connection is gone. */
static bool viewer_take_index(const struct viewer *viewer, struct stream *stream,
                              const unsigned char *request, size_t size, struct index_reply *reply)
{
    for (;;) {
        if (!viewer_ask(viewer, CMD_INDEX, request, size) ||
            !viewer_get(viewer->relay, reply, sizeof(*reply)))
            return false;
        if (!viewer_is_before(viewer, stream, reply))
            break;
        stream->flags |= reply->flags;
    }
    if (stream)
        reply->flags |= stream->flags;
    if (stream && be32toh(reply->status) == STATUS_OK)
        stream->flags = 0;
    return true;
}

bool viewer_give_index(struct viewer *viewer, const unsigned char *request, size_t size)
{
    struct stream *stream = size < 8 ? NULL : viewer_find_stream(viewer, viewer_long_at(request));
    struct index_reply reply = {.status = htobe32(INDEX_RETRY)};
    const int64_t now = clock_ns();
    struct viewer_text *text;
    int64_t due;

    if (stream && stream->is_held)
        reply = stream->held;
    else if (!viewer_take_index(viewer, stream, request, size, &reply))
        return false;
    if (!stream || (be32toh(reply.status) != STATUS_OK && be32toh(reply.status) != INDEX_INACTIVE))
        return write_all(viewer->reader, &reply, sizeof(reply));
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
        stream = viewer_find_stream(viewer, viewer_long_at(request)); /* the array may have moved */
        viewer->asked_ns = now;
    }
    stream->is_held = false;
    if (viewer_has_new_streams(viewer)) {
        if (be32toh(reply.status) == INDEX_INACTIVE && stream->has_header && !viewer->has_flags)
            viewer_make_packet(stream, &reply);
        reply.flags |= htobe32(FLAG_NEW_STREAM);
    }
    text = viewer_find_text(viewer, BY_TRACE, stream->trace);
    /* the filter has requested the metadata, so the relay daemon does not set the flag */
    if (text && text->bytes.length)
        reply.flags |= htobe32(FLAG_NEW_METADATA);
    if (be32toh(reply.status) == STATUS_OK)
        stream->packet_at = be64toh(reply.offset);
    return write_all(viewer->reader, &reply, sizeof(reply));
}

/* ---- packets --------------------------------------------------------------------------------- */

bool viewer_give_packet(struct viewer *viewer, const unsigned char *request, size_t size)
{
    static const unsigned char ours[4] = {0xc1, 0x1f, 0xfc, 0xc1}; /* in this host's byte order */
    struct stream *stream = size < 20 ? NULL : viewer_find_stream(viewer, viewer_long_at(request));
    const uint64_t offset = stream ? viewer_long_at(request + 8) : 0;
    const uint32_t length = stream ? viewer_number_at(request + 16) : 0;
    unsigned char head[12], header[VIEWER_HEADER_BYTES];
    uint64_t rest;

    if (stream && offset >= MADE_OFFSET && offset - MADE_OFFSET <= stream->header_bytes &&
        length <= stream->header_bytes - (offset - MADE_OFFSET)) {
        const uint32_t answer[3] = {htobe32(STATUS_OK), htobe32(length), 0};

        return write_all(viewer->reader, answer, sizeof(answer)) &&
               write_all(viewer->reader, stream->header + (offset - MADE_OFFSET), length);
    }
    if (!viewer_ask(viewer, CMD_PACKET, request, size) ||
        !viewer_get(viewer->relay, head, sizeof(head)) ||
        !write_all(viewer->reader, head, sizeof(head)))
        return false;
    rest = viewer_number_at(head) == STATUS_OK ? viewer_number_at(head + 4) : 0;
    if (stream && stream->header_bytes && offset == stream->packet_at &&
        rest >= VIEWER_HEADER_BYTES) {
        if (!viewer_get(viewer->relay, header, sizeof(header)) ||
            !write_all(viewer->reader, header, sizeof(header)))
            return false;
        stream->has_header = memcmp(header, ours, sizeof(ours)) == 0;
        memcpy(stream->header, header, sizeof(header));
        rest -= sizeof(header);
    }
    return viewer_pass(viewer, rest);
}
