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

static const struct sound_field sound_fields[] = {
#define SOUND_FIELD(of, name, number, type, kind, length) \
    {SOUND_##of, SOUND_##kind, length, OTLP_##of##_##name},
    OTLP_FIELDS(SOUND_FIELD)
#undef SOUND_FIELD
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
