/*
 * OTLP traces, read: the fast part.
 *
 * Numbers of fields: opentelemetry/proto/trace/v1/trace.proto, common.proto and resource.proto.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "otlp_decode.h"

#include "otlp_fields.h"

/* OTLP counts from 1 on, and in another order. */
static inline enum span_kind kind_of(uint64_t value)
{
    static const enum span_kind kinds[] = {SPAN_LOCAL,  SPAN_LOCAL,    SPAN_SERVER,
                                           SPAN_CLIENT, SPAN_PRODUCER, SPAN_CONSUMER};

    return value < sizeof(kinds) / sizeof(kinds[0]) ? kinds[value] : SPAN_LOCAL;
}

static bool is_failed(struct text status)
{
    struct pb_reader reader = pb_reader_of(status);
    struct pb_member field;
    uint64_t code = 0;

    while (pb_next(&reader, &field)) {
        if (field.tag == OTLP_STATUS_CODE)
            code = field.value;
    }
    return code == OTLP_STATUS_ERROR;
}

#define PEER_SERVICE        "peer.service"
#define PEER_SERVICE_LENGTH (sizeof(PEER_SERVICE) - 1)

static void take_attribute(struct otlp_span *span, struct text attribute)
{
    if (text_is(otlp_find(attribute, OTLP_ATTRIBUTE_KEY), PEER_SERVICE))
        span->peer_service =
            otlp_find(otlp_find(attribute, OTLP_ATTRIBUTE_VALUE), OTLP_VALUE_STRING);
}

static void take_field(struct otlp_span *span, const struct pb_member *field)
{
    switch (field->tag) {
    case OTLP_SPAN_TRACE_ID:
        span->trace_id_high = field->value == 16 ? pb_id(field->bytes) : 0;
        span->trace_id = field->value == 16 ? pb_id(field->bytes + 8) : 0;
        break;
    case OTLP_SPAN_ID:
        span->id = field->value == 8 ? pb_id(field->bytes) : 0;
        break;
    case OTLP_SPAN_PARENT_ID:
        span->parent_id = field->value == 8 ? pb_id(field->bytes) : 0;
        break;
    case OTLP_SPAN_NAME:
        span->name = pb_text(field);
        break;
    case OTLP_SPAN_KIND:
        span->kind = kind_of(field->value);
        break;
    case OTLP_SPAN_START:
        span->start_ns = field->value <= INT64_MAX ? (int64_t)field->value : 0;
        break;
    case OTLP_SPAN_END:
        span->end_ns = field->value <= INT64_MAX ? (int64_t)field->value : 0;
        break;
    case OTLP_SPAN_ATTRIBUTE:
        take_attribute(span, pb_text(field));
        break;
    case OTLP_SPAN_STATUS:
        span->is_error = is_failed(pb_text(field));
        break;
    default:
        break;
    }
}

#define COMMON_MIN 18 /* what there is to read of any field below */

/* The end of a text or message, if its length is in one byte. */
static inline const unsigned char *end_of_short(const unsigned char *at)
{
    return at[1] < 128 ? at + 2 + at[1] : NULL;
}

static inline int64_t read_time(const unsigned char *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof(value));
    value = le64toh(value);
    return value <= INT64_MAX ? (int64_t)value : 0;
}

/*
 * A field as most are: tag and length are a byte each, and the length is the usual one. Returns
 * where it ends, be that behind the message, or NULL: then it is to be read like any other.
 */
static inline const unsigned char *read_common(struct otlp_span *span, const unsigned char *at)
{
    switch (at[0]) {
    case OTLP_SPAN_ATTRIBUTE:
        /* maybe this key, which is as long, or one that comes after its value */
        if (at[2] != OTLP_ATTRIBUTE_KEY || at[3] == PEER_SERVICE_LENGTH)
            return NULL;
        /* fall through */
    case OTLP_SPAN_EVENT:
        return end_of_short(at);
    case OTLP_SPAN_TRACE_ID:
        span->trace_id_high = pb_id((const char *)at + 2);
        span->trace_id = pb_id((const char *)at + 10);
        return at[1] == 16 ? at + 18 : NULL;
    case OTLP_SPAN_ID:
        span->id = pb_id((const char *)at + 2);
        return at[1] == 8 ? at + 10 : NULL;
    case OTLP_SPAN_PARENT_ID:
        span->parent_id = pb_id((const char *)at + 2);
        return at[1] == 8 ? at + 10 : NULL;
    case OTLP_SPAN_NAME:
        span->name = (struct text){(const char *)at + 2, at[1]};
        return end_of_short(at);
    case OTLP_SPAN_KIND:
        span->kind = kind_of(at[1]);
        return at[1] < 128 ? at + 2 : NULL;
    case OTLP_SPAN_START:
        span->start_ns = read_time(at + 1);
        return at + 9;
    case OTLP_SPAN_END:
        span->end_ns = read_time(at + 1);
        return at + 9;
    case (OTLP_SPAN_FLAGS & 127) | 128:
        return at[1] == OTLP_SPAN_FLAGS >> 7 ? at + 6 : NULL;
    default:
        return NULL;
    }
}

/* Field by field: as one it becomes a loop, which takes longer than all of these. */
static inline void clear_span(struct otlp_span *span)
{
    span->trace_id_high = span->trace_id = span->id = span->parent_id = 0;
    span->start_ns = span->end_ns = 0;
    span->name = span->peer_service = (struct text){"", 0};
    span->kind = SPAN_LOCAL;
    span->is_error = false;
}

/* Up to `readable` there are bytes, behind the message those of the next one. */
static inline bool read_span(struct text message, const unsigned char *readable,
                             struct otlp_span *span)
{
    struct pb_reader reader = pb_reader_of(message);
    const unsigned char *next;
    struct pb_member field;

    clear_span(span);
    span->raw = message;
    do {
        while (reader.at < reader.end && readable - reader.at >= COMMON_MIN &&
               (next = read_common(span, reader.at)) && next <= reader.end)
            reader.at = next;
        if (!pb_next(&reader, &field))
            break;
        take_field(span, &field);
    } while (true);
    if (span->start_ns == 0 || span->end_ns < span->start_ns)
        span->end_ns = span->start_ns;
    return !pb_is_broken(&reader);
}

bool otlp_read_span(struct text message, struct otlp_span *span)
{
    return read_span(message, pb_reader_of(message).end, span);
}

static bool is_valid(const struct otlp_span *span)
{
    return (span->trace_id | span->trace_id_high) && span->id;
}

static struct text service_of(struct text resource)
{
    struct pb_reader reader = pb_reader_of(resource);
    struct pb_member field;

    while (pb_next(&reader, &field)) {
        if (field.tag == OTLP_RESOURCE_ATTRIBUTE &&
            text_is(otlp_find(pb_text(&field), OTLP_ATTRIBUTE_KEY), "service.name"))
            return otlp_find(otlp_find(pb_text(&field), OTLP_ATTRIBUTE_VALUE), OTLP_VALUE_STRING);
    }
    return (struct text){"", 0};
}

struct decoding {
    otlp_span_fn *call;
    void *context;
    struct otlp_origin origin;
    struct otlp_decoded *decoded;
};

static bool read_scope(struct decoding *decoding, struct text message)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;
    struct otlp_span span;

    /* it is the first field, wherever it is written in order */
    decoding->origin.scope = (struct text){"", 0};
    if (message.length && message.data[0] != (char)OTLP_SCOPE_SPANS_SCOPE)
        decoding->origin.scope = otlp_find(message, OTLP_SCOPE_SPANS_SCOPE);
    while (pb_next(&reader, &field)) {
        if (field.tag == OTLP_SCOPE_SPANS_SCOPE) {
            decoding->origin.scope = pb_text(&field);
        } else if (field.tag == OTLP_SCOPE_SPANS_SPAN) {
            if (!read_span(pb_text(&field), reader.end, &span))
                return false;
            decoding->decoded->spans++;
            if (is_valid(&span))
                decoding->call(decoding->context, &decoding->origin, &span);
            else
                decoding->decoded->invalid++;
        }
    }
    return !pb_is_broken(&reader);
}

/* Where each span has one of its own, it is mostly that of the span before. */
static void take_resource(struct otlp_origin *origin, struct text resource)
{
    if (origin->number && text_equal(resource, origin->resource))
        return;
    origin->number++;
    origin->resource = resource;
    origin->service = service_of(resource);
}

static bool read_resource_spans(struct decoding *decoding, struct text message)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;

    take_resource(&decoding->origin, otlp_find(message, OTLP_RESOURCE_SPANS_RESOURCE));
    while (pb_next(&reader, &field)) {
        if (field.tag == OTLP_RESOURCE_SPANS_SCOPE_SPANS && !read_scope(decoding, pb_text(&field)))
            return false;
    }
    return !pb_is_broken(&reader);
}

struct otlp_decoded otlp_decode(struct text request, otlp_span_fn *call, void *context)
{
    struct otlp_decoded decoded = {.is_broken = false};
    struct decoding decoding = {.call = call, .context = context, .decoded = &decoded};
    struct pb_reader reader = pb_reader_of(request);
    struct pb_member field;

    while (pb_next(&reader, &field)) {
        if (field.tag == OTLP_REQUEST_RESOURCE_SPANS &&
            !read_resource_spans(&decoding, pb_text(&field))) {
            decoded.is_broken = true;
            return decoded;
        }
    }
    decoded.is_broken = pb_is_broken(&reader);
    return decoded;
}
