/*
 * Values of events' fields, and how some are kept as bytes: in an open span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RULES_VALUE_H
#define BLKIN_RULES_VALUE_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/base/text.h"

#include <stdint.h>

enum rule_value_type {
    VALUE_NONE, /* the event has no such field */
    VALUE_INTEGER,
    VALUE_REAL,
    VALUE_TEXT, /* an enumeration's label, too */
    VALUE_UNREAD,
};

struct rule_value {
    enum rule_value_type type;
    bool is_negative; /* integer is two's complement */
    bool is_hex;      /* it is meant to be read so: an address */
    bool has_number;  /* of VALUE_TEXT: of an enumeration, whose number is integer */
    uint64_t integer;
    union {
        double real;
        struct text text;
    };
};

/* As people read it, into the room; text values are cut to fit it. */
#define VALUE_SHOWN_MAX 1024
struct text value_show(const struct rule_value *value, char room[VALUE_SHOWN_MAX]);

/* ---- values as bytes ------------------------------------------------------------------------- */

/* Numbers of fields go up to RULES_FIELDS_MAX; these are no fields. */
#define RULE_NO_FIELD UINT16_MAX
#define KEPT_NAMED    (UINT16_MAX - 1) /* the value of a member that no rule names */
#define KEPT_STAGE    (UINT16_MAX - 2) /* the integer is when, the text is its label */
#define KEPT_MARK     (UINT16_MAX - 3) /* the same */
#define KEPT_TEXT_MAX 4096             /* bytes of a text; of more, the first ones are kept */

struct kept_value {
    uint16_t field;
    struct text name; /* of KEPT_NAMED */
    struct rule_value value;
};

/* Appends; false: there is no room, and the buffer is as it was. */
bool kept_put(struct buffer *buffer, const struct kept_value *kept);

/* Takes the first one from bytes, which need not be sound; false at their end, and at nonsense. */
bool kept_next(struct text *bytes, struct kept_value *kept);

/* The first one of the field, or of this name; false: there is none. */
bool kept_find(struct text bytes, uint16_t field, struct text name, struct rule_value *value);

#endif
