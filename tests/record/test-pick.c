/*
 * The packets that hold an id, wherever it lies; how the streams of a ring are, and its clock.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/record/pick.h"
#include "ring.h"

#define S      UINT64_C(1000000000)
#define WINDOW (256 << 10) /* that of pick.c: packets are read in windows */
#define HEAD   72          /* of a packet, as far as it has no ids */

static struct ring_content content;
static struct pick_result result;
static struct error error;
static char from[600], to[600];
static const uint64_t all[] = {0x1122334455667788, 0x99aabbccddeeff01, 1};

static void add(const char *stream, uint64_t number, uint64_t begin, uint64_t end)
{
    ring_add(stream, &(struct ring_packet){.begin = begin,
                                           .end = end,
                                           .number = number,
                                           .content = content.bytes,
                                           .length = content.length});
}

/* A stream of one packet of this content: so much, and the id at this place of the packet. */
static void add_id(const char *stream, size_t length, size_t at, uint64_t id)
{
    memset(content.bytes, 'F', length);
    content.length = length;
    if (at >= RING_HEAD)
        memcpy(content.bytes + at - RING_HEAD, &id, sizeof(id));
    add(stream, 0, 1, 2);
}

static bool pick_ids(const char *name, const uint64_t *ids, size_t count)
{
    static int number;

    error.text[0] = '\0';
    snprintf(from, sizeof(from), "%s", ring_path(name));
    snprintf(to, sizeof(to), "%s/to-%d", ring_folder, number++);
    return pick(from, to, &(struct pick_spec){.ids = ids, .count = count}, &result, &error);
}

static long size_of(const char *name)
{
    char path[1300];
    struct stat status;

    snprintf(path, sizeof(path), "%s/%s", to, name);
    return lstat(path, &status) == 0 ? (long)status.st_size : -1;
}

static char *content_of(const char *folder, const char *name, size_t *length)
{
    static char files[2][sizeof(content.bytes)];
    char path[1300];
    int fd;
    ssize_t got;
    char *file = files[folder == to];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    fd = open(path, O_RDONLY);
    got = fd < 0 ? -1 : read(fd, file, sizeof(files[0]));
    close(fd);
    *length = got < 0 ? 0 : (size_t)got;
    return file;
}

static bool is_same(const char *name)
{
    size_t length, copied;
    const char *before = content_of(from, name, &length), *after = content_of(to, name, &copied);

    return length > 0 && length == copied && memcmp(before, after, length) == 0;
}

/* At each place around the borders of what is read at once, and of the packet; among ids or alone.
 */
static void test_places(void)
{
    const size_t lengths[] = {8, 9, 35, 36, 63, 64, 100, WINDOW - 84, WINDOW, 2 * WINDOW + 30};

    for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
        const size_t end = RING_HEAD + lengths[l];
        unsigned tried = 0, kept = 0;

        for (size_t at = RING_HEAD; at + 8 <= end; at++) {
            if (end > 400 && at > RING_HEAD + 40 && at < end - 40 &&
                (at + 20 - HEAD) % (WINDOW - 7) > 40)
                continue;
            unlink(ring_path("places/blkin_0"));
            unlink(ring_path("places/metadata"));
            ring_append("places/metadata", "m", 1);
            add_id("places/blkin_0", lengths[l], at, all[tried % 3]);
            tried++;
            CHECK(pick_ids("places", all, 3));
            kept += result.packets_kept == 1 && is_same("blkin_0");
            unlink(strcat(to, "/blkin_0"));
        }
        CHECK(tried > 0 && kept == tried);
    }
}

static void test_copy(void)
{
    struct stat status;

    ring_append("copy/s/64-bit/metadata", "the metadata", 12);
    ring_append("copy/s/64-bit/index/blkin_0.idx", "index", 5);
    add_id("copy/s/64-bit/blkin_0", 5000, 0, 0);
    add_id("copy/s/64-bit/blkin_0", 300000, 290000, all[0]);
    add_id("copy/s/64-bit/blkin_0", 100, 0, 0);
    add_id("copy/s/64-bit/blkin_1", 100, 0, 0);
    ring_append("copy/s/other/metadata", "the metadata", 12);
    add_id("copy/s/other/blkin_0", 100, 0, 0);
    add_id("copy/s/none/blkin_0", 200, 100, all[0]);
    CHECK(pick_ids("copy", all, 1));
    CHECK(result.packets == 6 && result.packets_kept == 1 && result.streams == 4);
    CHECK(result.bytes_kept == (300000 + RING_HEAD + 4095) / 4096 * 4096);
    CHECK(result.packets_damaged == 1); /* without metadata */
    CHECK(size_of("s/64-bit/blkin_0") == (long)result.bytes_kept);
    CHECK(is_same("s/64-bit/metadata"));
    CHECK(size_of("s/64-bit/blkin_1") == -1 && size_of("s/other") == -1 && size_of("s/none") == -1);
    CHECK(size_of("s/64-bit/index") == -1);
    strcat(to, "/s/64-bit");
    CHECK(stat(to, &status) == 0 && (status.st_mode & 0777) == 0700);
    strcat(to, "/blkin_0");
    CHECK(stat(to, &status) == 0 && (status.st_mode & 0777) == 0600);

    /* 0 is no id, and an id that is not there keeps nothing */
    CHECK(pick_ids("copy", (const uint64_t[]){0, 5}, 2) && result.packets_kept == 0);
    CHECK(!pick_ids("nowhere", all, 1) && strstr(error.text, "nowhere: No such file"));
    snprintf(from, sizeof(from), "%s", ring_path("copy"));
    CHECK(!pick(from, from, &(struct pick_spec){.ids = all, .count = 1}, &result, &error));
    CHECK(strstr(error.text, "cannot make the folder"));
}

static void test_times(void)
{
    content.length = 10;
    ring_append("times/metadata", "m", 1);
    for (uint64_t i = 0; i < 10; i++)
        add("times/blkin_0", 7 + i, 100 + 10 * i, 100 + 10 * i + 9);
    add("times/blkin_1", 0, 150, 300); /* has lost nothing: it has all from ever */
    snprintf(from, sizeof(from), "%s", ring_path("times"));
    snprintf(to, sizeof(to), "%s", ring_path("times-picked"));
    CHECK(pick(from, to, &(struct pick_spec){.from_clock = 119, .until_clock = 140}, &result,
               &error));
    CHECK(result.packets == 11 && result.packets_kept == 4);
    CHECK(result.held_from == 100 && result.gaps == 0);
    CHECK(size_of("blkin_0") == 4 * 4096 && size_of("blkin_1") == -1);
    add("times/blkin_2", 3, 120, 300);
    CHECK(pick_ids("times", all, 3) && result.held_from == 120 && !result.has_all);
    add("fresh/blkin_0", 0, 77, 300);
    add("fresh/blkin_1", 0, 55, 300);
    CHECK(pick_ids("fresh", all, 3) && result.held_from == 55 && result.has_all);
    ring_append("empty/blkin_0", "", 0);
    CHECK(pick_ids("empty", all, 3) && result.held_from == 0 && result.streams == 0);
}

static void test_damaged(void)
{
    struct ring_packet packet = {.begin = 2, .end = 1};
    uint32_t other_magic = __builtin_bswap32(0xc1fc1fc1);
    char reversed[4096] = {0};

    ring_append("damaged/metadata", "m", 1);
    add_id("damaged/blkin_0", 200, 100, all[0]);
    ring_append("damaged/blkin_0", "no packet, and then one", 23);
    add_id("damaged/blkin_0", 200, 100, all[0]);
    ring_add("damaged/blkin_1", &packet); /* ends before it begins */
    add_id("damaged/blkin_2", 20000, 15000, all[0]);
    CHECK(truncate(ring_path("damaged/blkin_2"), 20000) == 0); /* was not written to its end */
    CHECK(symlink("blkin_0", ring_path("damaged/link")) == 0);
    CHECK(mkfifo(ring_path("damaged/fifo"), 0600) == 0);
    CHECK(pick_ids("damaged", all, 1));
    CHECK(result.packets == 1 && result.packets_kept == 1 && result.packets_damaged == 3);
    CHECK(size_of("blkin_0") == 4096 && size_of("link") == -1);

    memcpy(reversed, &other_magic, sizeof(other_magic));
    ring_append("reversed/blkin_0", reversed, sizeof(reversed));
    CHECK(!pick_ids("reversed", all, 1));
    CHECK(strstr(error.text, "reversed/blkin_0 was written on a machine of the other byte order"));
}

static void test_look(void)
{
    struct ring_look look;

    content.length = 1000000 - RING_HEAD;
    for (uint64_t i = 0; i < 4; i++)
        add("look/a/blkin_0", 20 + i, 100 * S + i * S, 101 * S + i * S); /* 1 MB a second */
    content.length = 500000 - RING_HEAD;
    add("look/a/blkin_1", 5, 99 * S, 100 * S); /* half of it, to 101 */
    add("look/a/blkin_1", 8, 100 * S, 101 * S);
    add("look/b/blkin_0", 0, 103 * S, 104 * S);
    CHECK(ring_look(ring_path("look"), 104 * S, 4 * S, &look, &error));
    CHECK(look.streams == 3 && look.streams_stalled == 0 && look.gaps == 2);
    CHECK(look.held_from == 100 * S && look.held_until == 101 * S && look.newest == 104 * S);
    CHECK(look.bytes_per_s == 2000000);
    CHECK(ring_look(ring_path("look"), 104 * S, 2 * S, &look, &error) && look.streams_stalled == 1);
    CHECK(ring_look(ring_path("look"), 204 * S, 2 * S, &look, &error) && look.streams_stalled == 3);
    CHECK(!ring_look(ring_path("looked"), 0, 0, &look, &error));
}

/* Metadata of packets, as LTTng's, of so many bytes of text each. */
static void add_metadata(const char *name, const char *text, size_t each)
{
    while (*text != '\0') {
        const size_t length = strnlen(text, each);
        const uint32_t magic = 0x75d11d57, content_bits = (uint32_t)(37 + length) * 8,
                       packet_bits = 4096 * 8;
        char packet[4096] = {0};

        memcpy(packet, &magic, 4);
        memcpy(packet + 24, &content_bits, 4);
        memcpy(packet + 28, &packet_bits, 4);
        memcpy(packet + 37, text, length);
        ring_append(name, packet, sizeof(packet));
        text += length;
    }
}

/* Is this the offset of such a clock? 0: there is none. */
static void expect_clock(const char *clock, int64_t expected)
{
    static int number;
    char metadata[64], stream[64], text[1000];
    int64_t offset = 0;

    number++;
    sprintf(metadata, "clock-%d/t/metadata", number);
    sprintf(stream, "clock-%d/t/blkin_0", number);
    add_id(stream, 10, 0, 0);
    snprintf(text, sizeof(text),
             "/* CTF 1.8 */\ntrace { offset = 7; };\nclock {\n\tname = \"monotonic\";\n"
             "\t/* clock value offset from Epoch is: offset * (1/freq) */\n%s};\n",
             clock);
    add_metadata(metadata, text, 11);
    *strchr(stream, '/') = '\0';
    CHECK(ring_clock(ring_path(stream), &offset, &error) == (expected != 0));
    CHECK(offset == expected || expected == 0);
}

static void test_clock(void)
{
    int64_t offset;

    expect_clock("\tfreq = 1000000000; /* Frequency, in Hz */\n\toffset = 1795297030443720781;\n",
                 1795297030443720781);
    expect_clock("\toffset_s = 1795297030;\n\toffset = 5;\n", 1795297030000000005);
    expect_clock("\toffset = -5;\n", -5);
    expect_clock("\tfreq = 1000000;\n\toffset = 5;\n", 0);
    expect_clock("\toffset = 99999999999999999999;\n", 0);
    expect_clock("\toffset_s = 9999999999999;\n\toffset = 5;\n", 0);
    expect_clock("\tfreq = 1000000000;\n", 0);
    expect_clock("\toffset = x;\n", 0);
    CHECK(!ring_clock(ring_path("copy/s/none"), &offset, &error));
    CHECK(strstr(error.text, "no metadata of LTTng's, with a clock in ns, is in "));
}

int main(void)
{
    ring_begin("test-pick");
    test_places();
    test_copy();
    test_times();
    test_damaged();
    test_look();
    test_clock();
    ring_end();
    return check_status();
}
