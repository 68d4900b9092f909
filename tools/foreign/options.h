/*
 * What the intake of foreign spans is told, tells, and counts: see foreign.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FOREIGN_OPTIONS_H
#define BLKIN_TOOLS_FOREIGN_OPTIONS_H

#include "babeltrace-plugin/base/text.h"
#include "tools/otlp/otlp_decode.h"

#include <stdbool.h>
#include <stdint.h>

/* Texts are copied: a reload frees them. A 0 in place of a number: the value in brackets. */
struct foreign_options {
    const char *listen;     /* "[ADDRESS:]PORT", such as "127.0.0.1:4318"; NULL or "": none */
    const char *socket;     /* the path of a Unix socket; NULL or "": none */
    uint64_t store_bytes;   /* memory for spans (64 MiB) */
    uint64_t message_bytes; /* of a request after decompression, at most (8 MiB) */
    uint64_t connections;   /* at once (256): beyond that, the one that is idle for longest goes */
    uint64_t spans_per_s;   /* 0: no limit. A sender beyond it is told to try again later */
};

/* A span that is slow or has failed. The text lives until the call returns; any bytes, any length.
 */
struct foreign_alarm {
    uint64_t trace_id_high, trace_id; /* both 0: it only tells of `dropped` */
    uint64_t duration_ns;
    uint32_t dropped; /* alarms of this rule that the limit has held back since the last one */
    struct text why;  /* the rule */
};

struct foreign_callbacks {
    void (*alarm)(void *context, const struct foreign_alarm *alarm);
    /* Takes a span at once, in place of the store. Returns false: the store gets it. May be NULL.
     */
    bool (*span)(void *context, const struct otlp_origin *origin, const struct otlp_span *span);
    void *context;
};

struct foreign_counts {
    uint64_t requests;
    uint64_t requests_taken;
    uint64_t requests_cut_off;  /* the other end went, or took too long */
    uint64_t refused_page;      /* another path or method, or a web page has sent it */
    uint64_t refused_type;      /* not protobuf, or another compression than gzip */
    uint64_t refused_too_large; /* longer than message_bytes */
    uint64_t refused_broken;    /* no OTLP: spans before the fault were taken */
    uint64_t refused_rate;      /* too many spans per second */
    uint64_t refused_memory;    /* no memory, or too many requests on their way */
    uint64_t connections;       /* ever */
    uint64_t hung_up;           /* connections that were too many, or took too long */
    uint64_t bytes;             /* of bodies, as they came over the network */
    uint64_t spans_in;
    uint64_t spans_invalid;     /* refused: without ids */
    uint64_t spans_too_large;   /* refused: the store has no place for so large a span */
    uint64_t spans_passed_on;   /* taken at once: see foreign_callbacks */
    uint64_t spans_overwritten; /* the others are held */
    uint64_t alarms;
    uint64_t alarms_held_back; /* by the rules' limit */
};

#endif
