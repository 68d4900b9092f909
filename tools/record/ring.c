/*
 * A snapshot's clock, and how its streams are.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "packets.h"
#include "pick.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_S 1000000000U

/* ---- how the streams are */

struct looking {
    struct ring_look *look;
    struct held held;
    uint64_t least; /* a stream that ends before it is stalled */
};

/* Per second, of what was recorded from begin to end. */
static uint64_t rate(uint64_t bytes, uint64_t begin, uint64_t end)
{
    return end > begin ? (uint64_t)((double)bytes / (double)(end - begin) * NS_PER_S) : 0;
}

static bool look_at(void *context, struct stream *stream, const char *path, const char *name,
                    struct error *error)
{
    struct looking *looking = context;
    struct ring_look *look = looking->look;
    struct stream_held held = {.packets = 0};
    struct packet packet;
    uint64_t bytes = 0;
    enum packet_found found;

    (void)name;
    while ((found = packet_next(stream, &packet)) == PACKET) {
        held_packet(&looking->held, &held, &packet);
        bytes += packet.content;
    }
    look->packets_damaged += found == PACKET_DAMAGED;
    held_stream(&looking->held, &held);
    if (held.packets > 0) {
        look->streams_stalled += held.last.end < looking->least;
        look->bytes_per_s += rate(bytes, held.first.begin, held.last.end);
        if (held.last.end > look->newest)
            look->newest = held.last.end;
    }
    return found != PACKET_OTHER_ORDER || refuse_order(path, error);
}

bool ring_look(const char *folder, uint64_t now, uint64_t stalled_ns, struct ring_look *look,
               struct error *error)
{
    struct looking looking = {.look = look, .least = now > stalled_ns ? now - stalled_ns : 0};

    memset(look, 0, sizeof(*look));
    if (!streams_each(folder, look_at, &looking, error))
        return false;
    look->streams = looking.held.streams;
    look->held_from = held_from(&looking.held);
    look->held_until = looking.held.until;
    look->gaps = looking.held.gaps;
    return true;
}

bool stall_is_sure(struct stall *stall, const struct ring_look *look, int64_t now_ms)
{
    if (!look->streams_stalled)
        stall->since_ms = 0;
    else if (!stall->since_ms)
        stall->since_ms = now_ms;
    return stall->since_ms && now_ms - stall->since_ms >= STALL_AGAIN_MS;
}

/* ---- its clock */

#define METADATA_MAGIC UINT32_C(0x75d11d57)
#define METADATA_HEAD  37    /* of a packet; then its text */
#define TEXT_ROOM      65536 /* the clock comes early in it */

/* The text of metadata, without the heads of its packets. Returns its length. */
static size_t metadata_text(int fd, char text[TEXT_ROOM])
{
    uint64_t at = 0;
    size_t length = 0;
    unsigned char head[METADATA_HEAD];

    while (length + 1 < TEXT_ROOM && read_at(fd, head, sizeof(head), at) == sizeof(head)) {
        uint32_t magic, content_bits, packet_bits;
        size_t content;

        memcpy(&magic, head, sizeof(magic));
        memcpy(&content_bits, head + 24, sizeof(content_bits));
        memcpy(&packet_bits, head + 28, sizeof(packet_bits));
        content = content_bits / 8;
        if (magic != METADATA_MAGIC || content < sizeof(head) || packet_bits / 8 < content)
            break;
        content -= sizeof(head);
        if (content > TEXT_ROOM - 1 - length)
            content = TEXT_ROOM - 1 - length;
        length += read_at(fd, text + length, content, at + sizeof(head));
        at += packet_bits / 8;
    }
    text[length] = '\0';
    return length;
}

/* "NAME = NUMBER;" within the block. Returns false if it is not there, or too large. */
static bool number_of(const char *block, const char *end, const char *name, int64_t *number)
{
    const size_t length = strlen(name);

    for (const char *at = block; (at = strstr(at, name)) != NULL && at < end; at += length) {
        const char *value = at + length + strspn(at + length, " \t");
        char *after;

        if (strchr(" \t\n;{", at[-1]) == NULL || *value != '=')
            continue;
        errno = 0;
        *number = strtoll(value + 1, &after, 10);
        return errno == 0 && after > value + 1 && after[strspn(after, " \t")] == ';';
    }
    return false;
}

static bool clock_offset(const char *text, int64_t *offset_ns)
{
    const char *block = strstr(text, "clock {");
    const char *end = block != NULL ? strchr(block, '}') : NULL;
    int64_t seconds = 0, frequency = NS_PER_S;

    if (end == NULL || !number_of(block, end, "offset", offset_ns))
        return false;
    (void)number_of(block, end, "freq", &frequency);
    (void)number_of(block, end, "offset_s", &seconds);
    return frequency == NS_PER_S && !__builtin_mul_overflow(seconds, NS_PER_S, &seconds) &&
           !__builtin_add_overflow(*offset_ns, seconds, offset_ns);
}

struct clock_search {
    bool is_found;
    int64_t *offset_ns;
    char text[TEXT_ROOM];
};

static bool look_for_clock(void *context, struct stream *stream, const char *path, const char *name,
                           struct error *error)
{
    struct clock_search *search = context;
    char metadata[PATH_MAX];
    int64_t offset_ns;
    uint64_t bytes;
    int fd;

    (void)stream;
    (void)name;
    (void)error;
    if (!metadata_beside(metadata, path))
        return true;
    fd = open_regular(metadata, &bytes);
    if (fd < 0)
        return true;
    (void)metadata_text(fd, search->text);
    if (clock_offset(search->text, &offset_ns)) {
        if (!search->is_found || offset_ns < *search->offset_ns)
            *search->offset_ns = offset_ns;
        search->is_found = true;
    }
    (void)close(fd);
    return true;
}

bool ring_clock(const char *folder, int64_t *offset_ns, struct error *error)
{
    struct clock_search *search = malloc(sizeof(*search));
    bool is_found = false;

    if (search == NULL) {
        error_set(error, "out of memory for the metadata of %s", folder);
        return false;
    }
    search->is_found = false;
    search->offset_ns = offset_ns;
    if (streams_each(folder, look_for_clock, search, error)) {
        is_found = search->is_found;
        if (!is_found)
            error_set(error, "no metadata of LTTng's, with a clock in ns, is in %s", folder);
    }
    free(search);
    return is_found;
}
