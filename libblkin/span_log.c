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

__attribute__((noinline)) static void stream(struct blkin_span *span, enum blkin_packed_event kind,
                                             uint64_t age_ns, const char *text, size_t length)
{
    const struct blkin_provider *provider = blkin_provider();
    struct blkin_thread *thread;
    char *at = (char *)span->record_;

    if (!blkin_event_enabled(provider, kind))
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
    blkin_record_event(provider, kind, span->record_, (size_t)(at - (char *)span->record_));
}

/* ---- log records: each returns its end ---- */

static inline char *put_annotation(char *at, uint32_t severity, const char *text, size_t length,
                                   uint64_t offset_ns)
{
    *at++ = 'a';
    *at++ = (char)('0' + (severity & 7));
    at = blkin_put_hex16(at, offset_ns << 16 | length);
    return blkin_put_bytes(at, text, length);
}

static inline char *put_string(char *at, const char *key, size_t key_length, const char *value,
                               size_t value_length)
{
    *at++ = 's';
    at = blkin_put_hex8(at, (uint32_t)(key_length << 16 | value_length));
    at = blkin_put_bytes(at, key, key_length);
    return blkin_put_bytes(at, value, value_length);
}

static inline char *put_number(char *at, char type, const char *key, size_t key_length,
                               uint64_t bits)
{
    *at++ = type;
    at = blkin_put_hex4(at, (uint16_t)key_length);
    at = blkin_put_hex16(at, bits);
    return blkin_put_bytes(at, key, key_length);
}

static inline char *put_remote(char *at, const struct blkin_endpoint *remote, size_t ip_length,
                               size_t name_length)
{
    *at++ = 'r';
    at = blkin_put_hex8(
        at, (uint32_t)((uint32_t)(uint16_t)remote->port << 16 | ip_length << 8 | name_length));
    at = blkin_put_bytes(at, remote->ip, ip_length);
    return blkin_put_bytes(at, remote->name, name_length);
}

#define ANNOTATION_SIZE(length)         (18 + (length))
#define STRING_SIZE(key_length, length) (9 + (key_length) + (length))
#define NUMBER_SIZE(key_length)         (21 + (key_length))
#define REMOTE_SIZE(ip_length, length)  (9 + (ip_length) + (length))
#define RECORD_MAX                      STRING_SIZE(SPAN_KEY_MAX, SPAN_TEXT_MAX)

/* ---- the log ---- */

/* Where a log record of this size goes; NULL, counted, if there is no room. */
static inline char *room(struct blkin_span *span, size_t size)
{
    if (__builtin_expect(span->log_length_ + size > BLKIN_SPAN_LOG, 0)) {
        if (span->dropped_ < UINT16_MAX)
            span->dropped_++;
        return NULL;
    }
    return span_log(span) + span->log_length_;
}

static inline void keep(struct blkin_span *span, const char *end)
{
    span->log_length_ = (uint16_t)(end - span_log(span));
}

static inline bool is_streaming(const struct blkin_span *span)
{
    return __builtin_expect(span->state_ == SPAN_STREAMING, 0);
}

/* ---- annotations ---- */

static inline void log_annotation(struct blkin_span *span, uint32_t severity, const char *text,
                                  size_t length, uint64_t now, uint64_t age_ns)
{
    char *at = room(span, ANNOTATION_SIZE(length));

    if (at)
        keep(span, put_annotation(at, severity, text, length,
                                  blkin_elapsed_ns(span->start_ticks_, now) - age_ns));
}

/* What calls others is left to functions of its own: the usual way then saves no registers. */
__attribute__((noinline)) static void annotate_otherwise(struct blkin_span *span, uint32_t severity,
                                                         const char *text, size_t length)
{
    if (is_streaming(span))
        stream(span, BLKIN_EVENT_ANNOTATION + (severity & 7), 0, text, length);
    else
        log_annotation(span, severity, text, length, blkin_monotonic_ns(), 0);
}

void blkin_span_annotate_(struct blkin_span *span, uint32_t severity, const char *text,
                          size_t length)
{
    length = at_most(length, SPAN_TEXT_MAX);
    if (is_streaming(span) || !blkin_use_counter())
        annotate_otherwise(span, severity, text, length);
    else
        log_annotation(span, severity, text, length, blkin_counter(), 0);
}

void blkin_span_annotate_at_(struct blkin_span *span, uint32_t severity, const char *text,
                             size_t length, uint64_t time_ns)
{
    const uint64_t now_ns = blkin_monotonic_ns();
    const uint64_t age_ns = time_ns < now_ns ? now_ns - time_ns : 0;

    length = at_most(length, SPAN_TEXT_MAX);
    if (is_streaming(span))
        stream(span, BLKIN_EVENT_ANNOTATION + (severity & 7), age_ns, text, length);
    else
        log_annotation(span, severity, text, length, blkin_ticks(), age_ns);
}

/* ---- tags ---- */

__attribute__((noinline)) static void stream_string(struct blkin_span *span, const char *key,
                                                    size_t key_length, const char *value,
                                                    size_t value_length)
{
    char record[RECORD_MAX];
    const char *end = put_string(record, key, key_length, value, value_length);

    stream(span, BLKIN_EVENT_TAG, 0, record, (size_t)(end - record));
}

void blkin_span_tag_string_(struct blkin_span *span, const char *key, size_t key_length,
                            const char *value, size_t value_length)
{
    char *at;

    key_length = at_most(key_length, SPAN_KEY_MAX);
    value_length = at_most(value_length, SPAN_TEXT_MAX);
    if (is_streaming(span))
        stream_string(span, key, key_length, value, value_length);
    else if ((at = room(span, STRING_SIZE(key_length, value_length))))
        keep(span, put_string(at, key, key_length, value, value_length));
}

__attribute__((noinline)) static void
stream_number(struct blkin_span *span, char type, const char *key, size_t key_length, uint64_t bits)
{
    char record[RECORD_MAX];
    const char *end = put_number(record, type, key, key_length, bits);

    stream(span, BLKIN_EVENT_TAG, 0, record, (size_t)(end - record));
}

void blkin_span_tag_number_(struct blkin_span *span, char type, const char *key, size_t key_length,
                            uint64_t bits)
{
    char *at;

    key_length = at_most(key_length, SPAN_KEY_MAX);
    if (is_streaming(span))
        stream_number(span, type, key, key_length, bits);
    else if ((at = room(span, NUMBER_SIZE(key_length))))
        keep(span, put_number(at, type, key, key_length, bits));
}

void blkin_span_set_remote_(struct blkin_span *span, const struct blkin_endpoint *remote)
{
    char record[REMOTE_SIZE(SPAN_IP_MAX, SPAN_SERVICE_MAX)];
    size_t ip_length, name_length;
    char *at;

    if (!remote)
        return;
    ip_length = at_most(blkin_length_(remote->ip), SPAN_IP_MAX);
    name_length = at_most(blkin_length_(remote->name), SPAN_SERVICE_MAX);
    if (is_streaming(span)) {
        at = put_remote(record, remote, ip_length, name_length);
        stream(span, BLKIN_EVENT_TAG, 0, record, (size_t)(at - record));
    } else if ((at = room(span, REMOTE_SIZE(ip_length, name_length)))) {
        keep(span, put_remote(at, remote, ip_length, name_length));
    }
}
