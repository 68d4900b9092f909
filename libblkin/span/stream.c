/*
 * The streaming events.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "stream.h"

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
