/*
 * Alarms in snapshots that overlap, of any bytes: what is given is fit to be shown, and what is in
 * packets that were not damaged is given just once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ctf_streams.h"

/* inputs are chosen by what they reach in the product, not in here */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

#include "tools/record/alarm.h"
#include "tracepoints/format/events.h"

#define EVENTS_MAX 64

struct known {
    uint32_t pid, sequence;
    uint64_t monotonic, span_id;
};

struct list {
    struct known events[EVENTS_MAX];
    unsigned count;
};

static struct list before, now, given;
static bool is_known; /* what the snapshots have, this one and the one before */
static char content[4096];
static size_t length;

static bool is_in(const struct list *list, const struct known *event)
{
    for (unsigned i = 0; i < list->count; i++)
        if (memcmp(&list->events[i], event, sizeof(*event)) == 0)
            return true;
    return false;
}

static void put(const void *bytes, size_t size)
{
    if (size > sizeof(content) - length)
        size = sizeof(content) - length;
    memcpy(content + length, bytes, size);
    length += size;
}

static void put_event(struct input *source)
{
    static const char *const texts[] = {"", "*>20ms", "\x1b[2J", "\xc3\xa4\xff\xe2\x82",
                                        "a text that is longer than others are"};
    struct known known = {.pid = take(source, 1) % 3,
                          .sequence = (uint32_t)take_edge(source),
                          .monotonic = take(source, 1) * 1000000,
                          .span_id = take(source, 1) % 2};
    const struct blkin_slow_event event = {.mark = BLKIN_SLOW_MARK,
                                           .trace_id = 5,
                                           .span_id = known.span_id,
                                           .monotonic = known.monotonic,
                                           .pid = known.pid,
                                           .sequence = known.sequence};

    if (length + sizeof(event) + 128 > sizeof(content) || now.count == EVENTS_MAX)
        return;
    put(&event, sizeof(event));
    for (int i = 0; i < 3; i++) {
        const char *text = texts[take(source, 1) % (sizeof(texts) / sizeof(texts[0]))];

        put(text, strlen(text) + 1);
    }
    if (!is_in(&now, &known))
        now.events[now.count++] = known;
}

static void put_something(struct input *source)
{
    const uint64_t mark = BLKIN_SLOW_MARK;
    const uint8_t choice = (uint8_t)take(source, 1);
    struct text bytes;

    if (choice < 160) {
        put_event(source);
    } else if (choice < 200) { /* none of ours */
        static const char fill[255];

        put(fill, take(source, 1));
    } else {
        bytes = take_bytes(source, 1 + choice % 32);
        if (choice & 1)
            put(&mark, sizeof(mark));
        put(bytes.data, bytes.length);
        is_known = false;
    }
}

static void make_snapshot(struct input *source)
{
    const uint8_t packets = (uint8_t)take(source, 1) % 8;

    clear_streams();
    now.count = 0;
    for (unsigned i = 0; i < packets; i++) {
        struct made_stream *stream = &streams[take(source, 1) % STREAMS];
        const unsigned count = stream->count;
        const struct list had = now;

        length = 0;
        for (unsigned j = take(source, 1) % 8; j > 0; j--)
            put_something(source);
        add_packet(stream, content, length, source);
        if (stream->count == count) /* no room */
            now = had;
    }
    if (take(source, 1) % 4 == 0) {
        damage(&streams[take(source, 1) % STREAMS], source);
        is_known = false;
    }
    write_streams();
}

static void check_text(const char *text, size_t room)
{
    REQUIRE(strnlen(text, room) < room);
    for (; *text; text++)
        REQUIRE((unsigned char)*text >= 0x20 && *text != 0x7f);
}

static void note(void *context, const struct alarm *alarm)
{
    const struct known event = {alarm->pid, alarm->sequence, alarm->monotonic_ns, alarm->span_id};

    (void)context;
    check_text(alarm->why, sizeof(alarm->why));
    check_text(alarm->name, sizeof(alarm->name));
    check_text(alarm->service, sizeof(alarm->service));
    if (given.count < EVENTS_MAX)
        given.events[given.count++] = event;
}

static void check_given(bool was_known)
{
    unsigned expected = 0;

    for (unsigned i = 0; i < now.count; i++) {
        const bool is_new = !is_in(&before, &now.events[i]);

        if (was_known && is_known)
            REQUIRE(is_in(&given, &now.events[i]) == is_new);
        expected += is_new;
    }
    if (was_known && is_known)
        REQUIRE(given.count == expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input source = {data, data + size};
    struct alarm_reader *reader = alarm_reader_new();
    struct error error;
    uint64_t lost;

    random_number = sum_of(data, size);
    make_folder("fuzz-alarm");
    REQUIRE(reader != NULL);
    if (take(&source, 1) % 2)
        alarm_reader_knows(reader, (uint32_t)take(&source, 1) % 3, (uint32_t)take_edge(&source));
    before.count = 0;
    is_known = true;
    do {
        const bool was_known = is_known;
        bool is_read;

        is_known = true;
        make_snapshot(&source);
        given.count = 0;
        is_read = alarm_read(reader, folder, note, NULL, &lost, &error);
        REQUIRE(is_read || streams[0].is_damaged || streams[1].is_damaged); /* of another order */
        REQUIRE(is_read || given.count == 0);
        if (!is_read) {
            is_known = was_known;
            continue;
        }
        check_given(was_known);
        given.count = 0;
        REQUIRE(alarm_read(reader, folder, note, NULL, &lost, &error) && given.count == 0);
        before = now;
    } while (source.at < source.end);
    alarm_reader_free(reader);
    return 0;
}

#pragma clang attribute pop
