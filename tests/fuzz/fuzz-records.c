/*
 * The file "records" of a kept folder, of any bytes: what is read is within the file, and each of
 * its events is counted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

/* inputs are chosen by what they reach in the product, not in here */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

#include "babeltrace-plugin/spans/assembler.h"
#include "fuzz_payload.h"

#pragma clang attribute pop
/* its reading of a file that is mapped */
#include "tools/agent/records.c" /* NOLINT(bugprone-suspicious-include) */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

static void take_span(void *context, struct span *span)
{
    (void)context;
    REQUIRE(span->id && span->start_ns <= span->end_ns);
}

#define NOW INT64_C(0x3000000000000)

/* Any bytes, or records one after the other, of which the last one may be cut. Returns its length.
 */
static size_t make_file(struct input *source, char *bytes, size_t room)
{
    const uint64_t choice = take(source, 1);
    size_t length = 0;

    if (choice < 64) {
        const struct text any = take_bytes(source, room);

        memcpy(bytes, any.data, any.length);
        return any.length;
    }
    while (source->at < source->end) {
        struct records_record record = {.pid = 7};
        struct record_payload payload;

        payload_take(&payload, source, NOW);
        record.event = (uint16_t)payload.event;
        record.length = (uint16_t)payload.length;
        if (length + sizeof(record) + records_padded(payload.length) > room)
            break;
        memcpy(bytes + length, &record, sizeof(record));
        memset(bytes + length + sizeof(record), 0, records_padded(payload.length));
        memcpy(bytes + length + sizeof(record), payload.bytes, payload.length);
        length += sizeof(record) + records_padded(payload.length);
    }
    return choice % 4 || !length ? length : length - 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct assembler_options options = {.idle_timeout_ns = 1000,
                                                     .end_timeout_ns = 1000,
                                                     .open_timeout_ns = 1000,
                                                     .max_open_spans = 1000,
                                                     .max_open_bytes = 1 << 24};
    static struct fenced file;
    static struct only *only;
    struct error error;
    struct records records = {.clock = {INT64_MIN / 2, NOW, 1000}};
    const struct input_counts *counts = &records.pipeline.intake.counts;
    struct input source = {data, data + size};
    struct ring_entry entry;
    struct event event;
    uint64_t count = 0, newer = 0, unreadable = 0;
    size_t length;

    if (!only) { /* all of a time, as events tell it */
        only = only_of_text(text_of("* 1 900000000000000 all\n"), "only", NULL, &error);
        REQUIRE(only);
    }
    records.pipeline.only = only;
    records.pipeline.assembler = assembler_new(&options, take_span, NULL);
    REQUIRE(records.pipeline.assembler);
    length = make_file(&source, file.bytes, sizeof(file.bytes));
    fence_put(&file, length);
    records.at = file.bytes;
    records.end = file.bytes + length;
    for (; records_next(&records, &entry); count++) {
        const enum decoded decoded = ring_event(&entry, &records.clock, &event);

        newer += decoded == DECODED_NEWER;
        unreadable += decoded == DECODED_UNREADABLE;
        REQUIRE(entry.payload + entry.length <= records.at && records.at <= records.end);
        records_give(&records, &entry);
    }
    assembler_flush(records.pipeline.assembler);
    REQUIRE(counts->events == count && counts->newer == newer);
    REQUIRE(counts->unreadable == unreadable);
    REQUIRE(assembler_counts(records.pipeline.assembler)->events + counts->newer +
                counts->unreadable + counts->unwanted + counts->foreign ==
            count);
    assembler_free(records.pipeline.assembler);
    fence_lift(&file, length);
    return 0;
}

#pragma clang attribute pop
