/* Shared by the sources of the filter (viewer.h): its connection and the protocol's bytes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_VIEWER_PARTS_H
#define BLKIN_LIVE_VIEWER_PARTS_H

#include "viewer.h"

#include "babeltrace-plugin/base/file.h"
#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "metadata.h"

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SESSIONS_MAX        8 /* with one name: consumer daemons of 64 bits, 32 bits, and the kernel */
#define VIEWER_REQUEST_MAX  256
#define VIEWER_HEADER_BYTES 84 /* of a packet of LTTng-UST; 80 for 32 bits */

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
    size_t header_bytes; /* 0: not from LTTng-UST */
    bool is_held, has_header;
    bool is_described; /* the metadata declares the class class_id */
    uint64_t class_id;
    uint32_t flags;     /* of skipped packets */
    uint64_t asks_seen; /* viewer_text.asks of the trace at the last check */
    struct index_reply held;
    int64_t undescribed_ns;                    /* the begin of a wait for metadata; 0: none */
    unsigned char header[VIEWER_HEADER_BYTES]; /* of the last packet */
};

/* The metadata of a trace. `bytes` is the part that babeltrace2 has not requested yet. */
struct viewer_text {
    uint64_t stream, trace;
    struct metadata all;
    struct buffer bytes;
    uint64_t asks;        /* requests to the relay daemon */
    int64_t cut_since_ns; /* 0: not cut */
    bool is_gone;         /* the relay daemon has no such trace any more */
};

struct session {
    uint64_t id;
    unsigned char *streams; /* the answer to babeltrace2's next request; NULL: none */
    size_t bytes;
};

struct viewer {
    int listener, reader, relay;
    bool is_from_beginning, has_offset;
    int64_t from_ns;   /* skips packets that end before */
    bool has_flags;    /* babeltrace2 2.1 and later reads the flag in a beacon, too */
    int64_t offset_ns; /* the smallest lag of the trace's clock behind this host's */
    int64_t asked_ns;  /* babeltrace2 knows all streams up to this time */
    struct session sessions[SESSIONS_MAX];
    size_t session_count, stream_count, text_count;
    size_t stream_room, text_room;
    struct stream *streams;
    struct viewer_text *texts;
};

/* ---- bytes: viewer.c ------------------------------------------------------------------------- */

/* Reads all bytes. Returns false if the connection is gone, like write_all(): the thread gets no
 * SIGPIPE. */
bool viewer_get(int fd, void *bytes, size_t count);

/* Passes `count` bytes of the relay daemon's reply to babeltrace2. */
bool viewer_pass(const struct viewer *viewer, uint64_t count);

/* Sends the relay daemon a request. */
bool viewer_ask(const struct viewer *viewer, uint32_t command, const void *data, size_t size);

static inline uint32_t viewer_number_at(const unsigned char *bytes)
{
    uint32_t number;

    memcpy(&number, bytes, sizeof(number));
    return be32toh(number);
}

static inline uint64_t viewer_long_at(const unsigned char *bytes)
{
    uint64_t number;

    memcpy(&number, bytes, sizeof(number));
    return be64toh(number);
}

/* ---- streams: viewer.c ----------------------------------------------------------------------- */

/* Returns NULL if there is none. */
struct stream *viewer_find_stream(const struct viewer *viewer, uint64_t id);

/* Requests new streams, and stores the answer for babeltrace2's next request. */
bool viewer_look_for_streams(struct viewer *viewer);
bool viewer_has_new_streams(const struct viewer *viewer);

/* ---- metadata, times and packets: viewer_index.c --------------------------------------------- */

/* Adds the metadata stream of a list. Returns false when out of memory. */
bool viewer_add_text(struct viewer *viewer, const unsigned char *listed);
void viewer_forget_texts(struct viewer *viewer);

/* Answer babeltrace2's requests. Return false if the filter cannot continue. */
bool viewer_give_metadata(const struct viewer *viewer, const unsigned char *request, size_t size);
bool viewer_give_index(struct viewer *viewer, const unsigned char *request, size_t size);
bool viewer_give_packet(struct viewer *viewer, const unsigned char *request, size_t size);

#endif
