/*
 * The spans that are measured.
 *
 * Strings are of the lengths that storage daemons use. The span of all figures is begin, two
 * annotations, a string tag of 16 characters, an integer tag, end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_SPANS_H
#define BENCH_SPANS_H

#include <blkin.h>

#include "batch.h"

static struct blkin_span root; /* the parent of the spans: recorded, or not */

static void run_empty(unsigned calls)
{
    for (unsigned i = 0; i < calls; i++)
        FORGET();
}

/* What is between the calls of a real program makes the compiler read the span again. */
#define REST_OF_SPAN(span, i) \
    REST_OF_SPAN_WITH(span, i, "queued", "object", "rbd_data.4f2a.01", "offset", "committed")

#define REST_OF_SPAN_WITH(span, i, first, key, value, number, last) \
    do {                                                            \
        FORGET();                                                   \
        blkin_span_annotate(span, first);                           \
        FORGET();                                                   \
        blkin_span_tag_string(span, key, value);                    \
        FORGET();                                                   \
        blkin_span_tag_int64(span, number, (i));                    \
        FORGET();                                                   \
        blkin_span_annotate(span, last);                            \
        FORGET();                                                   \
        blkin_span_end(span);                                       \
        FORGET();                                                   \
    } while (0)

static void run_child_span(unsigned calls)
{
    struct blkin_span span;

    ESCAPE(&span);
    for (unsigned i = 0; i < calls; i++) {
        blkin_span_begin(&span, "osd_op write", BLKIN_INTERNAL, &root);
        REST_OF_SPAN(&span, i);
    }
}

/* Nothing is said of it. */
static void run_bare_span(unsigned calls)
{
    struct blkin_span span;

    ESCAPE(&span);
    for (unsigned i = 0; i < calls; i++) {
        blkin_span_begin(&span, "osd_op write", BLKIN_INTERNAL, &root);
        FORGET();
        blkin_span_end(&span);
        FORGET();
    }
}

#endif
