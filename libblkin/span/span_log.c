/*
 * Annotations, tags and links of a recorded span: puts them into the span's log and, if the span is
 * streamed, records them as streaming events.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "span.h"

#include "libblkin/policy/sampling.h"

#include <errno.h>
#include <stdio.h>

/* ---- streaming events ---- */

void blkin_stream_begin(const struct blkin_span *span, const struct stream_begin *begin)
{
    const struct blkin_provider *provider = blkin_provider();
    const struct blkin_service *own = span_own_service(span_inside_const(span));
    const struct blkin_service *service = own ? own : blkin_default_service();
    struct blkin_thread *thread = blkin_this_thread();
    char payload[sizeof(struct blkin_begin_event) + SPAN_NAME_MAX + 1 + BLKIN_HEAD_SIZE +
                 sizeof(service->text)];
    char *at = payload;

    if (!blkin_event_enabled(provider, BLKIN_EVENT_BEGIN))
        return;
    at = blkin_put_bytes(at,
                         &(struct blkin_begin_event){
                             .trace_id = span->context.trace_id,
                             .parent_id = begin->parent_id,
                             .flags = begin->flags,
                             .kind = begin->kind,
                         },
                         sizeof(struct blkin_begin_event));
    at = blkin_put_bytes(at, begin->name, begin->name_length);
    *at++ = '\0';
    span_put_head(false, at, span, begin->id, begin->time_ns, thread, ++thread->streamed_sequence,
                  0);
    at = blkin_put_bytes(at + BLKIN_HEAD_SIZE, service->text, service->length);
    blkin_record_event(provider, BLKIN_EVENT_BEGIN, payload, (size_t)(at - payload));
}

void blkin_stream(const struct blkin_span *span, uint64_t id, enum blkin_packed_event kind,
                  uint64_t time_ns, const char *text, size_t length)
{
    const struct blkin_provider *provider = blkin_provider();
    struct blkin_thread *thread = blkin_this_thread();
    char payload[sizeof(struct blkin_detail_event) + BLKIN_DETAIL_HEAD_SIZE + SPAN_RECORD_MAX + 2];
    char *at = payload;

    if (!blkin_event_enabled(provider, kind))
        return;
    at = blkin_put_bytes(at, &(struct blkin_detail_event){.trace_id = span->context.trace_id},
                         sizeof(struct blkin_detail_event));
    at = blkin_put_word(span_put_thread(at, thread), id);
    at = blkin_put_word(at, id >> 48 | (uint64_t)++thread->streamed_sequence << 16);
    at = blkin_put_word(at, time_ns);
    if (kind >= BLKIN_EVENT_ANNOTATION)
        *at++ = '\0';
    at = blkin_put_bytes(at, text, length);
    *at++ = '\0';
    blkin_record_event(provider, kind, payload, (size_t)(at - payload));
}

/* ---- log records: see doc/format.md. Each function returns the record's end ---- */

static HOT char *put_annotation(char *at, uint32_t severity, const char *text, size_t length,
                                uint64_t offset_ns)
{
    *at++ = (char)('0' + (severity & 7));
    at = blkin_put_length(at, length);
    at = blkin_put_word(at, offset_ns);
    return blkin_put_bytes(at, text, length);
}

static HOT char *put_string(char *at, const char *key, size_t key_length, const char *value,
                            size_t value_length)
{
    *at++ = 's';
    at = blkin_put_length(at, key_length);
    at = blkin_put_length(at, value_length);
    at = blkin_put_bytes(at, key, key_length);
    return blkin_put_bytes(at, value, value_length);
}

static HOT char *put_number(char *at, char type, const char *key, size_t key_length, uint64_t bits)
{
    *at++ = type;
    at = blkin_put_length(at, key_length);
    at = blkin_put_long(at, bits);
    return blkin_put_bytes(at, key, key_length);
}

static char *put_endpoint(char *at, char type, const char *name, const char *ip, uint16_t port)
{
    const size_t ip_length = blkin_cut(ip, blkin_length_(ip), SPAN_IP_MAX);
    const size_t name_length = blkin_cut(name, blkin_length_(name), SPAN_SERVICE_MAX);

    *at++ = type;
    at = blkin_put_digits16(at, port);
    at = blkin_put_length(at, ip_length);
    at = blkin_put_length(at, name_length);
    at = blkin_put_bytes(at, ip, ip_length);
    return blkin_put_bytes(at, name, name_length);
}

#define ANNOTATION_SIZE(length)         (11 + (length))
#define STRING_SIZE(key_length, length) (5 + (key_length) + (length))
#define NUMBER_SIZE(key_length)         (14 + (key_length))
#define NAME_SIZE                       (3 + SPAN_NAME_MAX)
#define ENDPOINT_SIZE                   (21 + SPAN_IP_MAX + SPAN_SERVICE_MAX)
#define START_SIZE                      17
#define BASE_SIZE                       9U
#define LINK_SIZE                       49

_Static_assert(ANNOTATION_SIZE(SPAN_TEXT_MAX) <= SPAN_RECORD_MAX &&
                   NUMBER_SIZE(SPAN_KEY_MAX) <= SPAN_RECORD_MAX &&
                   ENDPOINT_SIZE <= SPAN_RECORD_MAX && NAME_SIZE <= SPAN_RECORD_MAX,
               "SPAN_RECORD_MAX is less than the longest record");

/* ---- the log ---- */

/* Extends the log by a record of this size. Returns the record's address. */
static inline char *take_room(struct span_fields *inside, size_t size)
{
    char *at = span_at(inside, inside->used);

    inside->used = (uint16_t)(inside->used + size);
    return at;
}

/* Extends the log by a record of this size. Returns the record's address. If there is no room,
 * returns NULL, and counts the record as dropped. */
static char *find_room(struct blkin_span *span, size_t size)
{
    struct span_fields *inside = span_inside(span);

    if (inside->used + size <= span_room(inside))
        return take_room(inside, size);
    span_drop_record(span, !(inside->failed & SPAN_LOST_STEP));
    return NULL;
}

/* Adds a record to the log and, if the span is streamed, records it as an event. */
static void add_tag(struct blkin_span *span, const char *record, const char *end)
{
    struct span_fields *inside = span_inside(span);
    const size_t size = (size_t)(end - record);
    char *at;

    if (blkin_is_misuse(span, CHECK_USE))
        return;
    at = find_room(span, size);
    if (at)
        (void)blkin_put_bytes(at, record, size);
    if (span_is_streamed(span) && !(inside->failed & SPAN_LOST_STEP))
        blkin_stream(span, blkin_open_id(span), BLKIN_EVENT_TAG, blkin_clock_now(), record, size);
}

/* ---- annotations ---- */

__attribute__((noinline)) void blkin_span_annotate_at_(struct blkin_span *span, uint32_t severity,
                                                       const char *text, size_t length,
                                                       uint64_t time_ns)
{
    struct span_fields *inside = span_inside(span);
    const uint64_t now_ns = blkin_clock_now();
    char *at = NULL;

    if (blkin_is_misuse(span, CHECK_USE))
        return;
    if (time_ns > now_ns)
        time_ns = now_ns;
    length = blkin_cut(text, length, SPAN_TEXT_MAX);
    if (blkin_is_severe_enough(severity & 7))
        at = find_room(span, ANNOTATION_SIZE(length));
    if (at)
        (void)put_annotation(at, severity, text, length, time_ns - inside->base_ns);
    if (span_is_streamed(span) && !(inside->failed & SPAN_LOST_STEP))
        blkin_stream(span, blkin_open_id(span), BLKIN_EVENT_ANNOTATION + (severity & 7), time_ns,
                     text, length);
}

void blkin_span_annotate_(struct blkin_span *span, uint32_t severity, const char *text,
                          size_t length)
{
    struct span_fields *inside = span_inside(span);
    uint64_t now_ns;

    if (__builtin_expect(!blkin_is_severe_enough(severity & 7), 0) && !span_is_streamed(span))
        return;
    if (length <= SPAN_TEXT_MAX && span_has_room(inside, ANNOTATION_SIZE(length)) &&
        blkin_clock_try(blkin_counter(), &now_ns))
        (void)put_annotation(take_room(inside, ANNOTATION_SIZE(length)), severity, text, length,
                             now_ns - inside->base_ns);
    else
        blkin_span_annotate_at_(span, severity, text, length, UINT64_MAX);
}

void blkin_span_vannotatef(struct blkin_span *span, const char *format, va_list arguments)
{
    char text[SPAN_TEXT_MAX + 2]; /* one byte more, so that blkin_cut() finds the character's end */
    const int saved_errno = errno;
    int length;

    if (!blkin_span_is_recorded(span))
        return;
    length = vsnprintf(text, sizeof(text), format, arguments);
    if (length >= 0)
        blkin_span_annotate_(span, BLKIN_INFO, text,
                             (size_t)length < sizeof(text) ? (size_t)length : sizeof(text) - 1);
    errno = saved_errno;
}

void blkin_span_annotatef(struct blkin_span *span, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    blkin_span_vannotatef(span, format, arguments);
    va_end(arguments);
}

/* ---- tags and links ---- */

static inline bool is_error(const char *key, size_t length)
{
    return __builtin_expect(length == 5, 0) && memcmp(key, "error", 5) == 0;
}

/* Marks the innermost open step, all steps around it, and the span as failed. */
static void mark_error(struct span_fields *inside)
{
    if (!(inside->failed & SPAN_LOST_STEP))
        inside->failed |= (uint16_t)((2U << inside->depth) - 1);
}

__attribute__((noinline)) static void tag_string_slow(struct blkin_span *span, const char *key,
                                                      size_t key_length, const char *value,
                                                      size_t value_length)
{
    char record[SPAN_RECORD_MAX];

    key_length = blkin_cut(key, key_length, SPAN_KEY_MAX);
    value_length = blkin_cut(value, value_length, SPAN_TEXT_MAX);
    add_tag(span, record, put_string(record, key, key_length, value, value_length));
}

void blkin_span_tag_string_(struct blkin_span *span, const char *key, size_t key_length,
                            const char *value, size_t value_length)
{
    struct span_fields *inside = span_inside(span);
    const size_t size = STRING_SIZE(key_length, value_length);

    if (is_error(key, key_length))
        mark_error(inside);
    if (key_length <= SPAN_KEY_MAX && value_length <= SPAN_TEXT_MAX && span_has_room(inside, size))
        (void)put_string(take_room(inside, size), key, key_length, value, value_length);
    else
        tag_string_slow(span, key, key_length, value, value_length);
}

/* The tag contains the reason, for readers and for the alarm at the end of the span. */
void blkin_span_keep_(struct blkin_span *span, const char *why, size_t length)
{
    struct span_fields *inside = span_inside(span);

    if (inside->failed & SPAN_KEEP)
        return;
    inside->failed |= SPAN_KEEP;
    blkin_span_tag_string_(span, SPAN_KEEP_KEY, sizeof(SPAN_KEEP_KEY) - 1, why, length);
}

__attribute__((noinline)) static void tag_number_slow(struct blkin_span *span, char type,
                                                      const char *key, size_t key_length,
                                                      uint64_t bits)
{
    char record[SPAN_RECORD_MAX];

    key_length = blkin_cut(key, key_length, SPAN_KEY_MAX);
    add_tag(span, record, put_number(record, type, key, key_length, bits));
}

static HOT void tag_number(struct blkin_span *span, char type, const char *key, size_t key_length,
                           uint64_t bits)
{
    struct span_fields *inside = span_inside(span);
    const size_t size = NUMBER_SIZE(key_length);

    if (key_length <= SPAN_KEY_MAX && span_has_room(inside, size))
        (void)put_number(take_room(inside, size), type, key, key_length, bits);
    else
        tag_number_slow(span, type, key, key_length, bits);
}

void blkin_span_tag_int64_(struct blkin_span *span, const char *key, size_t key_length,
                           int64_t value)
{
    tag_number(span, 'I', key, key_length, (uint64_t)value);
}

void blkin_span_tag_uint64_(struct blkin_span *span, const char *key, size_t key_length,
                            uint64_t value)
{
    tag_number(span, 'U', key, key_length, value);
}

void blkin_span_tag_double_(struct blkin_span *span, const char *key, size_t key_length,
                            double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    tag_number(span, 'D', key, key_length, bits);
}

void blkin_span_tag_bool_(struct blkin_span *span, const char *key, size_t key_length, int value)
{
    tag_number(span, 'B', key, key_length, value != 0);
}

void blkin_span_link_(struct blkin_span *span, const struct blkin_context *context)
{
    char record[LINK_SIZE];
    char *at = record;

    if (!context || !blkin_context_has_ids(context))
        return;
    *at++ = 'l';
    at = blkin_put_digits16(at, context->trace_id_high);
    at = blkin_put_digits16(at, context->trace_id);
    add_tag(span, record, blkin_put_digits16(at, context->span_id));
}

void blkin_stream_dropped(const struct blkin_span *span, uint64_t end_ns)
{
    static const char key[] = "blkin.dropped";
    const uint16_t count = span_rest(span_inside_const(span))->unstreamed;
    char record[NUMBER_SIZE(sizeof(key) - 1)];

    if (count) {
        (void)put_number(record, 'U', key, sizeof(key) - 1, count);
        blkin_stream(span, span->context.span_id, BLKIN_EVENT_TAG, end_ns, record, sizeof(record));
    }
}

/* ---- name, service, remote side and start ---- */

/* Streams a change that the caller has made. */
static void stream_change(const struct blkin_span *span, const char *record, const char *end)
{
    if (span_is_streamed(span))
        blkin_stream(span, span->context.span_id, BLKIN_EVENT_TAG, blkin_clock_now(), record,
                     (size_t)(end - record));
}

/* Moves the bytes from offset `from` to the end of the log by `by` bytes. */
static void move_log(struct span_fields *inside, size_t from, ptrdiff_t by)
{
    char *const at = span_at(inside, from);

    span_rest(inside)->walk_at = 0;
    memmove(at + by, at, inside->used - from);
    inside->used = (uint16_t)(inside->used + by);
}

/* If the log leaves too little room, the name is cut. */
void blkin_span_set_name_(struct blkin_span *span, const char *name, size_t length)
{
    struct span_fields *inside = span_inside(span);
    const size_t old = inside->name_length;
    const size_t end = span_room_of_log(inside);
    const size_t room = inside->used < end ? end - inside->used + old : old;
    char record[NAME_SIZE];
    char *at = record;

    if (blkin_is_misuse(span, CHECK_USE))
        return;
    length = blkin_cut(name, length, room < SPAN_NAME_MAX ? room : SPAN_NAME_MAX);
    move_log(inside, offsetof(struct span_fields, name) + old, (ptrdiff_t)length - (ptrdiff_t)old);
    *blkin_put_bytes(inside->name, name, length) = '\0';
    inside->name_length = (uint8_t)length;
    *at++ = 'n';
    at = blkin_put_length(at, length);
    stream_change(span, record, blkin_put_bytes(at, name, length));
}

void blkin_span_set_remote_(struct blkin_span *span, const char *name, const char *ip,
                            uint16_t port)
{
    char record[ENDPOINT_SIZE];

    add_tag(span, record, put_endpoint(record, 'r', name, ip, port));
}

/* Takes room before `end`; a negative size frees room. Returns false if there is too little room.
 */
static bool take_room_before_end(struct blkin_span *span, ptrdiff_t size)
{
    struct span_fields *inside = span_inside(span);

    if (inside->used + size > (ptrdiff_t)span_room_of_log(inside))
        return false;
    inside->end = (uint16_t)(inside->end - size);
    inside->limit = (int16_t)(inside->limit - size);
    return true;
}

static size_t service_size(const struct blkin_service *service)
{
    return (offsetof(struct blkin_service, text) + service->length + SERVICE_ALIGN - 1) &
           ~(size_t)(SERVICE_ALIGN - 1);
}

static void put_own_service(struct blkin_span *span, const char *name, const char *ip,
                            uint16_t port)
{
    struct span_fields *inside = span_inside(span);
    struct blkin_service own = {.length = 0};

    blkin_service_prepare(&own, name, ip, port);
    if (!take_room_before_end(span, (ptrdiff_t)service_size(&own))) {
        span_drop_record(span, true);
        return;
    }
    memcpy(span_at(inside, inside->end), &own, service_size(&own));
    inside->failed |= SPAN_OWN_SERVICE;
}

static void stream_service(const struct blkin_span *span, const char *name, const char *ip,
                           uint16_t port)
{
    char record[ENDPOINT_SIZE];
    const char *end = put_endpoint(record, 'e', name, ip, port);

    stream_change(span, record, end);
    for (unsigned depth = 1; span_is_streamed(span) && depth <= span_inside_const(span)->depth;
         depth++)
        blkin_stream(span, blkin_id_at(span, depth), BLKIN_EVENT_TAG, blkin_clock_now(), record,
                     (size_t)(end - record));
}

void blkin_span_set_service_(struct blkin_span *span, const char *name, const char *ip,
                             uint16_t port)
{
    struct span_fields *inside = span_inside(span);
    const struct blkin_service *of_process = blkin_default_service();
    const struct blkin_service *own = span_own_service(inside);
    char text[SPAN_IP_MAX + 1];

    if (blkin_is_misuse(span, CHECK_USE))
        return;
    if (own)
        (void)take_room_before_end(span, -(ptrdiff_t)service_size(own));
    inside->failed &= (uint16_t)~SPAN_OWN_SERVICE;
    if (name) {
        put_own_service(span, name, ip, port);
        stream_service(span, name, ip, port);
        return;
    }
    (void)blkin_put_string(text, of_process->text, (size_t)of_process->name - 1 - BLKIN_TAIL_SIZE);
    stream_service(span, blkin_service_name(of_process), text, of_process->port);
}

/* Changes the start. If the log is not empty, its times stay relative to base_ns, and its first
 * record becomes the difference. If that record has no room, counts a dropped record, and returns
 * false: the start stays. */
static bool move_start(struct blkin_span *span, uint64_t time_ns)
{
    struct span_fields *inside = span_inside(span);
    const size_t log = span_log_at(inside);

    if (inside->used == log) {
        inside->base_ns = time_ns;
        return true;
    }
    if (!(span->state_ & SPAN_MOVED)) {
        if (inside->used + BASE_SIZE > span_room_of_log(inside)) {
            span_drop_record(span, false);
            return false;
        }
        move_log(inside, log, BASE_SIZE);
        *span_at(inside, log) = 'T';
        __atomic_store_n(&span->state_, span->state_ | SPAN_MOVED, __ATOMIC_RELAXED);
    }
    (void)blkin_put_word(span_at(inside, log) + 1, inside->base_ns - time_ns);
    return true;
}

void blkin_span_set_start_(struct blkin_span *span, uint64_t time_ns)
{
    const uint64_t start_ns = span_start_ns(span), by_ns = start_ns - time_ns;
    char record[START_SIZE] = {'t'};

    if (!blkin_is_misuse(span, CHECK_USE) &&
        (time_ns <= start_ns || time_ns <= blkin_clock_now()) && move_start(span, time_ns) &&
        span_is_streamed(span))
        stream_change(span, record, blkin_put_digits16(record + 1, by_ns));
}
