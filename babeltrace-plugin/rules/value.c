/*
 * Values as text, and as bytes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "value.h"

#include "babeltrace-plugin/base/real.h"

#include <inttypes.h>
#include <stdio.h>

/* Same as %#lx without printf(), because most spans have an address. */
static int value_show_hex(uint64_t integer, char *room)
{
    const int digits = integer ? (67 - __builtin_clzll(integer)) / 4 : 1;

    room[0] = '0';
    room[1] = 'x';
    for (int i = digits + 1; i > 1; i--, integer >>= 4)
        room[i] = "0123456789abcdef"[integer & 15];
    return digits + 2;
}

struct text value_show(const struct rule_value *value, char room[VALUE_SHOWN_MAX])
{
    int length = 0;

    switch (value->type) {
    case VALUE_TEXT:
        return text_cut(value->text, VALUE_SHOWN_MAX);
    case VALUE_REAL:
        length = real_show(room, VALUE_SHOWN_MAX, value->real);
        break;
    case VALUE_INTEGER:
        length = value->is_hex ? value_show_hex(value->integer, room)
                 : value->is_negative
                     ? snprintf(room, VALUE_SHOWN_MAX, "%" PRId64, (int64_t)value->integer)
                     : snprintf(room, VALUE_SHOWN_MAX, "%" PRIu64, value->integer);
        break;
    default:
        return text_of("?");
    }
    return (struct text){room, (size_t)length};
}

/* The head before the bytes of name and text. */
struct stored_head {
    uint16_t field;
    uint8_t type;
    uint8_t flags;
    uint16_t name_length;
    uint16_t text_length;
    uint64_t number; /* the integer, or the bits of a real number */
};

enum { IS_NEGATIVE = 1, IS_HEX = 2, HAS_NUMBER = 4, ALL_FLAGS = 7 };

bool stored_put(struct buffer *buffer, const struct stored_value *stored)
{
    const struct rule_value *value = &stored->value;
    const struct text name = text_cut(stored->name, STORED_TEXT_MAX);
    const struct text text =
        value->type == VALUE_TEXT ? text_cut(value->text, STORED_TEXT_MAX) : (struct text){NULL, 0};
    struct stored_head head = {
        .field = stored->field,
        .type = (uint8_t)value->type,
        .flags = (uint8_t)((value->is_negative ? IS_NEGATIVE : 0) | (value->is_hex ? IS_HEX : 0) |
                           (value->has_number ? HAS_NUMBER : 0)),
        .name_length = (uint16_t)name.length,
        .text_length = (uint16_t)text.length,
        .number = value->integer,
    };

    if (value->type == VALUE_REAL)
        memcpy(&head.number, &value->real, sizeof(head.number));
    if (!buffer_reserve(buffer, sizeof(head) + name.length + text.length))
        return false;
    buffer_put(buffer, (const char *)&head, sizeof(head));
    buffer_put(buffer, name.data, name.length);
    buffer_put(buffer, text.data, text.length);
    return true;
}

static struct text stored_take(struct text *bytes, size_t length)
{
    const struct text taken = {bytes->data, length};

    *bytes = (struct text){bytes->data + length, bytes->length - length};
    return taken;
}

bool stored_next(struct text *bytes, struct stored_value *stored)
{
    struct stored_head head;

    if (bytes->length < sizeof(head))
        return false;
    memcpy(&head, stored_take(bytes, sizeof(head)).data, sizeof(head));
    if ((size_t)head.name_length + head.text_length > bytes->length || head.type >= VALUE_UNREAD ||
        head.flags > ALL_FLAGS)
        return false;
    *stored = (struct stored_value){.field = head.field,
                                    .value = {.type = (enum rule_value_type)head.type,
                                              .is_negative = head.flags & IS_NEGATIVE,
                                              .is_hex = head.flags & IS_HEX,
                                              .has_number = head.flags & HAS_NUMBER,
                                              .integer = head.number}};
    stored->name = stored_take(bytes, head.name_length);
    if (head.type == VALUE_TEXT)
        stored->value.text = stored_take(bytes, head.text_length);
    else
        (void)stored_take(bytes, head.text_length);
    if (head.type == VALUE_REAL)
        memcpy(&stored->value.real, &head.number, sizeof(head.number));
    return true;
}

bool stored_find(struct text bytes, uint16_t field, struct text name, struct rule_value *value)
{
    struct stored_value stored;

    while (stored_next(&bytes, &stored)) {
        if (stored.field != field || !text_equal(stored.name, name))
            continue;
        *value = stored.value;
        return true;
    }
    return false;
}
