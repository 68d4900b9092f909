/*
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pick.h"

#include "babeltrace-plugin/base/write_all.h"
#include "packets.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef WINDOW_BYTES
#define WINDOW_BYTES (256 << 10) /* read at once: it stays in the processor's cache */
#endif
#define ID_BYTES sizeof(uint64_t)

/*
 * The ids that are looked for. An id may lie anywhere. Whereever it does, just one pair of bytes at
 * every 7th place is wholly within its 8 bytes: so only these are looked at, by a table of the
 * pairs that the ids have.
 */
struct wanted {
    uint8_t has_pair[1 << 16];
    uint64_t *slots; /* the ids, in a table; 0: nothing */
    size_t mask;
};
#define STRIDE (ID_BYTES - 1)

struct picking {
    const char *to;
    const struct pick_spec *spec;
    struct pick_result *result;
    struct held held;
    struct wanted wanted;
    uint8_t window[WINDOW_BYTES];
};

/* ---- the ids */

static uint64_t load_64(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static uint16_t load_16(const uint8_t *at)
{
    uint16_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

static size_t slot_of(const struct wanted *wanted, uint64_t id)
{
    size_t slot = (size_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & wanted->mask;

    while (wanted->slots[slot] != 0 && wanted->slots[slot] != id)
        slot = (slot + 1) & wanted->mask;
    return slot;
}

static bool is_wanted(const struct wanted *wanted, uint64_t id)
{
    return id != 0 && wanted->slots[slot_of(wanted, id)] == id;
}

static bool prepare(struct wanted *wanted, const struct pick_spec *spec)
{
    size_t slots = 64;

    while (slots < spec->count * 8)
        slots *= 2;
    wanted->mask = slots - 1;
    wanted->slots = calloc(slots, sizeof(*wanted->slots));
    if (wanted->slots == NULL)
        return false;
    for (size_t i = 0; i < spec->count; i++) {
        uint8_t bytes[ID_BYTES];

        memcpy(bytes, &spec->ids[i], sizeof(bytes));
        wanted->slots[slot_of(wanted, spec->ids[i])] = spec->ids[i];
        for (size_t at = 0; spec->ids[i] != 0 && at < STRIDE; at++)
            wanted->has_pair[load_16(bytes + at)] = 1;
    }
    return true;
}

/* ---- the scan */

/* Does an id begin at one of these places? */
static bool has_id_at(const struct wanted *wanted, const uint8_t *first, const uint8_t *last)
{
    for (const uint8_t *at = first; at <= last; at++)
        if (is_wanted(wanted, load_64(at)))
            return true;
    return false;
}

/* An id that has the pair at `at` begins up to 6 bytes before it. */
static bool has_id_around(const struct wanted *wanted, const uint8_t *at)
{
    return wanted->has_pair[load_16(at)] && has_id_at(wanted, at - (STRIDE - 1), at);
}

static bool has_id(const struct wanted *wanted, const uint8_t *bytes, size_t length)
{
    const uint8_t *has_pair = wanted->has_pair;
    const uint8_t *at = bytes + STRIDE - 1;          /* of the pair */
    const uint8_t *last = bytes + length - ID_BYTES; /* where an id may begin */

    if (length < ID_BYTES)
        return false;
    for (; last - at >= (ptrdiff_t)(3 * STRIDE); at += 4 * STRIDE) {
        if ((has_pair[load_16(at)] | has_pair[load_16(at + STRIDE)] |
             has_pair[load_16(at + 2 * STRIDE)] | has_pair[load_16(at + 3 * STRIDE)]) == 0)
            continue;
        for (size_t i = 0; i < 4; i++)
            if (has_id_around(wanted, at + i * STRIDE))
                return true;
    }
    return has_id_at(wanted, at - (STRIDE - 1), last);
}

/* Windows overlap by an id less a byte. */
static bool packet_has_id(struct picking *picking, int fd, const struct packet *packet)
{
    uint64_t at = packet->at + PACKET_HEAD_BYTES;
    const uint64_t end = packet->at + packet->content;

    while (at < end) {
        const size_t room = end - at < WINDOW_BYTES ? (size_t)(end - at) : WINDOW_BYTES;
        const size_t got = read_at(fd, picking->window, room, at);

        if (has_id(&picking->wanted, picking->window, got))
            return true;
        if (got < room || end - at <= WINDOW_BYTES)
            break;
        at += got - (ID_BYTES - 1);
    }
    return false;
}

static bool is_kept(struct picking *picking, int fd, const struct packet *packet)
{
    const struct pick_spec *spec = picking->spec;

    if (spec->count > 0)
        return packet_has_id(picking, fd, packet);
    return packet->begin <= spec->until_clock && packet->end >= spec->from_clock;
}

/* ---- the copy */

static bool fail(struct error *error, const char *what, const char *path)
{
    error_set(error, "cannot %s %s: %s", what, path, strerror(errno));
    return false;
}

/* Of a file that was cut meanwhile, what it still has. */
static bool copy(struct picking *picking, int from, int to, uint64_t at, uint64_t length)
{
    while (length > 0) {
        const size_t room = length < WINDOW_BYTES ? (size_t)length : WINDOW_BYTES;
        const size_t got = read_at(from, picking->window, room, at);

        if (!write_all(to, picking->window, got))
            return false;
        if (got < room)
            break;
        at += got;
        length -= got;
    }
    return true;
}

static int create_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* The folders of a path, from `from` on. */
static bool make_folders(char *path, size_t from)
{
    for (char *slash = path + from; (slash = strchr(slash, '/')) != NULL;) {
        int status;

        *slash = '\0';
        status = mkdir(path, 0700);
        *slash++ = '/';
        if (status < 0 && errno != EEXIST)
            return false;
    }
    return true;
}

static bool copy_metadata(struct picking *picking, int from, uint64_t bytes, const char *to,
                          struct error *error)
{
    int fd = create_file(to);
    bool is_copied;

    if (fd < 0) /* another stream of the trace has copied it */
        return errno == EEXIST || fail(error, "make", to);
    is_copied = copy(picking, from, fd, 0, bytes) || fail(error, "write", to);
    if (close(fd) < 0 && is_copied)
        is_copied = fail(error, "write", to);
    return is_copied;
}

/* A file of a stream, and what is copied of it. */
struct copying {
    const char *path, *name;
    char to[PATH_MAX];
    int fd;           /* -1: nothing of it is kept so far */
    bool is_no_trace; /* it has no metadata: nothing of it can be read */
};

static bool begin_copy(struct picking *picking, struct copying *copying, struct error *error)
{
    char metadata[PATH_MAX], to[PATH_MAX];
    uint64_t bytes;
    int from;
    bool is_copied;

    if (!metadata_beside(metadata, copying->path) || !metadata_beside(to, copying->to)) {
        errno = ENAMETOOLONG;
        return fail(error, "read", copying->path);
    }
    from = open_regular(metadata, &bytes);
    if (from < 0) {
        copying->is_no_trace = errno == ENOENT || errno == ELOOP;
        return copying->is_no_trace || fail(error, "read", metadata);
    }
    is_copied = (make_folders(copying->to, strlen(picking->to) + 1) ||
                 fail(error, "make the folders of", copying->to)) &&
                copy_metadata(picking, from, bytes, to, error);
    (void)close(from);
    if (!is_copied)
        return false;
    copying->fd = create_file(copying->to);
    return copying->fd >= 0 || fail(error, "make", copying->to);
}

static bool pick_keep(struct picking *picking, struct copying *copying, int fd,
                      const struct packet *packet, struct error *error)
{
    if (copying->fd < 0 && !begin_copy(picking, copying, error))
        return false;
    if (copying->is_no_trace)
        return true;
    picking->result->packets_kept++;
    picking->result->bytes_kept += packet->bytes;
    return copy(picking, fd, copying->fd, packet->at, packet->bytes) ||
           fail(error, "write", copying->to);
}

static bool pick_packets(struct picking *picking, struct stream *stream, struct copying *copying,
                         struct error *error)
{
    struct pick_result *result = picking->result;
    enum packet_found found;
    struct packet packet;
    struct stream_held held = {.packets = 0};

    while ((found = packet_next(stream, &packet)) == PACKET && !copying->is_no_trace) {
        result->packets++;
        result->bytes += packet.bytes;
        held_packet(&picking->held, &held, &packet);
        if (is_kept(picking, stream->fd, &packet) &&
            !pick_keep(picking, copying, stream->fd, &packet, error))
            return false;
    }
    held_stream(&picking->held, &held);
    result->packets_damaged += found == PACKET_DAMAGED || copying->is_no_trace;
    return found != PACKET_OTHER_ORDER || refuse_order(copying->path, error);
}

static bool pick_stream(void *context, struct stream *stream, const char *path, const char *name,
                        struct error *error)
{
    struct picking *picking = context;
    struct copying copying = {.path = path, .name = name, .fd = -1};
    bool is_picked;

    if (snprintf(copying.to, sizeof(copying.to), "%s/%s", picking->to, name) >=
        (int)sizeof(copying.to)) {
        errno = ENAMETOOLONG;
        return fail(error, "make", path);
    }
    is_picked = pick_packets(picking, stream, &copying, error);
    if (copying.fd >= 0 && close(copying.fd) < 0 && is_picked)
        is_picked = fail(error, "write", copying.to);
    return is_picked;
}

bool pick(const char *from, const char *to, const struct pick_spec *spec,
          struct pick_result *result, struct error *error)
{
    struct picking *picking = calloc(1, sizeof(*picking));
    bool is_picked;

    memset(result, 0, sizeof(*result));
    if (picking == NULL || !prepare(&picking->wanted, spec)) {
        error_set(error, "out of memory for the ids of %zu traces", spec->count);
        free(picking);
        return false;
    }
    picking->to = to;
    picking->spec = spec;
    picking->result = result;
    is_picked = (mkdir(to, 0700) == 0 || fail(error, "make the folder", to)) &&
                streams_each(from, pick_stream, picking, error);
    result->streams = picking->held.streams;
    result->held_from = held_from(&picking->held);
    result->has_all = picking->held.streams > 0 && picking->held.overwritten == 0;
    result->gaps = picking->held.gaps;
    free(picking->wanted.slots);
    free(picking);
    return is_picked;
}
