/*
 * Inside of a recorded span: its states, and the log that lies in its record.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SPAN_H
#define BLKIN_SPAN_H

#include "../tracepoints/events.h"
#include "blkin.h"
#include "clock.h"
#include "put.h"

/* blkin_span.state_; 0 is "not recorded". */
enum {
    SPAN_AT_END = 1,    /* one event, blkin:span, when it ends */
    SPAN_STREAMING = 2, /* blkin:begin, annotations, tags and blkin:end as they happen */
};

/*
 * The record: the event's fixed part and its strings. The name is there from the beginning, then
 * the log grows, and the end adds the service. What a short name leaves free is the log's.
 */
#define SPAN_NAME_MAX    120
#define SPAN_SERVICE_MAX 72
#define SPAN_IP_MAX      46
#define SPAN_USED_MAX    (sizeof(struct blkin_span_event) + SPAN_NAME_MAX + 1 + BLKIN_SPAN_LOG)

_Static_assert(SPAN_USED_MAX + 1 + SPAN_SERVICE_MAX + 1 + SPAN_IP_MAX + 1 + BLKIN_BLOCK <=
                   sizeof(((struct blkin_span *)0)->record_),
               "struct blkin_span is too small");

static inline struct blkin_span_event *span_event(struct blkin_span *span)
{
    return (struct blkin_span_event *)(void *)span->record_;
}

static inline char *span_name(struct blkin_span *span)
{
    return (char *)span->record_ + sizeof(struct blkin_span_event);
}

static inline char *span_unused(struct blkin_span *span)
{
    return (char *)span->record_ + span->used_;
}

/* Longer texts are cut. */
#define SPAN_TEXT_MAX 240 /* of an annotation, or a tag's value */
#define SPAN_KEY_MAX  100

#endif
