/*
 * Made-up spans for the tests of joining.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_JOIN_SPANS_H
#define TESTS_JOIN_SPANS_H

#include "babeltrace-plugin/stages/join.h"
#include "check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct made {
    uint64_t high, trace, id, parent;
    int64_t start_ms, end_ms;
    uint64_t key; /* 0: none */
    enum span_kind kind;
    struct {
        uint64_t network;          /* 0: none */
        int64_t request, response; /* bytes */
    } proof;
};

/* Returns false when out of memory. The caller frees span->log. */
static inline bool make_span(struct span *span, const struct made *made)
{
    static const struct endpoint endpoint = {.service = {"s", 1}};
    char key[33];

    *span = (struct span){
        .trace_id_high = made->high,
        .trace_id = made->trace,
        .id = made->id,
        .parent_id = made->parent,
        .kind = made->kind,
        .endpoint = &endpoint,
        .start_ns = made->start_ms * MS,
        .end_ns = made->end_ms * MS,
    };
    (void)snprintf(key, sizeof(key), "%016" PRIx64 "%016" PRIx64, made->key, made->proof.network);
    return span_set_name(span, text_of("n")) &&
           (!made->key || (span_add(span, SPAN_TAG_TEXT, text_of(JOIN_TAG),
                                    (struct text){key, made->proof.network ? 32 : 16}, 0) &&
                           span_add(span, SPAN_TAG_INTEGER, text_of("request.bytes"),
                                    (struct text){NULL, 0}, made->proof.request) &&
                           span_add(span, SPAN_TAG_INTEGER, text_of("response.bytes"),
                                    (struct text){NULL, 0}, made->proof.response)));
}

#endif
