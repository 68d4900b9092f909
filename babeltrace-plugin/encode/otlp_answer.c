/*
 * An OTLP collector's answer: a response, a refusal, or an answer of another protocol.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "otlp_parts.h"

#include <strings.h>

/* Returns the text or message with this number; empty if there is none. */
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

/* Reads ExportTraceServiceResponse: partial_success (1) with rejected_spans (1) and error_message
 * (2). */
struct rejection otlp_rejected(struct text answer)
{
    const struct text partial = otlp_field_of(answer, 1, NULL);
    struct rejection rejection = {.spans = 0};

    rejection.why = otlp_field_of(partial, 2, &rejection.spans);
    if (rejection.spans > INT64_MAX) /* negative in the message */
        rejection.spans = 0;
    return rejection;
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

/* An answer with protobuf's Content-Type comes from an OTLP receiver, even with an
 * odd message. Many
 * receivers send an empty body, with any Content-Type or none. */
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
