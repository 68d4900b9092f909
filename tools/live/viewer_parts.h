/*
 * What the files of the filter share: the state of its connection, and the bytes of the protocol.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_VIEWER_PARTS_H
#define BLKIN_LIVE_VIEWER_PARTS_H

#include "viewer.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/write_all.h"
#include "metadata.h"

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SESSIONS_MAX 8 /* of one name: consumer daemons of 64 and 32 bits, and the kernel's */
#define REQUEST_MAX  256
#define HEADER_BYTES 84 /* of a packet of LTTng-UST; 80 of one of 32 bits */

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
    uint32_t flags;     /* of packets that were passed over */
    uint64_t asks_seen; /* of its trace's text, when that was looked at last */
    struct index_reply held;
    int64_t undescribed_ns;             /* since then metadata is waited for; 0: it is not */
    unsigned char header[HEADER_BYTES]; /* of its last packet */
};

/* Of a trace: what the relay daemon has given, and what of it babeltrace2 has not. */
struct viewer_text {
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
    int64_t from_ns;   /* packets that end before are passed over */
    bool has_flags;    /* babeltrace2 (since 2.1) takes the flag from a beacon, too */
    int64_t offset_ns; /* how far the trace's clock is behind ours, at the least */
    int64_t asked_ns;  /* no time up to this one has streams that babeltrace2 does not know */
    struct session sessions[SESSIONS_MAX];
    size_t session_count, stream_count, text_count;
    struct stream *streams;
    struct viewer_text *texts;
};

/* ---- bytes: viewer.c ------------------------------------------------------------------------- */

/* All of them, or false: the connection is gone. (write_all() likewise: the thread takes no
 * SIGPIPE.)
 */
bool viewer_get(int fd, void *bytes, size_t count);

/* Passes so many bytes of the relay daemon's reply on. */
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

/* NULL: there is none. */
struct stream *viewer_find_stream(const struct viewer *viewer, uint64_t id);

/* Asks for streams that babeltrace2 does not know of: what it has not asked for is kept. */
bool viewer_look_for_streams(struct viewer *viewer);
bool viewer_has_new_streams(const struct viewer *viewer);

/* ---- metadata, times and packets: viewer_index.c --------------------------------------------- */

/* Of a stream of metadata in a list. Returns false when out of memory. */
bool viewer_add_text(struct viewer *viewer, const unsigned char *listed);
void viewer_forget_texts(struct viewer *viewer);

/* What babeltrace2 asks for: false if it makes no sense, or if a connection is gone. */
bool viewer_give_metadata(const struct viewer *viewer, const unsigned char *request, size_t size);
bool viewer_give_index(struct viewer *viewer, const unsigned char *request, size_t size);
bool viewer_give_packet(struct viewer *viewer, const unsigned char *request, size_t size);

#endif
