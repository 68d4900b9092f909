/*
 * Annotations and tags of a recorded span: into its log, or out as events.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "span.h"

#include "digits.h"
#include "loader.h"
#include "put.h"
#include "sampling.h"
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

/* ---- log records: see events.h. Each returns its end ---- */

/* Without the text. severity is the digit. */
static inline char *put_annotation(char *at, char severity, size_t length, int64_t offset_ns)
{
    *at++ = 'a';
    *at++ = severity;
    return blkin_put_digits16(at, (uint64_t)offset_ns << 16 | length);
}

static inline char *put_string(char *at, const char *key, size_t key_length, const char *value,
                               size_t value_length)
{
    *at++ = 's';
    at = blkin_put_length(at, key_length);
    at = blkin_put_length(at, value_length);
    at = blkin_put_bytes(at, key, key_length);
    return blkin_put_bytes(at, value, value_length);
}

/* Without the key. */
static inline char *put_number(char *at, char type, size_t key_length, uint64_t bits)
{
    *at++ = type;
    at = blkin_put_length(at, key_length);
    return blkin_put_digits16(at, bits);
}

static inline char *put_remote(char *at, const struct blkin_endpoint *remote, size_t ip_length,
                               size_t name_length)
{
    *at++ = 'r';
    at = blkin_put_digits16(at, (uint16_t)remote->port);
    at = blkin_put_length(at, ip_length);
    at = blkin_put_length(at, name_length);
    at = blkin_put_bytes(at, remote->ip, ip_length);
    return blkin_put_bytes(at, remote->name, name_length);
}

#define ANNOTATION_SIZE(length)         (18 + (length))
#define STRING_SIZE(key_length, length) (5 + (key_length) + (length))
#define NUMBER_SIZE(key_length)         (19 + (key_length))
#define REMOTE_SIZE(ip_length, length)  (21 + (ip_length) + (length))
#define RECORD_MAX                      STRING_SIZE(SPAN_KEY_MAX, SPAN_TEXT_MAX)

/* ---- the log ---- */

/* Where a log record of this size goes; NULL, counted, if there is no room. */
static inline char *take_room(struct blkin_span *span, size_t size)
{
    const uint32_t used = span->used_;

    if (__builtin_expect(used + size > SPAN_USED_MAX, 0)) {
        if (span->traits_.dropped < UINT16_MAX)
            span->traits_.dropped++;
        return NULL;
    }
    span->used_ = used + (uint32_t)size;
    return (char *)span->record_ + used;
}

/* The same for the usual way, which leaves what is not usual, counted or not, to others. */
static inline char *take_room_at_once(struct blkin_span *span, size_t size)
{
    const size_t used = span->used_ + size;

    if (__builtin_expect(used > span->limit_, 0))
        return NULL;
    span->used_ = (uint32_t)used;
    return (char *)span->record_ + used - size;
}

static inline bool is_streaming(const struct blkin_span *span)
{
    return __builtin_expect(span->state_ == SPAN_STREAMING, 0);
}

/* ---- annotations ---- */

static inline void log_annotation(struct blkin_span *span, uint32_t severity, const char *text,
                                  size_t length, uint64_t now, uint64_t age_ns)
{
    char *at;

    if (!blkin_is_severe_enough(severity & 7) || !(at = take_room(span, ANNOTATION_SIZE(length))))
        return;
    at = put_annotation(at, (char)('0' + (severity & 7)), length,
                        blkin_offset_ns(span->start_ticks_, now) - (int64_t)age_ns);
    (void)blkin_put_bytes(at, text, length);
}

void blkin_span_annotate_(struct blkin_span *span, uint32_t severity, const char *text,
                          size_t length)
{
    length = at_most(length, SPAN_TEXT_MAX);
    if (is_streaming(span))
        stream(span, BLKIN_EVENT_ANNOTATION + (severity & 7), 0, text, length);
    else
        log_annotation(span, severity, text, length, blkin_ticks(), 0);
}

char *blkin_span_annotation_(struct blkin_span *span, char severity, size_t length)
{
    char *at;

    if (__builtin_expect(!blkin_is_severe_enough((uint32_t)(severity - '0')), 0) ||
        !(at = take_room_at_once(span, ANNOTATION_SIZE(length))))
        return NULL;
    return put_annotation(at, severity, length,
                          blkin_offset_ns(span->start_ticks_, blkin_counter()));
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

__attribute__((noinline)) static void tag_string_otherwise(struct blkin_span *span, const char *key,
                                                           size_t key_length, const char *value,
                                                           size_t value_length)
{
    char *at;

    key_length = at_most(key_length, SPAN_KEY_MAX);
    value_length = at_most(value_length, SPAN_TEXT_MAX);
    if (is_streaming(span))
        stream_string(span, key, key_length, value, value_length);
    else if ((at = take_room(span, STRING_SIZE(key_length, value_length))))
        (void)put_string(at, key, key_length, value, value_length);
}

void blkin_span_tag_string_(struct blkin_span *span, const char *key, size_t key_length,
                            const char *value, size_t value_length)
{
    const bool is_usual = key_length <= SPAN_KEY_MAX && value_length <= SPAN_TEXT_MAX;
    char *at = is_usual ? take_room_at_once(span, STRING_SIZE(key_length, value_length)) : NULL;

    if (at)
        (void)put_string(at, key, key_length, value, value_length);
    else
        tag_string_otherwise(span, key, key_length, value, value_length);
}

char *blkin_span_string_(struct blkin_span *span, uint32_t lengths, size_t size)
{
    char *at = take_room_at_once(span, size);

    if (!at)
        return NULL;
    *at++ = 's';
    memcpy(at, &lengths, sizeof(lengths));
    return at + sizeof(lengths);
}

__attribute__((noinline)) static void
stream_number(struct blkin_span *span, char type, const char *key, size_t key_length, uint64_t bits)
{
    char record[RECORD_MAX];
    const char *end = blkin_put_bytes(put_number(record, type, key_length, bits), key, key_length);

    stream(span, BLKIN_EVENT_TAG, 0, record, (size_t)(end - record));
}

void blkin_span_tag_number_(struct blkin_span *span, char type, const char *key, size_t key_length,
                            uint64_t bits)
{
    char *at;

    key_length = at_most(key_length, SPAN_KEY_MAX);
    if (is_streaming(span))
        stream_number(span, type, key, key_length, bits);
    else if ((at = take_room(span, NUMBER_SIZE(key_length))))
        (void)blkin_put_bytes(put_number(at, type, key_length, bits), key, key_length);
}

char *blkin_span_number_(struct blkin_span *span, uint32_t head, size_t size, uint64_t bits)
{
    char *at = take_room_at_once(span, size);

    if (!at)
        return NULL;
    memcpy(at, &head, sizeof(head)); /* three characters; the digits write over the fourth */
    return blkin_put_digits16(at + 3, bits);
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
    } else if ((at = take_room(span, REMOTE_SIZE(ip_length, name_length)))) {
        (void)put_remote(at, remote, ip_length, name_length);
    }
}
