/*
 * Records a span that has ended from a buffer: see blkin_record_span() in blkin.h. Checks the whole
 * buffer first: an invalid one records nothing.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "blkin.h"

#include "libblkin/span/span.h"

#include <errno.h>
#include <string.h>

#define LAYOUT_VERSION 1

struct packed_head {
    uint8_t version;
    uint8_t kind;
    uint16_t name_length;
    uint32_t flags;
    uint64_t trace_id_high;
    uint64_t trace_id;
    uint64_t span_id;
    uint64_t parent_span_id;
    uint64_t start_ns;
    uint64_t end_ns;
};
_Static_assert(sizeof(struct packed_head) == 56, "blkin.h gives the offset of each field");

#define ATTRIBUTE_HEAD 4

struct attribute {
    char type;
    const char *key;
    size_t key_length;
    const char *value;
    size_t value_length;
};

struct attribute_reader {
    const char *at; /* of the next attribute; initially after head and name */
    const char *end;
};

/* ---- reading ---- */

/* Returns false at the end, or if the next attribute is cut off: then `at` is not `end`. */
static bool reader_next(struct attribute_reader *reader, struct attribute *attribute)
{
    const size_t left = (size_t)(reader->end - reader->at);
    uint16_t value_length;

    if (left < ATTRIBUTE_HEAD)
        return false;
    memcpy(&value_length, reader->at + 2, sizeof(value_length));
    attribute->type = reader->at[0];
    attribute->key_length = (uint8_t)reader->at[1];
    attribute->value_length = value_length;
    if (left - ATTRIBUTE_HEAD < attribute->key_length + attribute->value_length)
        return false;
    attribute->key = reader->at + ATTRIBUTE_HEAD;
    attribute->value = attribute->key + attribute->key_length;
    reader->at = attribute->value + attribute->value_length;
    return true;
}

static bool attribute_is_valid(const struct attribute *attribute)
{
    switch (attribute->type) {
    case 's':
        return true;
    case 'I':
    case 'U':
    case 'D':
        return attribute->value_length == 8;
    case 'B':
        return attribute->value_length == 1;
    case 'l':
        return attribute->key_length == 0 && attribute->value_length == 24;
    case 'r':
    case 'e':
        return attribute->value_length >= 2;
    default:
        return attribute->type >= '0' && attribute->type <= '7' && attribute->key_length == 0 &&
               attribute->value_length >= 8;
    }
}

static bool read_buffer(const void *buffer, size_t length, struct packed_head *head,
                        struct attribute_reader *attributes)
{
    struct attribute_reader reader;
    struct attribute attribute;

    if (!buffer || length < sizeof(*head))
        return false;
    memcpy(head, buffer, sizeof(*head));
    if (head->version != LAYOUT_VERSION || head->kind > BLKIN_CONSUMER ||
        length - sizeof(*head) < head->name_length)
        return false;
    attributes->at = (const char *)buffer + sizeof(*head) + head->name_length;
    attributes->end = (const char *)buffer + length;
    reader = *attributes;
    while (reader_next(&reader, &attribute)) {
        if (!attribute_is_valid(&attribute))
            return false;
    }
    return reader.at == reader.end;
}

/* ---- recording ---- */

/* Copies a text, cut to the size, and adds a NUL. */
static const char *with_nul(char *text, size_t size, const char *from, size_t length)
{
    if (length >= size)
        length = blkin_cut(from, length, size - 1);
    memcpy(text, from, length);
    text[length] = '\0';
    return text;
}

static void record_endpoint(struct blkin_span *span, const struct attribute *attribute)
{
    char name[SPAN_SERVICE_MAX + 1], ip[SPAN_IP_MAX + 1];
    uint16_t port;

    memcpy(&port, attribute->value, sizeof(port));
    (void)with_nul(name, sizeof(name), attribute->key, attribute->key_length);
    (void)with_nul(ip, sizeof(ip), attribute->value + 2, attribute->value_length - 2);
    if (attribute->type == 'r')
        blkin_span_set_remote_(span, name, ip, port);
    else
        blkin_span_set_service_(span, name, ip, port);
}

static void record_number(struct blkin_span *span, const struct attribute *attribute, size_t key)
{
    uint64_t bits = 0;
    double number;

    memcpy(&bits, attribute->value, attribute->value_length);
    memcpy(&number, &bits, sizeof(number));
    if (attribute->type == 'I')
        blkin_span_tag_int64_(span, attribute->key, key, (int64_t)bits);
    else if (attribute->type == 'U')
        blkin_span_tag_uint64_(span, attribute->key, key, bits);
    else if (attribute->type == 'D')
        blkin_span_tag_double_(span, attribute->key, key, number);
    else
        blkin_span_tag_bool_(span, attribute->key, key, attribute->value[0] != 0);
}

static void record_attribute(struct blkin_span *span, const struct attribute *attribute)
{
    const size_t key = blkin_length_within_(attribute->key, attribute->key_length);
    struct blkin_context link = {.flags = 0};
    uint64_t time_ns;

    switch (attribute->type) {
    case 's':
        blkin_span_tag_string_(span, attribute->key, key, attribute->value,
                               blkin_length_within_(attribute->value, attribute->value_length));
        break;
    case 'l':
        memcpy(&link, attribute->value, 24);
        blkin_span_link_(span, &link);
        break;
    case 'r':
    case 'e':
        record_endpoint(span, attribute);
        break;
    case 'I':
    case 'U':
    case 'D':
    case 'B':
        record_number(span, attribute, key);
        break;
    default:
        memcpy(&time_ns, attribute->value, sizeof(time_ns));
        blkin_span_annotate_at_(
            span, (uint32_t)(attribute->type - '0'), attribute->value + 8,
            blkin_length_within_(attribute->value + 8, attribute->value_length - 8), time_ns);
    }
}

_Static_assert(offsetof(struct blkin_context, trace_id_high) == 0 &&
                   offsetof(struct blkin_context, span_id) == 16,
               "a link is the first 24 bytes of a context");

int blkin_record_span(const void *buffer, size_t length)
{
    BLKIN_SPAN_ROOM(SPAN_SIZE_MAX) room;
    struct blkin_span *span = blkin_span_in(&room);
    struct packed_head head;
    struct attribute_reader reader;
    struct attribute attribute;
    struct blkin_context parent;
    const char *name;

    if (!read_buffer(buffer, length, &head, &reader))
        return -EINVAL;
    parent = (struct blkin_context){
        .trace_id_high = head.trace_id_high,
        .trace_id = head.trace_id,
        .span_id = head.parent_span_id,
        .flags = head.flags & (BLKIN_CONTEXT_SAMPLED | BLKIN_CONTEXT_DECIDED | BLKIN_CONTEXT_DEBUG |
                               BLKIN_CONTEXT_RANDOM | BLKIN_CONTEXT_REMOTE),
    };
    name = (const char *)buffer + sizeof(head);
    if (!blkin_is_on())
        return 0;
    blkin_begin_with_id(span, sizeof(room), name, blkin_length_within_(name, head.name_length),
                        head.kind, &parent, head.span_id);
    if (!blkin_span_is_recorded(span))
        return 0;
    blkin_span_set_start_(span, head.start_ns);
    while (reader_next(&reader, &attribute))
        record_attribute(span, &attribute);
    blkin_span_end_at_(span, head.end_ns);
    return 0;
}
