/*
 * Requirements on each finished span of any input; they read all bytes of its texts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_FUZZ_FINISHED_SPAN_H
#define TESTS_FUZZ_FINISHED_SPAN_H

#include "babeltrace-plugin/spans/span.h"

#include "fuzz.h"

static uint64_t checksum;

static void sum_up(struct text text)
{
    for (size_t i = 0; i < text.length; i++)
        checksum += (unsigned char)text.data[i];
}

static void check_finished(const struct span *span)
{
    REQUIRE((span->trace_id | span->trace_id_high) && span->id && span->endpoint);
    REQUIRE(span->start_ns <= span->end_ns && span->kind <= SPAN_CONSUMER);
    REQUIRE(span->log_length <= SPAN_LOG_MAX);
    sum_up(span_name(span));
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        const struct text key = span_entry_key(entry), value = span_entry_value(entry);

        REQUIRE(entry->type <= SPAN_MESSAGE);
        REQUIRE(entry->size >= sizeof(*entry) && entry->size % 8 == 0);
        REQUIRE(entry->type != SPAN_LINK || value.length == sizeof(struct span_link));
        REQUIRE(value.data + value.length <= span->log + span->log_length);
        sum_up(key);
        sum_up(value);
    }
}

#endif
