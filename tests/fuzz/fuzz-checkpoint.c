/*
 * Fuzzes what reads a checkpoint: states of an assembler that has seen some events, and whole
 * files, with bytes changed here and there, cut off, and with and without checksums that are right.
 * Whatever is taken must hold: events go on through it, every event is in a span or in one counter
 * and every span is fit to be encoded.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

/* inputs are chosen by what they reach in the product, not in here */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/checkpoint/checkpoint.h"
#include "babeltrace-plugin/spans/hold.h"
#include "babeltrace-plugin/stages/hosts.h"
#include "babeltrace-plugin/stages/join.h"
#include "babeltrace-plugin/stages/tail_stage.h"

#include "finished_span.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static uint64_t take_number(struct input *source)
{
    static const uint64_t edges[] = {UINT64_MAX, INT64_MAX, (uint64_t)INT64_MAX + 1, 64, 4096};
    const uint64_t choice = take(source, 1);

    return choice < 240 ? choice % 8 : edges[choice % (sizeof(edges) / sizeof(edges[0]))];
}

static struct text take_text(struct input *source)
{
    static const char *const texts[] = {"", "a", "host", "cr", "ss", "cs", "sr", "10.0.0.1"};

    return text_of(texts[take(source, 1) % (sizeof(texts) / sizeof(texts[0]))]);
}

static void make_metric(struct event *event, uint64_t choice)
{
    event->group = text_of(choice & 32 ? "disk" : "tcp");
    event->instance = text_of(choice & 32 ? "vda" : "");
    event->names = text_of(choice & 64 ? "system.disk.io_time:ns:c b:x:g" : "");
    event->values = text_of(choice & 128 ? "50000000 3" : "9 4");
    event->period_ms = 100;
}

static struct event take_event(struct input *source)
{
    const uint64_t choice = take(source, 1);
    struct event event = {
        .kind = (enum event_kind)(choice % (EVENT_METRIC + 1)),
        .time_ns = (int64_t)(take(source, 1) * 10000000),
        .origin = {.host = choice & 16 ? text_of("near") : text_of("far"), .pid = 7},
        .trace_id_high = choice & 8 ? JOIN_TRACE_HIGH : 0,
        .trace_id = 1 + (choice >> 7 & 1),
        .span_id = 1 + take(source, 1) % 4,
        .parent_id = choice & 1,
        .span_name = text_of("write"),
        .service = take_text(source),
        .ip = text_of(choice & 32 ? "10.0.0.1" : ""),
        .port = 6800,
        .key = text_of("key"),
        .value = take_text(source),
        .log = text_of(choice & 64 ? "s:0@0blkin.join0123456789abcdef" : ""),
        .duration_ns = choice,
        .thread = 1 + (choice & 1),
        .sequence = take_number(source),
        .span_kind = choice >> 5,
        .realtime = 5 + choice * 10000000,
    };

    if (event.kind == EVENT_METRIC)
        make_metric(&event, choice);
    return event;
}

static void note_loss(struct input *source, struct hold *hold)
{
    const struct loss loss = {
        .origin = {.host = text_of("near")},
        .has_times = true,
        .begin_ns = (int64_t)take(source, 1),
        .end_ns = (int64_t)(take(source, 1) * 10000000),
        .events = take_number(source),
    };

    hold_note_loss(hold, &loss);
}

/* ---- what comes out -------------------------------------------------------------------------- */

static struct checkpoint *checkpoint; /* of this execution, or NULL */
static struct assembler *assembling;
static struct chain chain;
static struct stage *hosts;
static char rules[32]; /* the file of tail sampling */
static uint64_t spans;
static uint64_t spans_before; /* that the one before has held */

static void take_delivered(void *context, const struct span *span)
{
    (void)context;
    spans++;
    check_finished(span);
    REQUIRE(span->endpoint->service.length < 2000);
    if (checkpoint && checkpoint_hold(checkpoint))
        checksum += checkpoint_skips(checkpoint, (struct span *)(uintptr_t)span);
}

static void take_metric(void *context, const struct event *event, int64_t time_ns)
{
    (void)context;
    hosts_stage_add(hosts, event, time_ns, assembler_now(assembling));
}

static void take_span(void *context, struct span *span)
{
    (void)context;
    chain_take(&chain, span, assembler_now(assembling));
}

static void warn(void *context, const char *message)
{
    (void)context;
    checksum += strlen(message);
}

static void write_rules(void)
{
    static const char text[] = "* > 20ms\n*:* > p95\nrare 3\nincomplete\n1/3\n";
    const int fd = memfd_create("rules", 0);

    REQUIRE(fd >= 0 && write(fd, text, sizeof(text) - 1) == (ssize_t)sizeof(text) - 1);
    (void)snprintf(rules, sizeof(rules), "/proc/self/fd/%d", fd);
}

/* And the stages behind it. */
static struct assembler *new_assembler(void)
{
    const struct join_options join_options = {
        .wait_ns = 300000000, .root_wait_ns = 1000000000, .skew_ns = 1000000, .max_bytes = 8000};
    const struct assembler_options options = {
        .idle_timeout_ns = 500000000,
        .end_timeout_ns = 50000000,
        .open_timeout_ns = 1000000000,
        .max_open_spans = 6,
        .correct_clocks = true,
        .max_open_bytes = 1 << 16,
        .metric = take_metric,
    };
    const struct hosts_options hosts_options = {
        .min_ns = 1000, .max_history_bytes = 80000, .max_held_bytes = 2000};
    struct assembler *assembler = assembler_new(&options, take_span, NULL);
    const struct tail_options tail_options = {
        .rules = rules, .wait_ms = 500, .max_bytes = 8000, .assembler = assembler, .warn = warn};
    struct stage *join = join_stage_new(&join_options), *tail;
    struct error error;

    hosts = hosts_stage_new(&hosts_options);
    if (!rules[0])
        write_rules();
    tail = tail_stage_new(&tail_options, &error);
    if (!tail)
        fprintf(stderr, "%s\n", error.text);
    REQUIRE(assembler && join && hosts && tail);
    chain_init(&chain, take_delivered, NULL);
    chain_append(&chain, join);
    chain_append(&chain, hosts);
    chain_append(&chain, tail);
    assembling = assembler;
    spans_before = 0;
    return assembler;
}

static void add_events(struct input *source, struct hold *hold, uint64_t count)
{
    for (; count; count--) {
        const struct event event = take_event(source);

        if (event.sequence == 7)
            note_loss(source, hold);
        hold_add(hold, &event);
    }
}

static void check_end(struct assembler *assembler, struct hold *hold)
{
    const struct assembler_counts *counts;

    hold_flush(hold);
    REQUIRE(hold_events(hold) == 0);
    assembler_flush(assembler);
    REQUIRE(chain_adds_up(&chain));
    while (chain_flush_some(&chain, 3))
        REQUIRE(chain_adds_up(&chain));
    REQUIRE(chain_held(&chain) == 0 && hosts_stage_counts(hosts).held_bytes == 0);
    REQUIRE(chain_adds_up(&chain));
    counts = assembler_counts(assembler);
    REQUIRE(counts->events == counts->events_in_span + counts->events_invalid +
                                  counts->events_no_room + counts->events_late +
                                  counts->events_duplicate + counts->events_process +
                                  counts->events_metric + counts->events_rule);
    REQUIRE(counts->spans_finished + spans_before == chain.counts.in);
    REQUIRE(chain.counts.in == spans + chain.counts.left_out[STAGE_SAMPLED_OUT]);
    REQUIRE(counts->spans_open == 0 && counts->open_bytes == 0);
}

/* ---- states ---------------------------------------------------------------------------------- */

static bool append(void *context, const void *data, size_t length)
{
    struct buffer *buffer = context;

    REQUIRE(buffer_reserve(buffer, length));
    memcpy(buffer->data + buffer->length, data, length);
    buffer->length += length;
    return true;
}

static struct buffer save(struct assembler *assembler, struct hold *hold)
{
    struct buffer buffer = {.length = 0};
    struct state writer = {.write = append, .context = &buffer};

    assembler_save(assembler, false, &writer);
    hold_save(hold, &writer);
    chain_save(&chain, assembler, &writer);
    REQUIRE(!writer.has_failed);
    return buffer;
}

/* Numbers take 8 bytes: what is changed are these, or a byte anywhere. */
static void change(struct input *source, char *data, size_t length)
{
    for (uint64_t changes = take(source, 1) % 4; changes && length >= 8; changes--) {
        const size_t at = take(source, 2) % length;
        const uint64_t number = take_number(source);

        if (at + 8 <= length && take(source, 1) & 1)
            memcpy(data + at, &number, sizeof(number));
        else
            data[at] = (char)take(source, 1);
    }
}

static void restore_and_go_on(struct input *source, struct text state)
{
    struct state reader = {.left = state};
    struct assembler *assembler = new_assembler();
    struct hold *hold = hold_new(assembler);

    REQUIRE(hold);
    spans = 0;
    assembler_restore(assembler, &reader);
    hold_restore(hold, &reader);
    chain_restore(&chain, assembler, &reader);
    spans_before = chain_held(&chain);
    if (state_is_good(&reader)) {
        struct buffer again = save(assembler, hold);

        REQUIRE(again.length);
        buffer_free(&again);
        add_events(source, hold, 12);
        hold_end_trace(hold, (int64_t)take(source, 2) * 10000000);
        check_end(assembler, hold);
    }
    state_free(&reader);
    hold_free(hold);
    chain_free(&chain);
    assembler_free(assembler);
}

/* ---- files ----------------------------------------------------------------------------------- */

static char path[64], aside[80];

static void ignore(void *context, const char *message)
{
    (void)context;
    checksum += strlen(message);
}

static void open_file(struct input *source, bool is_live)
{
    static const struct checkpoint_callbacks callbacks = {ignore, NULL};
    const struct checkpoint_options options = {
        .path = path,
        .trace = is_live ? NULL : "trace",
        .flush = take(source, 1) & 1,
    };
    struct assembler *assembler = new_assembler();
    struct exporter_counts counts = {.spans = 0};
    struct error error;

    spans = 0;
    checkpoint = checkpoint_open(&options, &callbacks, assembler, &chain, &error);
    spans_before = chain_held(&chain);
    if (checkpoint && checkpoint_hold(checkpoint) && !checkpoint_is_done(checkpoint)) {
        struct hold *hold = checkpoint_hold(checkpoint);

        add_events(source, hold, 8);
        counts.spans = spans;
        checkpoint_settle(checkpoint, &counts, spans);
        checkpoint_end_trace(checkpoint, (int64_t)take(source, 2) * 10000000, false);
        if (!checkpoint_has_failed(checkpoint, &error))
            (void)checkpoint_finish(checkpoint, &error);
        check_end(assembler, hold);
    }
    checkpoint_free(checkpoint);
    checkpoint = NULL;
    chain_free(&chain);
    assembler_free(assembler);
}

static void put_crc(char *data, size_t at, const char *from, size_t length)
{
    const uint32_t crc = (uint32_t)crc32(0, (const unsigned char *)from, (uInt)length);

    memcpy(data + at, &crc, sizeof(crc));
}

/* With checksums that are right, if the input wants that. */
static void change_file(struct input *source)
{
    static char data[1 << 16];
    int fd = open(path, O_RDWR);
    ssize_t length = fd < 0 ? -1 : read(fd, data, sizeof(data));

    REQUIRE(length >= 1536);
    change(source, data, take(source, 1) & 1 ? (size_t)length : 1536);
    if (take(source, 1) & 1) {
        put_crc(data, 40, data + 1536, (size_t)length - 1536);
        put_crc(data, 44, data, 44);
        put_crc(data, 512 + 292, data + 512, 292);
        put_crc(data, 1024 + 292, data + 1024, 292);
    }
    length -= (ssize_t)(take(source, 1) == 255 ? take(source, 2) % (uint64_t)length : 0);
    REQUIRE(pwrite(fd, data, (size_t)length, 0) == length && ftruncate(fd, length) == 0);
    close(fd);
}

static void try_file(struct input *source)
{
    const bool is_live = take(source, 1) & 1;

    if (!path[0]) {
        (void)snprintf(path, sizeof(path), "/dev/shm/fuzz-checkpoint-%d", (int)getpid());
        (void)snprintf(aside, sizeof(aside), "%s.damaged", path);
    }
    (void)unlink(path);
    open_file(source, is_live);
    change_file(source);
    open_file(source, is_live);
    (void)unlink(path);
    (void)unlink(aside);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input source = {data, data + size};
    struct assembler *assembler;
    struct hold *hold;
    struct buffer state;
    size_t length;

    random_number = sum_of(data, size);
    checkpoint = NULL;
    if (is_one_in(16, data, size)) {
        try_file(&source);
        return 0;
    }
    assembler = new_assembler();
    hold = hold_new(assembler);
    REQUIRE(hold);
    spans = 0;
    add_events(&source, hold, take(&source, 1) % 16);
    hold_end_trace(hold, 0);
    state = save(assembler, hold);
    check_end(assembler, hold);
    hold_free(hold);
    chain_free(&chain);
    assembler_free(assembler);
    change(&source, state.data, state.length);
    length = take(&source, 1) == 255 ? take(&source, 2) % state.length : state.length;
    restore_and_go_on(&source, (struct text){state.data, length});
    buffer_free(&state);
    return 0;
}

#pragma clang attribute pop
