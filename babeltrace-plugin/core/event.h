/*
 * The decoded event: the seam between what reads traces and what assembles spans.
 *
 * A plain struct, so that the core is driven in tests without a trace or a daemon. Everything in it
 * comes from a trace and is untrusted: any value, any bytes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_EVENT_H
#define BLKIN_CORE_EVENT_H

#include "text.h"

#include <stdint.h>

enum event_kind {
    EVENT_TIMESTAMP,      /* zipkin:timestamp: value is the annotation */
    EVENT_KEYVAL_TEXT,    /* zipkin:keyval_string, and zipkin:keyval of the oldest library */
    EVENT_KEYVAL_INTEGER, /* zipkin:keyval_integer */
};

/* All texts are borrowed for the length of one call. */
struct event {
    enum event_kind kind;
    int64_t time_ns; /* since the Unix epoch */
    uint64_t trace_id;
    uint64_t span_id;
    uint64_t parent_id; /* 0: none */
    struct text span_name;
    struct text service;
    struct text ip;
    int64_t port;
    struct text key;   /* of both keyval kinds */
    struct text value; /* of EVENT_TIMESTAMP and EVENT_KEYVAL_TEXT */
    int64_t integer;   /* of EVENT_KEYVAL_INTEGER */
};

#endif
