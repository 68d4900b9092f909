/*
 * Encoders: how a finished span is written, as a unit of a body, and how a batch is made of units.
 *
 * Any run of units of a body is a batch once it is framed. That is what splitting one after a
 * refusal relies on, and the spool. With most encoders a batch is open, then units with a separator
 * between each two, then close. With one that has frame(), neighbours of one group share what is
 * said of their resource: see resource.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_ENCODER_H
#define BLKIN_OUTPUT_ENCODER_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/spans/span.h"

/*
 * How much of one span is sent, whatever a trace holds; what is left out is said in the span. A
 * collector refuses a request of some MiB as a whole, and a page shows no more of a span than a
 * person reads.
 */

/* Bytes, before they are escaped. */
#define LIMIT_NAME  1024U /* of a span or a service */
#define LIMIT_KEY   256U
#define LIMIT_VALUE 16384U /* of an annotation or a tag */

#define LIMIT_ANNOTATIONS 512U
#define LIMIT_TAGS        512U

/* A span that has been encoded to this many bytes gets no further annotation or tag. */
#define LIMIT_SPAN (384U << 10)

struct encoder {
    struct text open; /* shorter than any unit */
    struct text separator;
    struct text close; /* likewise */

    /*
     * Appends the span's unit. *group is the group of the unit before, 0 where this unit shares
     * nothing with that one; then it is the group of this unit. *cut tells whether parts of the
     * span were left out: see LIMIT_SPAN. Returns false, buffer and *group unchanged, if the buffer
     * has no room. An endpoint must not change, nor may another one get its address, while the
     * encoder lives.
     */
    bool (*encode)(struct encoder *encoder, struct buffer *buffer, const struct span *span,
                   uint64_t *group, bool *cut);

    /*
     * Makes the units from first up to, not including, end a batch by themselves: starts[] is where
     * in data each begins, length is where the last one ends. What is before the first may be
     * written over, and then its start moves to the left. May be NULL.
     */
    void (*frame)(char *data, uint32_t *starts, uint32_t first, uint32_t end, size_t length);

    /* The length of the head with which the unit begins its group; 0: it is of the group of the
     * unit before. May be NULL: units have no head. */
    size_t (*head_length)(const char *unit);

    /* The upper and the lower half of a unit's trace id. */
    void (*trace_of)(struct text unit, uint64_t id[2]);

    /* Which span it is, in a few words that a terminal may show. */
    void (*describe)(struct text unit, char *line, size_t size);

    void (*free)(struct encoder *encoder);
};

static inline size_t encoder_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* A core annotation at the very start or end says what kind, timestamp and duration say already. */
static inline bool is_implied(const struct span *span, const struct span_entry *entry)
{
    const struct text value = span_entry_value(entry);

    if ((span->kind != SPAN_CLIENT && span->kind != SPAN_SERVER) || value.length != 2)
        return false;
    if (entry->integer == span->start_ns)
        return text_is(value, span->kind == SPAN_CLIENT ? "cs" : "sr");
    return entry->integer == span->end_ns &&
           text_is(value, span->kind == SPAN_CLIENT ? "cr" : "ss");
}

#endif
