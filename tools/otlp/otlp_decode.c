/*
 * Reads requests, and those fields of their spans that all callers need.
 *
 * Numbers of fields: opentelemetry/proto/trace/v1/trace.proto, common.proto and resource.proto.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "otlp_decode.h"

/* OTLP's kinds begin with 1, and their order is not that of enum span_kind. */
static inline enum span_kind kind_of(uint64_t value)
{
    static const enum span_kind kinds[] = {SPAN_LOCAL,  SPAN_LOCAL,    SPAN_SERVER,
                                           SPAN_CLIENT, SPAN_PRODUCER, SPAN_CONSUMER};

    return value < sizeof(kinds) / sizeof(kinds[0]) ? kinds[value] : SPAN_LOCAL;
}

#define PEER_KEY        "peer.service"
#define PEER_KEY_LENGTH (sizeof(PEER_KEY) - 1)

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
        if (text_is(otlp_find(pb_text(field), OTLP_ATTRIBUTE_KEY), PEER_KEY))
            span->peer_service =
                otlp_find(otlp_find(pb_text(field), OTLP_ATTRIBUTE_VALUE), OTLP_VALUE_STRING);
        break;
    case OTLP_SPAN_STATUS:
        span->is_error = otlp_status_code(pb_text(field)) == OTLP_STATUS_ERROR;
        break;
    default:
        break;
    }
}

#define COMMON_MIN 18 /* readable bytes for any field below */

/* Returns the end of a text or message. NULL: the length has more than one byte. */
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
 * Reads a field whose tag and length have one byte each, and whose length is the usual one. Returns
 * the end of the field, which may be past the end of the message. Returns NULL for other fields.
 */
static inline const unsigned char *read_common(struct otlp_span *span, const unsigned char *at)
{
    switch (at[0]) {
    case OTLP_SPAN_ATTRIBUTE:
        /* the attribute may be peer.service, or its value may precede its key */
        if (at[2] != OTLP_ATTRIBUTE_KEY || at[3] == PEER_KEY_LENGTH)
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

/* readable: the end of the readable bytes, at or after the end of the message. */
static inline bool read_span(struct text message, const unsigned char *readable,
                             struct otlp_span *span)
{
    struct pb_reader reader = pb_reader_of(message);
    const unsigned char *next;
    struct pb_member field;

    /* one assignment of the whole struct would make the loop slower */
    span->trace_id_high = span->trace_id = span->id = span->parent_id = 0;
    span->start_ns = span->end_ns = 0;
    span->name = span->peer_service = (struct text){"", 0};
    span->kind = SPAN_LOCAL;
    span->is_error = false;
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

/* ---- a request ------------------------------------------------------------------------------- */

/* Decodes the spans of a ScopeSpans. decode_spans(), decode_scopes() and decode_resources()
 * subtract the number of fields that they read from *most. The functions return false if a message
 * is broken. */
static bool decode_spans(struct otlp_decoding *decoding, uint64_t *most, otlp_span_fn *call,
                         void *context)
{
    struct pb_reader reader = decoding->scope_spans;
    struct pb_member field;
    struct otlp_span span;

    for (; *most && pb_next(&reader, &field); --*most) {
        if (field.tag == OTLP_SCOPE_SPANS_SCOPE) {
            decoding->origin.scope = pb_text(&field);
            decoding->origin.scope_number++;
        } else if (field.tag == OTLP_SCOPE_SPANS_SPAN) {
            if (!read_span(pb_text(&field), reader.end, &span))
                return false;
            decoding->decoded.spans++;
            if ((span.trace_id | span.trace_id_high) && span.id)
                call(context, &decoding->origin, &span);
            else
                decoding->decoded.invalid++;
        }
    }
    decoding->scope_spans = reader;
    return !pb_is_broken(&reader);
}

/* Finds the last field of this tag, and the last schema URL. */
static struct text find_with_schema(struct text message, enum otlp_field tag, struct text *schema)
{
    struct pb_reader reader = pb_reader_of(message);
    struct text found = {"", 0};
    struct pb_member field;

    *schema = found;
    while (pb_next(&reader, &field)) {
        if (field.tag == (uint32_t)tag)
            found = pb_text(&field);
        else if (field.tag == OTLP_SCOPE_SPANS_SCHEMA) /* the same tag as in ResourceSpans */
            *schema = pb_text(&field);
    }
    return found;
}

/* Decodes the next ScopeSpans of a ResourceSpans. */
static bool decode_scopes(struct otlp_decoding *decoding, uint64_t *most)
{
    struct pb_member field;

    for (; *most && pb_next(&decoding->resource_spans, &field); --*most) {
        if (field.tag == OTLP_RESOURCE_SPANS_SCOPE_SPANS) {
            decoding->scope_spans = pb_reader_of(pb_text(&field));
            decoding->origin.scope_number++;
            decoding->origin.scope = find_with_schema(pb_text(&field), OTLP_SCOPE_SPANS_SCOPE,
                                                      &decoding->origin.scope_schema);
            break;
        }
    }
    return !pb_is_broken(&decoding->resource_spans);
}

/* Sets the resource of the next spans. Most resources of a request are equal to the one before. */
static void take_resource(struct otlp_origin *origin, struct text resource, struct text schema)
{
    if (origin->number && text_equal(resource, origin->resource) &&
        text_equal(schema, origin->schema))
        return;
    origin->number++;
    origin->schema = schema;
    origin->resource = resource;
    origin->service =
        otlp_find(otlp_attribute(resource, OTLP_RESOURCE_ATTRIBUTE, text_of("service.name")),
                  OTLP_VALUE_STRING);
}

/* Decodes the next ResourceSpans. */
static bool decode_resources(struct otlp_decoding *decoding, uint64_t *most)
{
    struct text message, resource, schema;
    struct pb_member field;

    for (; *most && pb_next(&decoding->request, &field); --*most) {
        if (field.tag != OTLP_REQUEST_RESOURCE_SPANS)
            continue;
        message = pb_text(&field);
        decoding->resource_spans = pb_reader_of(message);
        resource = find_with_schema(message, OTLP_RESOURCE_SPANS_RESOURCE, &schema);
        take_resource(&decoding->origin, resource, schema);
        break;
    }
    return !pb_is_broken(&decoding->request);
}

static bool has_more(const struct pb_reader *reader)
{
    return reader->at != reader->end;
}

void otlp_decode_begin(struct otlp_decoding *decoding, struct text request)
{
    const struct pb_reader none = pb_reader_of((struct text){"", 0});

    *decoding = (struct otlp_decoding){
        .request = pb_reader_of(request), .resource_spans = none, .scope_spans = none};
}

bool otlp_decode_some(struct otlp_decoding *decoding, uint64_t most, otlp_span_fn *call,
                      void *context)
{
    bool is_intact = true;

    while (most && is_intact) {
        if (has_more(&decoding->scope_spans))
            is_intact = decode_spans(decoding, &most, call, context);
        else if (has_more(&decoding->resource_spans))
            is_intact = decode_scopes(decoding, &most);
        else if (has_more(&decoding->request))
            is_intact = decode_resources(decoding, &most);
        else
            return false;
    }
    decoding->decoded.is_broken = !is_intact;
    return is_intact;
}

struct otlp_decoded otlp_decode(struct text request, otlp_span_fn *call, void *context)
{
    struct otlp_decoding decoding;

    otlp_decode_begin(&decoding, request);
    (void)otlp_decode_some(&decoding, UINT64_MAX, call, context);
    return decoding.decoded;
}
