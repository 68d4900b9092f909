/*
 * The filter between babeltrace2 and the relay daemon's viewer port: LTTng's live protocol 2.4,
 * one request and one reply at a time, numbers in network byte order.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "viewer.h"

#include "metadata.h"

#include <arpa/inet.h>
#include <babeltrace2/babeltrace.h>
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A stream is made, its first packet begins, and only then the relay daemon is told: in less. */
#define HOLD_NS (INT64_C(500) * 1000000)

/* For metadata that is cut. Then babeltrace2 gets what there is. */
#define METADATA_NS  (INT64_C(10) * 1000000000)
#define METADATA_MAX (UINT64_C(64) << 20) /* bytes that babeltrace2 has not asked for */

#define STREAMS_MAX  16384 /* a session's: CPUs times users times channels */
#define SESSIONS_MAX 8     /* of one name: consumer daemons of 64 and 32 bits, and the kernel's */
#define REQUEST_MAX  256
#define LISTED_BYTES 339  /* a session in a list */
#define STREAM_BYTES 4371 /* a stream in a list: id, trace, is it metadata, path, channel */
#define HEADER_BYTES 84   /* of a packet of LTTng-UST; 80 of one of 32 bits */
#define NO_PLACE     (UINT64_C(1) << 62) /* the offset of a packet that only the filter has */

enum {
    CMD_CONNECT = 1,
    CMD_LIST,
    CMD_ATTACH,
    CMD_INDEX,
    CMD_PACKET,
    CMD_METADATA,
    CMD_NEW_STREAMS
};
enum { CMD_CREATE = 8, CMD_DETACH };
enum { STATUS_OK = 1, INDEX_RETRY = 2, METADATA_NO_NEW = 2, METADATA_GONE = 3, INDEX_INACTIVE = 5 };
enum { FLAG_NEW_METADATA = 1, FLAG_NEW_STREAM = 2, SEEK_BEGINNING = 1 };

struct index_reply {
    uint64_t offset, packet_size, content_size, begin, end, discarded, class_id;
    uint32_t status, flags;
} __attribute__((packed));

struct stream {
    uint64_t id, trace, packet_at;
    size_t header_bytes; /* 0: not of LTTng-UST */
    bool is_held, has_header;
    bool is_described; /* the metadata has its class: */
    uint64_t class_id;
    uint64_t asks_seen; /* of its trace's text, when that was looked at last */
    struct index_reply held;
    int64_t undescribed_ns;             /* since then metadata is waited for; 0: it is not */
    unsigned char header[HEADER_BYTES]; /* of its last packet */
};

/* Of a trace: what the relay daemon has given, and what of it babeltrace2 has not. */
struct text {
    uint64_t stream, trace;
    struct metadata all;
    unsigned char *bytes;
    size_t size;
    uint64_t asks;        /* how often the relay daemon was asked for more */
    int64_t cut_since_ns; /* 0: it is whole */
    bool is_gone;         /* there is no more */
};

struct session {
    uint64_t id;
    unsigned char *streams; /* the answer that babeltrace2 has not asked for yet; NULL: none */
    size_t bytes;
};

struct viewer {
    int listener, reader, relay;
    bool is_from_beginning, has_offset;
    bool has_flags;    /* babeltrace2 (since 2.1) takes the flag from a beacon, too */
    int64_t offset_ns; /* how far the trace's clock is behind ours, at the least */
    int64_t asked_ns;  /* no time up to this one has streams that babeltrace2 does not know */
    struct session sessions[SESSIONS_MAX];
    size_t session_count, stream_count, text_count;
    struct stream *streams;
    struct text *texts;
};

/* ---- bytes ----------------------------------------------------------------------------------- */

static bool get(int fd, void *bytes, size_t count)
{
    return count == 0 || recv(fd, bytes, count, MSG_WAITALL) == (ssize_t)count;
}

static bool put(int fd, const void *bytes, size_t count)
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

static bool pass(const struct viewer *viewer, uint64_t count)
{
    char bytes[16384];

    while (count) {
        const size_t some = count < sizeof(bytes) ? (size_t)count : sizeof(bytes);

        if (!get(viewer->relay, bytes, some) || !put(viewer->reader, bytes, some))
            return false;
        count -= some;
    }
    return true;
}

static uint32_t number_at(const unsigned char *bytes)
{
    uint32_t number;

    memcpy(&number, bytes, sizeof(number));
    return be32toh(number);
}

static uint64_t long_at(const unsigned char *bytes)
{
    uint64_t number;

    memcpy(&number, bytes, sizeof(number));
    return be64toh(number);
}

static bool ask(const struct viewer *viewer, uint32_t command, const void *data, size_t size)
{
    unsigned char request[16 + REQUEST_MAX];
    const uint64_t size_sent = htobe64(size);
    const uint32_t command_sent = htobe32(command), version = 0;

    memcpy(request, &size_sent, 8);
    memcpy(request + 8, &command_sent, 4);
    memcpy(request + 12, &version, 4);
    memcpy(request + 16, data, size);
    return put(viewer->relay, request, 16 + size);
}

/* ---- streams --------------------------------------------------------------------------------- */

static struct stream *find(const struct viewer *viewer, uint64_t id)
{
    for (size_t i = 0; i < viewer->stream_count; i++) {
        if (viewer->streams[i].id == id)
            return &viewer->streams[i];
    }
    return NULL;
}

enum text_key { BY_STREAM, BY_TRACE };

static struct text *find_text(const struct viewer *viewer, enum text_key key, uint64_t id)
{
    for (size_t i = 0; i < viewer->text_count; i++) {
        struct text *text = &viewer->texts[i];

        if ((key == BY_STREAM ? text->stream : text->trace) == id)
            return text;
    }
    return NULL;
}

static bool add_text(struct viewer *viewer, const unsigned char *listed)
{
    struct text *more = reallocarray(viewer->texts, viewer->text_count + 1, sizeof(*viewer->texts));

    if (!more)
        return false;
    viewer->texts = more;
    more[viewer->text_count++] =
        (struct text){.stream = long_at(listed), .trace = long_at(listed + 8)};
    return true;
}

static void forget_texts(struct viewer *viewer)
{
    for (size_t i = 0; i < viewer->text_count; i++)
        free(viewer->texts[i].bytes);
    viewer->text_count = 0;
}

static bool add(struct viewer *viewer, const unsigned char *listed)
{
    const char *path = (const char *)listed + 20;
    struct stream *streams;

    if (viewer->stream_count == STREAMS_MAX)
        return false;
    if (number_at(listed + 16) && !add_text(viewer, listed))
        return false;
    if ((viewer->stream_count & (viewer->stream_count - 1)) == 0) {
        streams = realloc(viewer->streams,
                          sizeof(*streams) * (viewer->stream_count ? 2 * viewer->stream_count : 1));
        if (!streams)
            return false;
        viewer->streams = streams;
    }
    viewer->streams[viewer->stream_count++] =
        (struct stream){.id = long_at(listed),
                        .trace = long_at(listed + 8),
                        .packet_at = UINT64_MAX,
                        .header_bytes = !memmem(path, 4096, "ust/", 4)    ? 0
                                        : memmem(path, 4096, "32-bit", 6) ? HEADER_BYTES - 4
                                                                          : HEADER_BYTES};
    return true;
}

/* The reply to "attach" and to "new streams", whole. NULL: the connection is gone. */
static unsigned char *take_streams(struct viewer *viewer, size_t *bytes)
{
    unsigned char head[8], *reply = NULL;
    uint32_t count;

    if (!get(viewer->relay, head, sizeof(head)))
        return NULL;
    count = number_at(head) == STATUS_OK ? number_at(head + 4) : 0;
    if (count > STREAMS_MAX)
        return NULL;
    *bytes = sizeof(head) + (size_t)count * STREAM_BYTES;
    reply = malloc(*bytes);
    if (reply)
        memcpy(reply, head, sizeof(head));
    if (!reply || !get(viewer->relay, reply + sizeof(head), *bytes - sizeof(head))) {
        free(reply);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!add(viewer, reply + sizeof(head) + (size_t)i * STREAM_BYTES)) {
            free(reply);
            return NULL;
        }
    }
    return reply;
}

static bool attach(struct viewer *viewer, unsigned char *request, size_t size)
{
    const uint32_t seek = htobe32(SEEK_BEGINNING);
    unsigned char *reply;
    size_t bytes;
    bool is_good;

    if (size < 20 || viewer->session_count == SESSIONS_MAX)
        return false;
    if (viewer->is_from_beginning)
        memcpy(request + 16, &seek, sizeof(seek));
    if (!ask(viewer, CMD_ATTACH, request, size) || (reply = take_streams(viewer, &bytes)) == NULL)
        return false;
    if (number_at(reply) == STATUS_OK)
        viewer->sessions[viewer->session_count++] = (struct session){.id = long_at(request)};
    is_good = put(viewer->reader, reply, bytes);
    free(reply);
    return is_good;
}

/* babeltrace2 leaves a session that has ended, and waits for the next one of its name. */
static void forget_session(struct viewer *viewer, const unsigned char *request, size_t size)
{
    for (size_t i = 0; size >= 8 && i < viewer->session_count; i++) {
        if (viewer->sessions[i].id != long_at(request))
            continue;
        free(viewer->sessions[i].streams);
        viewer->sessions[i] = viewer->sessions[--viewer->session_count];
        break;
    }
    if (viewer->session_count == 0) {
        viewer->stream_count = 0;
        forget_texts(viewer);
    }
}

/* Asks for streams that babeltrace2 does not know of: what it has not asked for is kept. */
static bool look_for_streams(struct viewer *viewer)
{
    for (size_t i = 0; i < viewer->session_count; i++) {
        struct session *session = &viewer->sessions[i];
        const uint64_t id = htobe64(session->id);
        unsigned char *reply;

        if (session->streams)
            continue;
        if (!ask(viewer, CMD_NEW_STREAMS, &id, sizeof(id)) ||
            (reply = take_streams(viewer, &session->bytes)) == NULL)
            return false;
        if (session->bytes > 8)
            session->streams = reply;
        else
            free(reply);
    }
    return true;
}

static bool has_new_streams(const struct viewer *viewer)
{
    for (size_t i = 0; i < viewer->session_count; i++) {
        if (viewer->sessions[i].streams)
            return true;
    }
    return false;
}

static bool give_new_streams(struct viewer *viewer, const unsigned char *request, size_t size)
{
    struct session *session = viewer->sessions;
    unsigned char *reply = NULL;
    size_t bytes;
    bool is_good;

    if (size < 8)
        return false;
    while (session < viewer->sessions + viewer->session_count && session->id != long_at(request))
        session++;
    if (session < viewer->sessions + viewer->session_count && session->streams) {
        reply = session->streams;
        bytes = session->bytes;
        session->streams = NULL;
    } else if (!ask(viewer, CMD_NEW_STREAMS, request, size) ||
               (reply = take_streams(viewer, &bytes)) == NULL) {
        return false;
    }
    is_good = put(viewer->reader, reply, bytes);
    free(reply);
    return is_good;
}

/* ---- metadata -------------------------------------------------------------------------------- */

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static bool take_packets(const struct viewer *viewer, struct text *text, uint64_t count)
{
    unsigned char *more;

    if (count > METADATA_MAX - text->size)
        return false;
    more = realloc(text->bytes, text->size + (size_t)count);
    if (!more)
        return false;
    text->bytes = more;
    if (!get(viewer->relay, more + text->size, (size_t)count))
        return false;
    metadata_add(&text->all, more + text->size, (size_t)count);
    text->size += (size_t)count;
    return true;
}

/* All that the relay daemon has. Returns false if the connection is gone. */
static bool take_metadata(const struct viewer *viewer, struct text *text)
{
    const uint64_t id = htobe64(text->stream);
    unsigned char head[12];
    uint64_t count;

    text->asks++;
    do {
        if (!ask(viewer, CMD_METADATA, &id, sizeof(id)) || !get(viewer->relay, head, sizeof(head)))
            return false;
        count = number_at(head + 8) == STATUS_OK ? long_at(head) : 0;
        if (count && !take_packets(viewer, text, count))
            return false;
    } while (count);
    text->is_gone = number_at(head + 8) == METADATA_GONE;
    if (metadata_is_whole(&text->all))
        text->cut_since_ns = 0;
    else if (text->cut_since_ns == 0)
        text->cut_since_ns = now_ns();
    return true;
}

/* May babeltrace2 have it? */
static bool is_whole(const struct text *text)
{
    return text->is_gone || metadata_is_whole(&text->all) ||
           (text->cut_since_ns && now_ns() - text->cut_since_ns > METADATA_NS);
}

static bool give_metadata(const struct viewer *viewer, const unsigned char *request, size_t size)
{
    struct text *text = size < 8 ? NULL : find_text(viewer, BY_STREAM, long_at(request));
    uint64_t count = 0;
    uint32_t status = METADATA_GONE;
    unsigned char head[12];
    bool is_good;

    if (text && !take_metadata(viewer, text))
        return false;
    if (text) {
        count = is_whole(text) ? text->size : 0;
        status = count ? STATUS_OK : text->is_gone ? METADATA_GONE : METADATA_NO_NEW;
    }
    count = htobe64(count);
    status = htobe32(status);
    memcpy(head, &count, 8);
    memcpy(head + 8, &status, 4);
    is_good = put(viewer->reader, head, sizeof(head));
    if (!text || number_at(head + 8) != STATUS_OK)
        return is_good;
    is_good = is_good && put(viewer->reader, text->bytes, text->size);
    free(text->bytes);
    text->bytes = NULL;
    text->size = 0;
    return is_good;
}

/* ---- times ----------------------------------------------------------------------------------- */

/* Any number may come: sums wrap. */
static int64_t minus(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

/* When may babeltrace2 know of that time? By our clock, HOLD_NS after it at the earliest. */
static int64_t due_ns(struct viewer *viewer, uint64_t time, int64_t now)
{
    const int64_t offset = minus(now, (int64_t)time);

    if (!viewer->has_offset || offset < viewer->offset_ns)
        viewer->offset_ns = offset;
    viewer->has_offset = true;
    return (int64_t)(time + (uint64_t)viewer->offset_ns + HOLD_NS);
}

/*
 * babeltrace2 2.0 asks for new streams only with a packet. Where there is none, a beacon becomes an
 * empty packet: the header of the stream's last one, with the beacon's time.
 */
static void make_packet(struct stream *stream, struct index_reply *reply)
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
static bool is_described(const struct stream *stream, const struct text *text,
                         const struct index_reply *reply)
{
    const uint64_t class_id = be64toh(reply->class_id);

    return !text || text->is_gone || (is_whole(text) && metadata_has(&text->all, class_id)) ||
           minus(now_ns(), stream->undescribed_ns) > METADATA_NS;
}

/* The relay daemon tells of more than it has given; or it was not looked whether the class is
 * there.
 */
static bool needs_metadata(const struct stream *stream, const struct index_reply *reply)
{
    return !stream->is_described || stream->undescribed_ns || stream->class_id != reply->class_id ||
           (be32toh(reply->flags) & FLAG_NEW_METADATA);
}

/* Streams that wait look at what another one of their trace has asked for; who comes round and
 * finds that nobody has asks. Returns false if the connection is gone. */
static bool look_for_metadata(const struct viewer *viewer, struct stream *stream, struct text *text,
                              struct index_reply *reply)
{
    const bool is_told = be32toh(reply->flags) & FLAG_NEW_METADATA;

    if ((is_told || stream->asks_seen == text->asks) && !take_metadata(viewer, text))
        return false;
    stream->asks_seen = text->asks;
    reply->flags &= ~htobe32(FLAG_NEW_METADATA);
    return true;
}

static bool hold(const struct viewer *viewer, struct stream *stream,
                 const struct index_reply *reply)
{
    const struct index_reply later = {.status = htobe32(INDEX_RETRY)};

    stream->is_held = true;
    stream->held = *reply;
    return put(viewer->reader, &later, sizeof(later));
}

static bool give_index(struct viewer *viewer, const unsigned char *request, size_t size)
{
    struct stream *stream = size < 8 ? NULL : find(viewer, long_at(request));
    struct index_reply reply = {.status = htobe32(INDEX_RETRY)};
    const int64_t now = now_ns();
    struct text *text;
    int64_t due;

    if (stream && stream->is_held)
        reply = stream->held;
    else if (!ask(viewer, CMD_INDEX, request, size) || !get(viewer->relay, &reply, sizeof(reply)))
        return false;
    if (!stream || (be32toh(reply.status) != STATUS_OK && be32toh(reply.status) != INDEX_INACTIVE))
        return put(viewer->reader, &reply, sizeof(reply));
    due = due_ns(viewer, be64toh(reply.end), now);
    if (minus(due, viewer->asked_ns) > 0 && minus(due, now) > 0)
        return hold(viewer, stream, &reply);
    text = find_text(viewer, BY_TRACE, stream->trace);
    if (text && needs_metadata(stream, &reply)) {
        if (!look_for_metadata(viewer, stream, text, &reply))
            return false;
        if (stream->undescribed_ns == 0)
            stream->undescribed_ns = now;
        if (!is_described(stream, text, &reply))
            return hold(viewer, stream, &reply);
        stream->undescribed_ns = 0;
        stream->is_described = true;
        stream->class_id = reply.class_id;
    }
    if (minus(due, viewer->asked_ns) > 0) {
        if (!look_for_streams(viewer))
            return false;
        stream = find(viewer, long_at(request)); /* they may have moved */
        viewer->asked_ns = now;
    }
    stream->is_held = false;
    if (has_new_streams(viewer)) {
        if (be32toh(reply.status) == INDEX_INACTIVE && stream->has_header && !viewer->has_flags)
            make_packet(stream, &reply);
        reply.flags |= htobe32(FLAG_NEW_STREAM);
    }
    text = find_text(viewer, BY_TRACE, stream->trace);
    if (text && text->size) /* we have asked for it, so the relay daemon does not say so */
        reply.flags |= htobe32(FLAG_NEW_METADATA);
    if (be32toh(reply.status) == STATUS_OK)
        stream->packet_at = be64toh(reply.offset);
    return put(viewer->reader, &reply, sizeof(reply));
}

/* ---- packets --------------------------------------------------------------------------------- */

static bool give_packet(struct viewer *viewer, const unsigned char *request, size_t size)
{
    static const unsigned char ours[4] = {0xc1, 0x1f, 0xfc, 0xc1}; /* of this host's byte order */
    struct stream *stream = size < 20 ? NULL : find(viewer, long_at(request));
    const uint64_t offset = stream ? long_at(request + 8) : 0;
    const uint32_t length = stream ? number_at(request + 16) : 0;
    unsigned char head[12], header[HEADER_BYTES];
    uint64_t rest;

    if (stream && offset >= NO_PLACE && offset - NO_PLACE <= stream->header_bytes &&
        length <= stream->header_bytes - (offset - NO_PLACE)) {
        const uint32_t answer[3] = {htobe32(STATUS_OK), htobe32(length), 0};

        return put(viewer->reader, answer, sizeof(answer)) &&
               put(viewer->reader, stream->header + (offset - NO_PLACE), length);
    }
    if (!ask(viewer, CMD_PACKET, request, size) || !get(viewer->relay, head, sizeof(head)) ||
        !put(viewer->reader, head, sizeof(head)))
        return false;
    rest = number_at(head) == STATUS_OK ? number_at(head + 4) : 0;
    if (stream && stream->header_bytes && offset == stream->packet_at && rest >= HEADER_BYTES) {
        if (!get(viewer->relay, header, sizeof(header)) ||
            !put(viewer->reader, header, sizeof(header)))
            return false;
        stream->has_header = memcmp(header, ours, sizeof(ours)) == 0;
        memcpy(stream->header, header, sizeof(header));
        rest -= sizeof(header);
    }
    return pass(viewer, rest);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* So many bytes, the rest's length in them: a number at this place times so many bytes. */
static bool pass_list(const struct viewer *viewer)
{
    unsigned char head[4];

    return get(viewer->relay, head, 4) && put(viewer->reader, head, 4) &&
           pass(viewer, (uint64_t)number_at(head) * LISTED_BYTES);
}

static void limit_minor(unsigned char *version)
{
    const uint32_t minor = htobe32(4);

    if (number_at(version + 12) > 4)
        memcpy(version + 12, &minor, sizeof(minor));
}

/* Later versions have longer replies. Each side speaks as the older one of the two does, by what
 * the other one tells: LTTng 2.16 tells its own version in the reply. */
static bool connect_viewer(const struct viewer *viewer, unsigned char *request, size_t size)
{
    unsigned char reply[20];

    if (size < 20)
        return false;
    limit_minor(request);
    if (!ask(viewer, CMD_CONNECT, request, size) || !get(viewer->relay, reply, sizeof(reply)))
        return false;
    limit_minor(reply);
    return put(viewer->reader, reply, sizeof(reply));
}

static bool serve(struct viewer *viewer)
{
    unsigned char head[16], request[REQUEST_MAX];
    uint64_t size;

    if (!get(viewer->reader, head, sizeof(head)) || (size = long_at(head)) > sizeof(request) ||
        !get(viewer->reader, request, (size_t)size))
        return false;
    switch (number_at(head + 8)) {
    case CMD_ATTACH:
        return attach(viewer, request, (size_t)size);
    case CMD_NEW_STREAMS:
        return give_new_streams(viewer, request, (size_t)size);
    case CMD_INDEX:
        return give_index(viewer, request, (size_t)size);
    case CMD_PACKET:
        return give_packet(viewer, request, (size_t)size);
    case CMD_CONNECT:
        return connect_viewer(viewer, request, (size_t)size);
    case CMD_LIST:
        return ask(viewer, CMD_LIST, request, (size_t)size) && pass_list(viewer);
    case CMD_METADATA:
        return give_metadata(viewer, request, (size_t)size);
    case CMD_DETACH:
        forget_session(viewer, request, (size_t)size);
        return ask(viewer, CMD_DETACH, request, (size_t)size) && pass(viewer, 4);
    case CMD_CREATE:
        return ask(viewer, CMD_CREATE, request, (size_t)size) && pass(viewer, 4);
    default:
        return false;
    }
}

static void *run(void *argument)
{
    struct viewer *viewer = argument;
    const int one = 1;

    viewer->reader = accept4(viewer->listener, NULL, NULL, SOCK_CLOEXEC);
    close(viewer->listener);
    (void)setsockopt(viewer->reader, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void)setsockopt(viewer->relay, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    while (viewer->reader >= 0 && serve(viewer))
        ;
    close(viewer->relay);
    if (viewer->reader >= 0)
        close(viewer->reader);
    for (size_t i = 0; i < viewer->session_count; i++)
        free(viewer->sessions[i].streams);
    forget_texts(viewer);
    free(viewer->texts);
    free(viewer->streams);
    free(viewer);
    return NULL;
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* IPv4, as babeltrace2 would. */
static int connect_to(const char *live_url)
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

static bool start_thread(struct viewer *viewer)
{
    sigset_t all, before;
    pthread_t thread;
    int cause;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* an end interrupts babeltrace2, not us */
    cause = pthread_create(&thread, NULL, run, viewer);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (cause == 0)
        cause = pthread_detach(thread);
    errno = cause;
    return cause == 0;
}

int viewer_start(const char *live_url, bool from_beginning)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    struct viewer *viewer = calloc(1, sizeof(*viewer));

    if (!viewer)
        return 0;
    *viewer =
        (struct viewer){.is_from_beginning = from_beginning,
                        .reader = -1,
                        .listener = -1,
                        .asked_ns = now_ns(),
                        .has_flags = bt_version_get_major() > 2 || bt_version_get_minor() > 0};
    viewer->relay = connect_to(live_url);
    if (viewer->relay >= 0)
        viewer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (viewer->listener >= 0 &&
        bind(viewer->listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        listen(viewer->listener, 1) == 0 &&
        getsockname(viewer->listener, (struct sockaddr *)&address, &size) == 0 &&
        start_thread(viewer))
        return ntohs(address.sin_port);
    if (viewer->listener >= 0)
        close(viewer->listener);
    if (viewer->relay >= 0)
        close(viewer->relay);
    free(viewer);
    return 0;
}
