/*
 * The packets of LTTng's CTF 1.8 streams, by their heads alone. What the files hold is not trusted:
 * a head is given only if its packet lies within the file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_PACKETS_H
#define BLKIN_TOOLS_PACKETS_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/base/read_at.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_HEAD_BYTES 72 /* as far as we read: magic to packet_seq_num */

struct packet {
    uint64_t at;         /* where in the file */
    uint64_t bytes;      /* of all of it; the next packet follows */
    uint64_t content;    /* bytes that have something: from `at` on, at least PACKET_HEAD_BYTES */
    uint64_t begin, end; /* the trace's clock */
    uint64_t number;     /* of its stream's packets: a gap is a loss */
};

enum packet_found {
    PACKET,
    PACKET_NONE,    /* the end of the file */
    PACKET_DAMAGED, /* no head of LTTng's, or it says what cannot be: the rest is not to be read */
    PACKET_OTHER_ORDER /* written on a machine of the other byte order */
};

/* A file of a stream that is open for reading. */
struct stream {
    int fd;
    uint64_t bytes;
    uint64_t next; /* where the next packet begins */
};

/* path: as it is to be opened; name: below the folder, without "/" before it. */
typedef bool stream_fn(void *context, struct stream *stream, const char *path, const char *name,
                       struct error *error);

/*
 * Calls for each stream below the folder: for each regular file that is neither metadata nor an
 * index. Links are not followed. Stops and returns false when that does.
 */
bool streams_each(const char *folder, stream_fn *call, void *context, struct error *error);

/* From when and until when streams have all. Begins as zeros. */
struct held {
    uint64_t oldest;      /* of the streams' begins */
    uint64_t overwritten; /* the newest of those of streams that lack older packets */
    uint64_t until;       /* the oldest of the streams' ends */
    uint64_t gaps;        /* packets that are missing between others */
    uint64_t streams;
};

/* Of a stream. Begins as zeros. */
struct stream_held {
    uint64_t packets;
    struct packet first, last;
};
void held_packet(struct held *held, struct stream_held *stream, const struct packet *packet);
void held_stream(struct held *held, const struct stream_held *stream);
uint64_t held_from(const struct held *held);

enum packet_found packet_next(struct stream *stream, struct packet *packet);

/* Opens a regular file, no link, for reading. Returns -1 with errno set, ENOENT for other kinds. */
int open_regular(const char *path, uint64_t *bytes);

/* The path of the file "metadata" beside a stream's. Returns false if it is too long. */
bool metadata_beside(char metadata[PATH_MAX], const char *path);

/* Sets the error that packets of the other byte order are. Returns false. */
bool refuse_order(const char *path, struct error *error);

#endif
