/*
 * The typical span of the figures: a client span with two annotations and two tags, some 430 bytes
 * of JSON.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_BENCH_SAMPLE_SPAN_H
#define TESTS_BENCH_SAMPLE_SPAN_H

#include "babeltrace-plugin/spans/span.h"

static const struct endpoint sample_endpoint = {
    .service = {"osd.7", 5},
    .ipv4 = "192.168.10.25",
    .port = 6802,
};

/* For exporters: nobody interrupts them. */
static inline bool never(void *context)
{
    (void)context;
    return false;
}

static inline void sample_span(struct span *span, uint64_t id)
{
    const struct text none = {NULL, 0};
    const int64_t start = INT64_C(1735732800123456789) + (int64_t)id * 1000;

    span->trace_id = UINT64_C(0x9e3779b97f4a7c15) * (id + 1);
    span->id = UINT64_C(0xbf58476d1ce4e5b9) * (id + 1);
    span->parent_id = UINT64_C(0x94d049bb133111eb) * (id + 1);
    span->endpoint = &sample_endpoint;
    span->kind = SPAN_CLIENT;
    span->start_ns = start;
    span->end_ns = start + 1234567;
    span->log_length = 0;
    (void)span_set_name(span, text_of("write object"));
    (void)span_add(span, SPAN_ANNOTATION, none, text_of("journal queued"), start + 100000);
    (void)span_add(span, SPAN_ANNOTATION, none, text_of("committed"), start + 900000);
    (void)span_add(span, SPAN_TAG_TEXT, text_of("object"), text_of("rbd_data.102a74b0dc51.0000123"),
                   0);
    (void)span_add(span, SPAN_TAG_INTEGER, text_of("length"), none, 4194304);
}

#endif
