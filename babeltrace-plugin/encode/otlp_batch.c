/*
 * Frames a run of units (encoder.h) as an OTLP request, reads ids from units, makes the head of
 * each group, and reads the collector's answers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "otlp_parts.h"

#include "babeltrace-plugin/base/array.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static bool otlp_begins_group(const char *unit)
{
    return *unit == OTLP_RESOURCE_SPANS;
}

/* Skips a field's length, of one or two bytes, and its content. */
static char *otlp_skip(char *at)
{
    const unsigned low = (unsigned char)at[0], high = (unsigned char)at[1];

    return low < 128 ? at + 1 + low : at + 2 + (low - 128 + (high << 7));
}

/* Returns the first ScopeSpans of a ResourceSpans, or the first span of a ScopeSpans. `at` is
 * at the message's tag. Skips the resource or scope and the schema URL. */
static char *otlp_first_in(char *at)
{
    at += 1 + PB_PADDED;
    while (*at != OTLP_SCOPE_SPANS) /* spans in a ScopeSpans have the same tag */
        at = otlp_skip(at + 1);
    return at;
}

/* Returns the ScopeSpans of a unit that begins a group. */
static char *otlp_scope_spans_of(char *unit)
{
    return otlp_first_in(unit);
}

size_t otlp_head_length(const char *unit)
{
    /* the cast drops const, but nothing writes through `at` */
    char *const at = (char *)(uintptr_t)unit;

    return otlp_begins_group(unit) ? (size_t)(otlp_first_in(otlp_scope_spans_of(at)) - at) : 0;
}

static void otlp_end_group(char *unit, const char *end)
{
    char *const spans = otlp_scope_spans_of(unit) + 1;

    pb_put_padded(unit + 1, (uint32_t)(end - (unit + 1 + PB_PADDED)), PB_PADDED);
    pb_put_padded(spans, (uint32_t)(end - (spans + PB_PADDED)), PB_PADDED);
}

/* If the unit has no head, copies the head of its group before the unit. The copy overwrites
 * earlier bytes of the group. */
static void otlp_begin_group(char *data, uint32_t *starts, uint32_t unit)
{
    uint32_t first = unit;
    size_t length;

    while (!otlp_begins_group(data + starts[first]))
        first--;
    if (first == unit)
        return;
    length = otlp_head_length(data + starts[first]);
    memmove(data + starts[unit] - length, data + starts[first], length);
    starts[unit] -= (uint32_t)length;
}

void otlp_frame(char *data, uint32_t *starts, uint32_t first, uint32_t end, size_t length)
{
    uint32_t group = first;

    otlp_begin_group(data, starts, first);
    for (uint32_t i = first + 1; i < end; i++) {
        if (!otlp_begins_group(data + starts[i]))
            continue;
        otlp_end_group(data + starts[group], data + starts[i]);
        group = i;
    }
    otlp_end_group(data + starts[group], data + length);
}

/* The ids are the first fields of a span. */
static const char *otlp_ids_of(struct text unit)
{
    const char *const at = unit.data + otlp_head_length(unit.data);

    return at + 1 + (at[2] & 0x80 ? PB_PADDED : OTLP_SPAN_LENGTH) + 2;
}

void otlp_trace_of(struct text unit, uint64_t id[2])
{
    memcpy(id, otlp_ids_of(unit), 16);
    id[0] = be64toh(id[0]);
    id[1] = be64toh(id[1]);
}

void otlp_describe(struct text unit, char *line, size_t size)
{
    const char *const at = otlp_ids_of(unit);
    uint64_t ids[3];
    char digits[3 * 16];

    memcpy(ids, at, 16);
    memcpy(ids + 2, at + 16 + 2, 8);
    for (int i = 0; i < 3; i++)
        (void)json_put_hex(digits + 16 * i, be64toh(ids[i]));
    snprintf(line, size, "trace %.32s, span %.16s", digits, digits + 32);
}

/* ---- the head of a group of spans: their resource and scope ---------------------------------- */

#define RESOURCE_SPANS_RESOURCE PB_BYTES(1) /* of ResourceSpans */
#define RESOURCE_ATTRIBUTE      PB_BYTES(1)
#define SCOPE                   PB_BYTES(1) /* of ScopeSpans */
#define VALUE_ARRAY             PB_BYTES(5)

/* Writes the attribute host.ip, an array of one text. */
static char *otlp_write_host_ip(char *begin, struct text address, bool *cut)
{
    char *const at = otlp_begin_single(begin, RESOURCE_ATTRIBUTE, text_of("host.ip"));
    char *end;

    at[0] = OTLP_VALUE;
    at[2] = VALUE_ARRAY;
    at[4] = PB_BYTES(1);
    at[6] = OTLP_VALUE_TEXT;
    end = pb_put_text(at + 7, address, LIMIT_NAME, cut);
    end = pb_end(at + 5, end);
    end = pb_end(at + 3, end);
    end = pb_end(at + 1, end);
    return pb_end(begin + 1, end);
}

static char *otlp_write_resource_text(char *begin, const char *key, struct text value, bool *cut)
{
    char *at;

    if (!value.length)
        return begin;
    at = otlp_begin_single(begin, RESOURCE_ATTRIBUTE, text_of(key));
    return pb_end(begin + 1, otlp_put_text_value(at, value, LIMIT_NAME, cut));
}

static char *otlp_write_resource(char *at, const struct resource *resource, bool *cut)
{
    char *const length = at + 1;

    *at = RESOURCE_SPANS_RESOURCE;
    at += 2;
    at = otlp_write_resource_text(at, "service.name", resource->service, cut);
    at = otlp_write_resource_text(at, "service.version", resource->version, cut);
    at = otlp_write_resource_text(at, "host.name", resource->host, cut);
    if (resource->ip.length)
        at = otlp_write_host_ip(at, resource->ip, cut);
    return pb_end(length, at);
}

/* Writes the resource and scope of a foreign span unchanged. */
static char *otlp_write_foreign_head(char *at, const struct resource *resource)
{
    *at = OTLP_RESOURCE_SPANS;
    at = text_copy(at + 1 + PB_PADDED, resource->whole);
    *at = OTLP_SCOPE_SPANS;
    return text_copy(at + 1 + PB_PADDED, resource->scope);
}

/* Writes the head of own spans, whose scope is this program. */
static char *otlp_write_own_head(char *at, const struct resource *resource, bool *cut)
{
    static const char name[] = "blkin", version[] = BLKIN_RELEASE;
    char *length;

    *at = OTLP_RESOURCE_SPANS;
    at = otlp_write_resource(at + 1 + PB_PADDED, resource, cut);
    *at = OTLP_SCOPE_SPANS;
    at += 1 + PB_PADDED;
    *at = SCOPE;
    length = at + 1;
    at = PB_PUT_LITERAL(at + 2, PB_BYTES(1), name);
    at = PB_PUT_LITERAL(at, PB_BYTES(2), version);
    return pb_end(length, at);
}

size_t otlp_head_size_limit(const struct resource *resource)
{
    return 512 + resource->whole.length + resource->scope.length +
           PB_TEXT_MAX(text_cut(resource->service, LIMIT_NAME).length) +
           PB_TEXT_MAX(text_cut(resource->version, LIMIT_NAME).length) +
           PB_TEXT_MAX(text_cut(resource->host, LIMIT_NAME).length);
}

bool otlp_make_head(struct head *head, const struct resource *resource)
{
    const size_t needed = otlp_head_size_limit(resource) + resource->service.length +
                          resource->version.length + resource->host.length + resource->ip.length +
                          resource->whole.length + resource->scope.length;
    char *at;

    if (!ARRAY_FITS(head->data, head->room, needed))
        return false;
    head->cut = false;
    at = resource->message ? otlp_write_foreign_head(head->data, resource)
                           : otlp_write_own_head(head->data, resource, &head->cut);
    head->length = (size_t)(at - head->data);
    head->of.message = resource->message; /* non-NULL: the resource is foreign */
    head->of.whole = text_copy_to(&at, resource->whole);
    head->of.scope = text_copy_to(&at, resource->scope);
    head->of.service = text_copy_to(&at, resource->service);
    head->of.version = text_copy_to(&at, resource->version);
    head->of.host = text_copy_to(&at, resource->host);
    head->of.ip = text_copy_to(&at, resource->ip);
    return true;
}

/* ---- a collector's answer: a response, a refusal, or an answer of another protocol ----------- */

/* Returns the text or message with this number; empty if there is none. Sets *value, if not NULL,
 * to the number in field 1. */
static struct text otlp_field_of(struct text message, uint32_t number, uint64_t *value)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;
    struct text found = {NULL, 0};

    reader.is_cut = true; /* only the beginning of an answer is stored */
    while (pb_next(&reader, &field)) {
        if (field.tag == PB_TAG(number, PB_TYPE_BYTES))
            found = pb_text(&field);
        else if (value && field.tag == PB_TAG(1, PB_TYPE_VARINT))
            *value = field.value;
    }
    return found;
}

/* Protobuf writes a 64-bit number as a string in JSON; others write a number. */
static void otlp_rejected_in_json(struct text answer, struct rejection *rejection)
{
    json_t *json = json_loadb(answer.data, answer.length, 0, NULL);
    const json_t *partial = json_object_get(json, "partialSuccess");
    const json_t *spans = json_object_get(partial, "rejectedSpans");
    const char *why = json_string_value(json_object_get(partial, "errorMessage"));

    rejection->spans = json_is_string(spans) ? strtoull(json_string_value(spans), NULL, 10)
                                             : (uint64_t)json_integer_value(spans);
    if (why) {
        (void)snprintf(rejection->copy, sizeof(rejection->copy), "%s", why);
        rejection->why = text_of(rejection->copy);
    }
    json_decref(json);
}

/* Reads ExportTraceServiceResponse: partial_success (1) with rejected_spans (1) and error_message
 * (2). */
void otlp_rejected(struct text answer, struct rejection *rejection)
{
    if (protocol_first_byte(answer) == '{')
        otlp_rejected_in_json(answer, rejection);
    else
        rejection->why = otlp_field_of(otlp_field_of(answer, 1, NULL), 2, &rejection->spans);
    if (rejection->spans > INT64_MAX) /* negative in the message */
        rejection->spans = 0;
}

static bool otlp_is_message(struct text body)
{
    struct pb_reader reader = pb_reader_of(body);
    struct pb_member field;

    reader.is_cut = true;
    while (pb_next(&reader, &field)) {
    }
    return !pb_is_broken(&reader);
}

/* An answer with protobuf's Content-Type is that of an OTLP receiver, even with an invalid message.
 * Many receivers send an empty body, with any Content-Type or none. */
bool otlp_is_answer(long status, struct text type, struct text body)
{
    static const char protobuf[] = "application/x-protobuf";
    const char first = protocol_first_byte(body);

    (void)status;
    if (!first || (type.length >= sizeof(protobuf) - 1 &&
                   strncasecmp(type.data, protobuf, sizeof(protobuf) - 1) == 0))
        return true;
    return !protocol_is_page(type) && (first == '{' || otlp_is_message(body));
}

/* Reads google.rpc.Status: code (1), message (2). Other peers send a text. */
struct text otlp_reason(struct text answer)
{
    const bool is_status =
        answer.length && (answer.data[0] == PB_VARINT(1) || answer.data[0] == PB_BYTES(2));
    const struct text message = is_status ? otlp_field_of(answer, 2, NULL) : answer;

    return message.length ? message : answer;
}
