/*
 * Checks a span of another tracer, with its resource and scope.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/utf8.h"
#include "otlp_decode.h"
#include "otlp_value.h"

#define NESTING_MAX 32 /* levels of nested messages; Google's decoders allow 100 */

enum sound_kind {
    SOUND_RESOURCE,
    SOUND_SCOPE,
    SOUND_SPAN,
    SOUND_EVENT,
    SOUND_LINK,
    SOUND_STATUS,
    SOUND_ATTRIBUTE,
    SOUND_VALUE,
    SOUND_ARRAY,
    SOUND_LIST,
    SOUND_TEXT, /* from here on, no messages */
    SOUND_BYTES,
    SOUND_NUMBER,
};

/* In a message of kind `of`, a field with the number of this tag must have exactly this tag. */
struct sound_field {
    uint8_t of;
    uint8_t kind;   /* the kind of the field */
    uint8_t length; /* of SOUND_BYTES that are not empty; 0: any length */
    uint32_t tag;
};

#define DROPPED_OF_RESOURCE PB_TAG(2, PB_TYPE_VARINT)
#define DROPPED_OF_SCOPE    PB_TAG(4, PB_TYPE_VARINT)
#define DROPPED_OF_EVENT    PB_TAG(4, PB_TYPE_VARINT)
#define LINK_FLAGS          PB_TAG(6, PB_TYPE_FIXED32)
#define STATUS_NONE         PB_TAG(1, PB_TYPE_VARINT) /* deprecated, and not read any more */

static const struct sound_field sound_fields[] = {
    {SOUND_RESOURCE, SOUND_ATTRIBUTE, 0, OTLP_RESOURCE_ATTRIBUTE},
    {SOUND_RESOURCE, SOUND_NUMBER, 0, DROPPED_OF_RESOURCE},
    {SOUND_SCOPE, SOUND_TEXT, 0, OTLP_SCOPE_NAME},
    {SOUND_SCOPE, SOUND_TEXT, 0, OTLP_SCOPE_VERSION},
    {SOUND_SCOPE, SOUND_ATTRIBUTE, 0, OTLP_SCOPE_ATTRIBUTE},
    {SOUND_SCOPE, SOUND_NUMBER, 0, DROPPED_OF_SCOPE},
    {SOUND_SPAN, SOUND_BYTES, 16, OTLP_SPAN_TRACE_ID},
    {SOUND_SPAN, SOUND_BYTES, 8, OTLP_SPAN_ID},
    {SOUND_SPAN, SOUND_TEXT, 0, OTLP_SPAN_TRACE_STATE},
    {SOUND_SPAN, SOUND_BYTES, 8, OTLP_SPAN_PARENT_ID},
    {SOUND_SPAN, SOUND_TEXT, 0, OTLP_SPAN_NAME},
    {SOUND_SPAN, SOUND_NUMBER, 0, OTLP_SPAN_KIND},
    {SOUND_SPAN, SOUND_NUMBER, 0, OTLP_SPAN_START},
    {SOUND_SPAN, SOUND_NUMBER, 0, OTLP_SPAN_END},
    {SOUND_SPAN, SOUND_ATTRIBUTE, 0, OTLP_SPAN_ATTRIBUTE},
    {SOUND_SPAN, SOUND_NUMBER, 0, OTLP_SPAN_DROPPED_ATTRIBUTES},
    {SOUND_SPAN, SOUND_EVENT, 0, OTLP_SPAN_EVENT},
    {SOUND_SPAN, SOUND_NUMBER, 0, OTLP_SPAN_DROPPED_EVENTS},
    {SOUND_SPAN, SOUND_LINK, 0, OTLP_SPAN_LINK},
    {SOUND_SPAN, SOUND_NUMBER, 0, OTLP_SPAN_DROPPED_LINKS},
    {SOUND_SPAN, SOUND_STATUS, 0, OTLP_SPAN_STATUS},
    {SOUND_SPAN, SOUND_NUMBER, 0, OTLP_SPAN_FLAGS},
    {SOUND_EVENT, SOUND_NUMBER, 0, OTLP_EVENT_TIME},
    {SOUND_EVENT, SOUND_TEXT, 0, OTLP_EVENT_NAME},
    {SOUND_EVENT, SOUND_ATTRIBUTE, 0, OTLP_EVENT_ATTRIBUTE},
    {SOUND_EVENT, SOUND_NUMBER, 0, DROPPED_OF_EVENT},
    {SOUND_LINK, SOUND_BYTES, 16, OTLP_LINK_TRACE_ID},
    {SOUND_LINK, SOUND_BYTES, 8, OTLP_LINK_SPAN_ID},
    {SOUND_LINK, SOUND_TEXT, 0, OTLP_LINK_TRACE_STATE},
    {SOUND_LINK, SOUND_ATTRIBUTE, 0, OTLP_LINK_ATTRIBUTE},
    {SOUND_LINK, SOUND_NUMBER, 0, OTLP_LINK_DROPPED},
    {SOUND_LINK, SOUND_NUMBER, 0, LINK_FLAGS},
    {SOUND_STATUS, SOUND_NUMBER, 0, STATUS_NONE},
    {SOUND_STATUS, SOUND_TEXT, 0, OTLP_STATUS_MESSAGE},
    {SOUND_STATUS, SOUND_NUMBER, 0, OTLP_STATUS_CODE},
    {SOUND_ATTRIBUTE, SOUND_TEXT, 0, OTLP_ATTRIBUTE_KEY},
    {SOUND_ATTRIBUTE, SOUND_VALUE, 0, OTLP_ATTRIBUTE_VALUE},
    {SOUND_VALUE, SOUND_TEXT, 0, OTLP_VALUE_STRING},
    {SOUND_VALUE, SOUND_NUMBER, 0, OTLP_VALUE_BOOL},
    {SOUND_VALUE, SOUND_NUMBER, 0, OTLP_VALUE_INT},
    {SOUND_VALUE, SOUND_NUMBER, 0, OTLP_VALUE_DOUBLE},
    {SOUND_VALUE, SOUND_ARRAY, 0, OTLP_VALUE_ARRAY},
    {SOUND_VALUE, SOUND_LIST, 0, OTLP_VALUE_LIST},
    {SOUND_VALUE, SOUND_BYTES, 0, OTLP_VALUE_BYTES},
    {SOUND_ARRAY, SOUND_VALUE, 0, OTLP_ARRAY_VALUE},
    {SOUND_LIST, SOUND_ATTRIBUTE, 0, OTLP_LIST_ATTRIBUTE},
};

/* Returns NULL for a field that is unknown in messages of this kind. */
static const struct sound_field *sound_find(enum sound_kind of, uint32_t tag)
{
    for (size_t i = 0; i < sizeof(sound_fields) / sizeof(sound_fields[0]); i++) {
        if (sound_fields[i].of == of && sound_fields[i].tag >> 3 == tag >> 3)
            return &sound_fields[i];
    }
    return NULL;
}

static bool sound_check(enum sound_kind kind, struct text message, unsigned depth);

static bool sound_check_field(const struct sound_field *known, const struct pb_member *field,
                              unsigned depth)
{
    if (known->tag != field->tag)
        return false;
    switch (known->kind) {
    case SOUND_NUMBER:
        return true;
    case SOUND_TEXT:
        return utf8_is_valid(pb_text(field));
    case SOUND_BYTES:
        return known->length == 0 || field->value == 0 || field->value == known->length;
    default:
        return sound_check((enum sound_kind)known->kind, pb_text(field), depth + 1);
    }
}

static bool sound_check(enum sound_kind kind, struct text message, unsigned depth)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;
    bool is_sound = depth < NESTING_MAX;

    if (kind == SOUND_ATTRIBUTE && otlp_find(message, OTLP_ATTRIBUTE_KEY).length == 0)
        return false;
    while (is_sound && pb_next(&reader, &field)) {
        const struct sound_field *known = sound_find(kind, field.tag);

        is_sound = !known || sound_check_field(known, &field, depth);
    }
    return is_sound && !pb_is_broken(&reader);
}

bool otlp_is_sound(const struct otlp_origin *origin, struct text span)
{
    return sound_check(SOUND_RESOURCE, origin->resource, 0) &&
           sound_check(SOUND_SCOPE, origin->scope, 0) && sound_check(SOUND_SPAN, span, 0) &&
           utf8_is_valid(origin->schema) && utf8_is_valid(origin->scope_schema);
}
