/*
 * The spans that are measured.
 *
 * Strings have the lengths that storage daemons use. The usual span has two annotations,
 * a string tag of 16 characters, and an integer tag.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BENCH_SPANS_H
#define BENCH_SPANS_H

#include <blkin.h>

#include "batch.h"

static struct blkin_span root; /* the parent of the spans: recorded, or not */

#define LOOP(name, ...)                                      \
    __attribute__((unused)) static void name(unsigned calls) \
    {                                                        \
        for (unsigned i = 0; i < calls; i++)                 \
            __VA_ARGS__;                                     \
    }

LOOP(run_empty, FORGET())

/* Defines a subject: the loop, and the code that runs before each group of batches. */
#define SUBJECT(name, code, loop)    \
    static void name(unsigned calls) \
    {                                \
        if (calls == 0)              \
            (void)(code);            \
        loop(calls);                 \
    }

/* A span's later calls. FORGET() makes the compiler read the span again, as real programs do. */
#define REST_OF_SPAN(span, i)                                      \
    do {                                                           \
        FORGET();                                                  \
        blkin_span_annotate(span, "queued");                       \
        FORGET();                                                  \
        blkin_span_tag_string(span, "object", "rbd_data.4f2a.01"); \
        FORGET();                                                  \
        blkin_span_tag_int64(span, "offset", (i));                 \
        FORGET();                                                  \
        blkin_span_annotate(span, "committed");                    \
        FORGET();                                                  \
        blkin_span_end(span);                                      \
        FORGET();                                                  \
    } while (0)

/* A loop of spans: the code that begins a span, and the rest of the span's code. */
#define WHOLE_SPANS(name, begin, ...)                        \
    __attribute__((unused)) static void name(unsigned calls) \
    {                                                        \
        struct blkin_span span;                              \
                                                             \
        ESCAPE(&span);                                       \
        for (unsigned i = 0; i < calls; i++) {               \
            begin;                                           \
            __VA_ARGS__;                                     \
        }                                                    \
    }

/* Spans without annotations and tags. */
#define BARE_SPANS(name, begin) WHOLE_SPANS(name, begin, FORGET(); blkin_span_end(&span); FORGET())

#define BEGIN_CHILD blkin_span_begin(&span, "osd_op write", BLKIN_INTERNAL, &root)
#define BEGIN_ROOT  blkin_span_begin(&span, "osd_op write", BLKIN_SERVER, NULL)

WHOLE_SPANS(run_child_span, BEGIN_CHILD, REST_OF_SPAN(&span, i))
BARE_SPANS(run_bare_span, BEGIN_CHILD)

#endif
