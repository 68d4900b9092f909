/*
 * Packets that are picked, of streams of any bytes: of those that were not damaged, just these with
 * an id, or of the time that is asked for. And what reads how a ring is, and its clock.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ctf_streams.h"

/* inputs are chosen by what they reach in the product, not in here */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

#include "tools/record/pick.h"

static const uint64_t ids[] = {0x1122334455667788, 0x8877665544332211, 1, 0x0101010101010101,
                               0xff00000000000000};
#define IDS (sizeof(ids) / sizeof(ids[0]))

static char content[2048];
static char picked[STREAM_MAX];
static char picked_folder[160];

/* Somewhere, or around the ends of what is read at once. */
static size_t take_place(struct input *source)
{
    const uint8_t choice = (uint8_t)take(source, 1);

    return choice & 1 ? (choice >> 6) * (WINDOW_BYTES - 7U) + choice / 2 % 32
                      : take(source, 2) % sizeof(content);
}

static size_t take_content(struct input *source)
{
    const size_t length = take(source, 2) % sizeof(content);

    memset(content, (int)take(source, 1) & 0x11, length);
    for (unsigned i = take(source, 1) % 8; i > 0; i--) {
        const size_t at = take_place(source);

        if (at + sizeof(ids[0]) <= length)
            memcpy(content + at, &ids[take(source, 1) % IDS], 1 + take(source, 1) % 8);
    }
    return length;
}

static void make_streams(struct input *source)
{
    clear_streams();
    for (unsigned i = take(source, 1) % 8; i > 0; i--) {
        struct made_stream *stream = &streams[take(source, 1) % STREAMS];
        const size_t length = take_content(source);

        add_packet(stream, content, length, source);
    }
    if (take(source, 1) % 4 == 0)
        damage(&streams[take(source, 1) % STREAMS], source);
    write_streams();
}

static bool is_wanted(const struct made_stream *stream, const struct made_packet *packet,
                      const struct pick_spec *spec)
{
    const char *bytes = stream->bytes + packet->at + HEAD;

    if (spec->count == 0)
        return packet->begin <= spec->until_clock && packet->end >= spec->from_clock;
    for (size_t i = 0; i < spec->count; i++)
        if (memmem(bytes, packet->content - HEAD, &spec->ids[i], sizeof(ids[0])) != NULL)
            return true;
    return false;
}

static void check_stream(unsigned number, const struct pick_spec *spec)
{
    const struct made_stream *stream = &streams[number];
    char path[200];
    size_t length = 0;
    int fd;

    snprintf(path, sizeof(path), "%s/blkin_%u", picked_folder, number);
    fd = open(path, O_RDONLY);
    if (fd >= 0) {
        const ssize_t got = read(fd, picked, sizeof(picked));

        REQUIRE(got >= 0);
        length = (size_t)got;
        close(fd);
        REQUIRE(unlink(path) == 0);
    }
    if (stream->is_damaged)
        return;
    for (unsigned i = 0; i < stream->count; i++) {
        const struct made_packet *packet = &stream->packets[i];

        if (!is_wanted(stream, packet, spec))
            continue;
        REQUIRE(length >= packet->bytes);
        REQUIRE(memcmp(picked, stream->bytes + packet->at, packet->bytes) == 0);
        length -= packet->bytes;
        memmove(picked, picked + packet->bytes, length);
    }
    REQUIRE(length == 0);
}

static void check_picks(struct input *source)
{
    const struct pick_spec spec = {.ids = ids,
                                   .count = take(source, 1) % (IDS + 1),
                                   .from_clock = take_edge(source),
                                   .until_clock = take_edge(source)};
    struct pick_result result;
    struct error error;
    char path[200];
    bool is_picked;

    snprintf(picked_folder, sizeof(picked_folder), "%s.picked", folder);
    is_picked = pick(folder, picked_folder, &spec, &result, &error);
    REQUIRE(is_picked || streams[0].is_damaged || streams[1].is_damaged);
    REQUIRE(result.packets_kept <= result.packets && result.bytes_kept <= result.bytes);
    REQUIRE(result.bytes <= streams[0].length + streams[1].length);
    for (unsigned i = 0; i < STREAMS; i++) {
        if (!is_picked)
            streams[i].is_damaged = true;
        check_stream(i, &spec);
    }
    snprintf(path, sizeof(path), "%s/metadata", picked_folder);
    (void)unlink(path);
    REQUIRE(rmdir(picked_folder) == 0);
}

static void check_look(struct input *source)
{
    struct ring_look look;
    struct error error;
    const bool is_read = ring_look(folder, take_edge(source), take_edge(source), &look, &error);

    REQUIRE(is_read || streams[0].is_damaged || streams[1].is_damaged);
    if (is_read)
        REQUIRE(look.streams <= STREAMS && look.streams_stalled <= look.streams);
}

static void check_clock(struct input *source)
{
    char metadata[1024] = {0};
    const uint32_t magic = 0x75d11d57, bits[2] = {(uint32_t)take(source, 2), 512 * 8};
    const struct text text = take_bytes(source, sizeof(metadata) - 37);
    struct error error;
    int64_t offset;

    memcpy(metadata, &magic, sizeof(magic));
    memcpy(metadata + 24, bits, sizeof(bits));
    memcpy(metadata + 37, text.data, text.length);
    write_file("metadata", metadata, sizeof(metadata));
    (void)ring_clock(folder, &offset, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input source = {data, data + size};

    random_number = sum_of(data, size);
    make_folder("fuzz-pick");
    if (access(path_in("metadata"), F_OK) != 0)
        write_file("metadata", "m", 1);
    make_streams(&source);
    check_picks(&source);
    check_look(&source);
    if (size % 4 == 0)
        check_clock(&source);
    return 0;
}

#pragma clang attribute pop
