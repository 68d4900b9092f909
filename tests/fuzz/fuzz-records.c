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

#pragma clang attribute pop
/* its reading of a file that is mapped */
#include "tools/record/records.c" /* NOLINT(bugprone-suspicious-include) */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

static void take_span(void *context, struct span *span)
{
    (void)context;
    REQUIRE(span->id && span->start_ns <= span->end_ns);
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
    struct records records = {.clock = {INT64_MIN / 2, INT64_C(0x3000000000000), 1000}};
    const struct input_counts *counts = &records.pipeline.intake.counts;
    const size_t length = size < sizeof(file.bytes) ? size : sizeof(file.bytes);
    struct ring_entry entry;
    uint64_t count = 0;

    if (!only) { /* all of a time, as events tell it */
        only = only_of_text(text_of("* 1 400000000000000 all\n"), "only", NULL, &error);
        REQUIRE(only);
    }
    records.pipeline.only = only;
    records.pipeline.assembler = assembler_new(&options, take_span, NULL);
    REQUIRE(records.pipeline.assembler);
    memcpy(file.bytes, data, length);
    fence_put(&file, length);
    records.at = file.bytes;
    records.end = file.bytes + length;
    for (; records_next(&records, &entry); count++) {
        REQUIRE(entry.payload + entry.length <= records.at && records.at <= records.end);
        records_give(&records, &entry);
    }
    assembler_flush(records.pipeline.assembler);
    REQUIRE(counts->events == count);
    REQUIRE(assembler_counts(records.pipeline.assembler)->events + counts->newer +
                counts->unreadable + counts->unwanted + counts->foreign ==
            count);
    assembler_free(records.pipeline.assembler);
    fence_lift(&file, length);
    return 0;
}

#pragma clang attribute pop
