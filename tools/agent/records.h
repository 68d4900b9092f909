/*
 * The file "records" of a kept folder: records of rings in the order of their times, to be read on
 * this host only.
 *
 * struct records_head, then for each record a struct records_record and its payload, with zero
 * bytes up to a multiple of 8.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RECORDS_H
#define BLKIN_TOOLS_RECORDS_H

#include "babeltrace-plugin/stages/chain.h"

#include <jansson.h>
#include <stdint.h>

#define RECORDS_MARK UINT64_C(0x3264726365726b62) /* "bkrecrd2" in little endian's order */

struct records_head {
    uint64_t mark;
    int64_t now_ns;    /* CLOCK_MONOTONIC when the rings were copied */
    int64_t offset_ns; /* what CLOCK_REALTIME is ahead of it */
    uint64_t count;
};

struct records_record {
    uint32_t pid, pid_ns, zero;
    uint16_t event; /* as in a trailer, see tracepoints/format/ring.h */
    uint16_t length;
};

/* Of a payload. */
static inline uint64_t records_padded(uint64_t length)
{
    return (length + 7) & ~UINT64_C(7);
}

/*
 * For a job: reads the file, and gives its events to a pipeline with the order's parameters of the
 * sink; then the spans of the file foreign, a request of OTLP, if it is there. look: nothing is
 * sent, it is given each span, and returns true; NULL: all is sent. The order's "tell-of" (may be
 * missing): what is found is told of so many traces only. Returns the exit status: 0 all was
 * delivered.
 */
int records_read(const char *path, const char *foreign, const json_t *order, stage_skip_fn *look,
                 void *context);

/* Gives a span of an SDK to a pipeline. whole: its log is used again, and freed by the caller.
 * Returns false: the span has no such form. */
struct otlp_origin;
struct otlp_span;
struct pipeline;
bool records_take_foreign(struct pipeline *pipeline, struct span *whole,
                          const struct otlp_origin *origin, const struct otlp_span *span);

#endif
