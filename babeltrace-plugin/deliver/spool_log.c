/* SPDX-License-Identifier: BSD-2-Clause */
#include "spool_log.h"

#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/file.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define SEARCH_BYTES 65536 /* bytes that are searched for a head at once */

#define TIME_LINE_MAX 128

/* ---- writing records ------------------------------------------------------------------------- */

static uint32_t record_head_sum(const struct record_head *stored)
{
    const size_t begin = offsetof(struct record_head, body_sum);

    return (uint32_t)crc32(0, (const Bytef *)stored + begin, (uInt)(sizeof(*stored) - begin));
}

static uint32_t record_body_sum(const uint32_t *starts, uint32_t spans, struct text text)
{
    const uLong sum = crc32(0, (const Bytef *)starts, (uInt)(spans * sizeof(*starts)));

    return (uint32_t)crc32(sum, (const Bytef *)text.data, (uInt)text.length);
}

/* Compresses the text if that makes it shorter. `to` has room for compressBound() bytes. */
static size_t record_put_text(char *to, struct text text)
{
    uLongf length = compressBound(text.length);

    if (compress2((Bytef *)to, &length, (const Bytef *)text.data, text.length, Z_BEST_SPEED) ==
            Z_OK &&
        length < text.length)
        return length;
    memcpy(to, text.data, text.length);
    return text.length;
}

struct record_bytes record_make(const struct record_body *body, int64_t now_ms)
{
    const size_t before_text = sizeof(struct record_head) + body->spans * sizeof(uint32_t);
    char *data = body->text.length <= RECORD_LENGTH_MAX
                     ? malloc(before_text + compressBound(body->text.length))
                     : NULL;
    uint32_t *starts;
    struct record_head head;
    struct text text;

    if (!data)
        return (struct record_bytes){.data = NULL};
    starts = (uint32_t *)(void *)(data + sizeof(head));
    for (uint32_t i = 0; i < body->spans; i++)
        starts[i] = htole32(body->starts[i] - body->starts[0]);
    text = (struct text){data + before_text, record_put_text(data + before_text, body->text)};
    head = (struct record_head){
        .magic = htole32(RECORD_MAGIC),
        .state = htole32(RECORD_WAITS),
        .body_sum = htole32(record_body_sum(starts, body->spans, text)),
        .written_ms = (int64_t)htole64((uint64_t)now_ms),
        .spans = htole32(body->spans),
        .length = htole32((uint32_t)body->text.length),
        .stored = htole32((uint32_t)text.length),
        .format = htole32(record_format(body->format)),
    };
    head.head_sum = htole32(record_head_sum(&head));
    memcpy(data, &head, sizeof(head));
    return (struct record_bytes){data, before_text + text.length};
}

void record_mark_done(int fd, uint64_t where)
{
    const uint32_t state = htole32(RECORD_DONE);

    /* after a failure the record may be sent twice, which is better than a loss */
    (void)!pwrite(fd, &state, sizeof(state), (off_t)(where + offsetof(struct record_head, state)));
}

/* ---- reading records ------------------------------------------------------------------------- */

static bool record_is_head(struct record_head *head)
{
    const bool is_ours =
        le32toh(head->magic) == RECORD_MAGIC && le32toh(head->head_sum) == record_head_sum(head);

    *head = (struct record_head){
        .state = le32toh(head->state),
        .body_sum = le32toh(head->body_sum),
        .written_ms = (int64_t)le64toh((uint64_t)head->written_ms),
        .spans = le32toh(head->spans),
        .length = le32toh(head->length),
        .stored = le32toh(head->stored),
        .format = le32toh(head->format),
    };
    return is_ours && head->spans > 0 && head->spans <= head->length && head->stored > 0 &&
           head->stored <= head->length && head->length <= RECORD_LENGTH_MAX;
}

/* Returns the offset of the next magic number, or end. */
static uint64_t record_find_magic(int fd, uint64_t at, uint64_t end)
{
    const uint32_t magic = htole32(RECORD_MAGIC);
    char window[SEARCH_BYTES];

    while (end - at >= sizeof(magic)) {
        const size_t wanted = end - at < sizeof(window) ? (size_t)(end - at) : sizeof(window);
        const size_t got = read_at(fd, window, wanted, at);
        const char *found = memmem(window, got, &magic, sizeof(magic));

        if (found)
            return at + (uint64_t)(found - window);
        if (got < wanted)
            break;
        at += got - (sizeof(magic) - 1);
    }
    return end;
}

static bool record_read_head(int fd, uint64_t at, uint64_t end, struct record_head *head)
{
    return end - at >= sizeof(*head) && read_at(fd, head, sizeof(*head), at) == sizeof(*head) &&
           record_is_head(head);
}

enum record_found record_next(int fd, uint64_t *at, uint64_t end, struct record_head *head,
                              uint64_t *where)
{
    const uint64_t begin = *at;

    if (begin >= end)
        return RECORD_END;
    if (record_read_head(fd, begin, end, head)) {
        *where = begin;
        if (record_size(head) <= end - begin) {
            *at = begin + record_size(head);
            return RECORD_COMPLETE;
        }
        /* another record may follow the torn one */
        *at = record_find_magic(fd, begin + sizeof(*head), end);
        return RECORD_TORN;
    }
    do {
        *at = record_find_magic(fd, *at + 1, end);
    } while (*at < end && !record_read_head(fd, *at, end, head));
    return RECORD_UNREADABLE;
}

/* Returns true if every span is within the text, and each but the last is larger than the bytes
 * that body_frame() may overwrite. */
static bool record_are_starts(const uint32_t *starts, const struct record_head *head,
                              const struct encoder *encoder)
{
    const size_t least = encoder->separator.length + encoder->open.length + encoder->close.length;

    for (uint32_t i = 1; i < head->spans; i++) {
        if (starts[i] <= starts[i - 1] || starts[i] - starts[i - 1] <= least)
            return false;
    }
    return starts[0] == 0 && starts[head->spans - 1] < head->length;
}

/* Reads the text, checks the sum, and decompresses. */
static enum record_loaded record_load_text(int fd, uint64_t at, const struct record_head *head,
                                           const uint32_t *starts, char *text)
{
    const bool is_compressed = head->stored < head->length;
    char *stored = is_compressed ? malloc(head->stored) : text;
    enum record_loaded loaded = RECORD_CORRUPT;
    uLongf length = head->length;

    if (!stored)
        return RECORD_NO_MEMORY;
    if (read_at(fd, stored, head->stored, at) == head->stored &&
        record_body_sum(starts, head->spans, (struct text){stored, head->stored}) == head->body_sum)
        loaded = RECORD_LOADED;
    if (loaded == RECORD_LOADED && is_compressed) {
        const int result = uncompress((Bytef *)text, &length, (const Bytef *)stored, head->stored);

        if (result != Z_OK || length != head->length)
            loaded = result == Z_MEM_ERROR ? RECORD_NO_MEMORY : RECORD_CORRUPT;
    }
    if (is_compressed)
        free(stored);
    return loaded;
}

enum record_loaded record_load(int fd, uint64_t where, const struct record_head *head,
                               const struct encoder *encoder, struct body *body)
{
    const uint64_t at = where + sizeof(*head);
    const size_t starts_size = head->spans * sizeof(uint32_t);
    char *text = body_reserve(body, encoder, head->spans, head->length);
    enum record_loaded loaded;

    if (!text)
        return RECORD_NO_MEMORY;
    if (read_at(fd, body->starts, starts_size, at) != starts_size)
        return RECORD_CORRUPT;
    loaded = record_load_text(fd, at + starts_size, head, body->starts, text);
    if (loaded != RECORD_LOADED)
        return loaded;
    for (uint32_t i = 0; i < head->spans; i++)
        body->starts[i] = le32toh(body->starts[i]);
    if (!record_are_starts(body->starts, head, encoder))
        return RECORD_CORRUPT;
    body_fill(body, encoder, head->spans, head->length);
    return RECORD_LOADED;
}

/* ---- time ------------------------------------------------------------------------------------ */

int64_t boot_time_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t spool_time_offset_ms(int fd, int64_t newest_ms)
{
    char id[BOOT_ID_MAX], line[TIME_LINE_MAX] = "", of[BOOT_ID_MAX] = "";
    int64_t offset_ms;
    int length;

    boot_id_read(id); /* an empty id means: each start follows a boot */
    if (pread(fd, line, sizeof(line) - 1, 0) > 0 &&
        sscanf(line, "%63s %" SCNd64, of, &offset_ms) == 2 && id[0] && strcmp(of, id) == 0)
        return offset_ms;
    offset_ms = (newest_ms > 0 ? newest_ms : wall_clock_ns() / 1000000) - boot_time_ms();
    length = snprintf(line, sizeof(line), "%s %" PRId64 "\n", id[0] ? id : "-", offset_ms);
    /* after a failure the next start continues at the newest record */
    if (ftruncate(fd, 0) == 0)
        (void)!pwrite(fd, line, (size_t)length, 0);
    return offset_ms;
}
