/*
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "packets.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC UINT32_C(0xc1fc1fc1)

/* As it lies in the file, in the byte order of the machine that was traced. */
struct head {
    uint32_t magic;
    uint8_t uuid[16];
    uint32_t stream_id;
    uint64_t stream_instance_id;
    uint64_t begin, end;
    uint64_t content_bits, packet_bits;
    uint64_t number;
};
_Static_assert(sizeof(struct head) == PACKET_HEAD_BYTES, "no padding");

enum packet_found packet_next(struct stream *stream, struct packet *packet)
{
    const uint64_t left = stream->bytes - stream->next;
    struct head head;

    if (left == 0)
        return PACKET_NONE;
    if (read_at(stream->fd, &head, sizeof(head), stream->next) != sizeof(head))
        return PACKET_DAMAGED;
    if (head.magic == __builtin_bswap32(MAGIC))
        return PACKET_OTHER_ORDER;
    *packet = (struct packet){.at = stream->next,
                              .bytes = head.packet_bits / 8,
                              .content = head.content_bits / 8,
                              .begin = head.begin,
                              .end = head.end,
                              .number = head.number};
    if (head.magic != MAGIC || packet->bytes > left || packet->content > packet->bytes ||
        packet->content < sizeof(head) || packet->end < packet->begin)
        return PACKET_DAMAGED;
    stream->next += packet->bytes;
    return PACKET;
}

void held_packet(struct held *held, struct stream_held *stream, const struct packet *packet)
{
    if (stream->packets == 0)
        stream->first = *packet;
    else if (packet->number > stream->last.number)
        held->gaps += packet->number - stream->last.number - 1;
    stream->last = *packet;
    stream->packets++;
}

void held_stream(struct held *held, const struct stream_held *stream)
{
    const bool is_first = held->streams == 0;

    if (stream->packets == 0)
        return;
    held->streams++;
    if (is_first || stream->first.begin < held->oldest)
        held->oldest = stream->first.begin;
    if (stream->first.number > 0 && stream->first.begin > held->overwritten)
        held->overwritten = stream->first.begin;
    if (is_first || stream->last.end < held->until)
        held->until = stream->last.end;
}

uint64_t held_from(const struct held *held)
{
    return held->overwritten > 0 ? held->overwritten : held->oldest;
}

int open_regular(const char *path, uint64_t *bytes)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return -1;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= 0) {
        *bytes = (uint64_t)status.st_size;
        return fd;
    }
    (void)close(fd);
    errno = ENOENT;
    return -1;
}

static bool unreadable(const char *path, int cause, struct error *error)
{
    error_set(error, "cannot read the snapshot %s: %s", path, strerror(cause));
    return false;
}

static bool use_file(const FTSENT *entry, const char *name, stream_fn *call, void *context,
                     struct error *error)
{
    struct stream stream = {.fd = -1};
    bool goes_on;

    if (strcmp(entry->fts_name, "metadata") == 0)
        return true;
    stream.fd = open_regular(entry->fts_path, &stream.bytes);
    if (stream.fd < 0)
        return errno == ENOENT || errno == ELOOP || unreadable(entry->fts_path, errno, error);
    goes_on = call(context, &stream, entry->fts_path, name, error);
    (void)close(stream.fd);
    return goes_on;
}

static bool use_entry(FTS *tree, FTSENT *entry, size_t skipped, stream_fn *call, void *context,
                      struct error *error)
{
    switch (entry->fts_info) {
    case FTS_D:
        if (entry->fts_level > 0 && strcmp(entry->fts_name, "index") == 0)
            (void)fts_set(tree, entry, FTS_SKIP);
        return true;
    case FTS_F:
        return entry->fts_level == 0 ||
               use_file(entry, entry->fts_path + skipped, call, context, error);
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        return (entry->fts_errno == ENOENT && entry->fts_level > 0) ||
               unreadable(entry->fts_path, entry->fts_errno, error);
    default:
        return true;
    }
}

bool streams_each(const char *folder, stream_fn *call, void *context, struct error *error)
{
    char *paths[] = {(char *)(uintptr_t)folder, NULL};
    const size_t length = strlen(folder);
    const size_t skipped = length + (length == 0 || folder[length - 1] != '/');
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    bool goes_on = true;
    FTSENT *entry;

    if (tree == NULL)
        return unreadable(folder, errno, error);
    while (goes_on && (entry = fts_read(tree)) != NULL)
        goes_on = use_entry(tree, entry, skipped, call, context, error);
    (void)fts_close(tree);
    return goes_on;
}

bool metadata_beside(char metadata[PATH_MAX], const char *path)
{
    const char *name = strrchr(path, '/');
    const int length = name == NULL ? 0 : (int)(name - path);

    return snprintf(metadata, PATH_MAX, "%.*s/metadata", length, path) < PATH_MAX;
}

bool refuse_order(const char *path, struct error *error)
{
    error_set(error, "%s was written on a machine of the other byte order: read it there", path);
    return false;
}
