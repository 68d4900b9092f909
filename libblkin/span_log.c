/*
 * Annotations and tags of a recorded span: into its log, or out as events.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "span.h"

#include "hex.h"
#include "provider.h"
#include "put.h"
#include "thread.h"

static size_t at_most(size_t length, size_t max)
{
    return length < max ? length : max;
}

/* ---- streaming ---- */

static void stream(struct blkin_span *span, enum blkin_packed_event kind, uint64_t age_ns,
                   const char *text, size_t length)
{
    const struct blkin_provider *provider = blkin_provider();
    struct blkin_thread *thread;
    char *at = (char *)span->record_;

    if (!__atomic_load_n(provider->enabled[kind], __ATOMIC_RELAXED))
        return;
    thread = blkin_this_thread();
    at = blkin_put_bytes(at,
                         &(struct blkin_detail_event){
                             .trace_id = span->context.trace_id,
                             .span_id = span->context.span_id,
                             .age = age_ns,
                             .thread = thread->number,
                             .sequence = ++thread->sequence,
                         },
                         sizeof(struct blkin_detail_event));
    at = blkin_put_bytes(at, text, length);
    *at++ = '\0';
    provider->record(kind, span->record_, (size_t)(at - (char *)span->record_));
}

/* ---- the log ---- */

/* Where a log record of this size goes; NULL, counted, if there is no room. */
static char *room(struct blkin_span *span, size_t size)
{
    if (span->log_length_ + size > BLKIN_SPAN_LOG) {
        if (span->dropped_ < UINT16_MAX)
            span->dropped_++;
        return NULL;
    }
    return span_log(span) + span->log_length_;
}

/* The record that put() has written there is part of the log, or goes out at once. */
static void keep(struct blkin_span *span, const char *record, const char *record_end,
                 char *streamed)
{
    const size_t length = (size_t)(record_end - record);

    if (record == streamed)
        stream(span, BLKIN_EVENT_TAG, 0, record, length);
    else
        span->log_length_ = (uint16_t)(span->log_length_ + length);
}

static void log_annotation(struct blkin_span *span, uint32_t severity, const char *text,
                           size_t length, uint64_t offset_ns)
{
    char *record = room(span, 18 + length);
    char *at = record;

    if (!record)
        return;
    *at++ = 'a';
    *at++ = (char)('0' + (severity & 7));
    at = blkin_put_hex8(at, (uint32_t)(offset_ns >> 16));
    at = blkin_put_hex8(at, (uint32_t)(offset_ns << 16) | (uint32_t)length);
    at = blkin_put_bytes(at, text, length);
    span->log_length_ = (uint16_t)(span->log_length_ + (at - record));
}

void blkin_span_annotate_(struct blkin_span *span, uint32_t severity, const char *text,
                          size_t length)
{
    length = at_most(length, SPAN_TEXT_MAX);
    if (span->state_ == SPAN_STREAMING)
        stream(span, BLKIN_EVENT_ANNOTATION + (severity & 7), 0, text, length);
    else
        log_annotation(span, severity, text, length,
                       blkin_elapsed_ns(span->start_ticks_, blkin_ticks()));
}

void blkin_span_annotate_at_(struct blkin_span *span, uint32_t severity, const char *text,
                             size_t length, uint64_t time_ns)
{
    const uint64_t now_ns = blkin_monotonic_ns();
    const uint64_t age_ns = time_ns < now_ns ? now_ns - time_ns : 0;

    length = at_most(length, SPAN_TEXT_MAX);
    if (span->state_ == SPAN_STREAMING)
        stream(span, BLKIN_EVENT_ANNOTATION + (severity & 7), age_ns, text, length);
    else
        log_annotation(span, severity, text, length,
                       blkin_elapsed_ns(span->start_ticks_, blkin_ticks()) - age_ns);
}

/* A log record goes to the log, or by way of a buffer into an event. */
#define RECORD_MAX (32 + SPAN_KEY_MAX + SPAN_TEXT_MAX)

static char *place_for(struct blkin_span *span, size_t size, char *streamed)
{
    return span->state_ == SPAN_STREAMING ? streamed : room(span, size);
}

void blkin_span_tag_string_(struct blkin_span *span, const char *key, size_t key_length,
                            const char *value, size_t value_length)
{
    char streamed[RECORD_MAX];
    char *record, *at;

    key_length = at_most(key_length, SPAN_KEY_MAX);
    value_length = at_most(value_length, SPAN_TEXT_MAX);
    record = at = place_for(span, 9 + key_length + value_length, streamed);
    if (!record)
        return;
    *at++ = 's';
    at = blkin_put_hex8(at, (uint32_t)(key_length << 16 | value_length));
    at = blkin_put_bytes(at, key, key_length);
    at = blkin_put_bytes(at, value, value_length);
    keep(span, record, at, streamed);
}

void blkin_span_tag_number_(struct blkin_span *span, char type, const char *key, size_t key_length,
                            uint64_t bits)
{
    char streamed[RECORD_MAX];
    char *record, *at;

    key_length = at_most(key_length, SPAN_KEY_MAX);
    record = at = place_for(span, 21 + key_length, streamed);
    if (!record)
        return;
    *at++ = type;
    at = blkin_put_hex4(at, (uint16_t)key_length);
    at = blkin_put_hex16(at, bits);
    at = blkin_put_bytes(at, key, key_length);
    keep(span, record, at, streamed);
}

void blkin_span_set_remote_(struct blkin_span *span, const struct blkin_endpoint *remote)
{
    char streamed[RECORD_MAX];
    size_t ip_length, name_length;
    char *record, *at;

    if (!remote)
        return;
    ip_length = at_most(blkin_length_(remote->ip), SPAN_IP_MAX);
    name_length = at_most(blkin_length_(remote->name), SPAN_SERVICE_MAX);
    record = place_for(span, 9 + ip_length + name_length, streamed);
    if (!record)
        return;
    at = record;
    *at++ = 'r';
    at = blkin_put_hex8(
        at, (uint32_t)((uint32_t)(uint16_t)remote->port << 16 | ip_length << 8 | name_length));
    at = blkin_put_bytes(at, remote->ip, ip_length);
    at = blkin_put_bytes(at, remote->name, name_length);
    keep(span, record, at, streamed);
}
