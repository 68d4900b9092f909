/*
 * Values of events' fields, and their form as bytes in an open span.
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
    VALUE_TEXT, /* also an enumeration's label */
    VALUE_UNREAD,
};

struct rule_value {
    enum rule_value_type type;
    bool is_negative; /* integer is two's complement */
    bool is_hex;      /* shown in hexadecimal: an address */
    bool has_number;  /* of VALUE_TEXT: of an enumeration, whose number is integer */
    uint64_t integer;
    union {
        double real;
        struct text text;
    };
};

/* Writes the value for people. A text value is cut to fit. */
#define VALUE_SHOWN_MAX 1024
struct text value_show(const struct rule_value *value, char room[VALUE_SHOWN_MAX]);

/* ---- values as bytes ------------------------------------------------------------------------- */

/* Numbers of fields go up to RULES_FIELDS_MAX; these values are no fields. */
#define RULE_NO_FIELD   UINT16_MAX
#define STORED_NAMED    (UINT16_MAX - 1) /* the value of a member that no rule names */
#define STORED_STAGE    (UINT16_MAX - 2) /* integer: the time; text: the label */
#define STORED_MARK     (UINT16_MAX - 3) /* same */
#define STORED_TEXT_MAX 4096             /* bytes of a text; a longer text is cut */

struct stored_value {
    uint16_t field;
    struct text name; /* of STORED_NAMED */
    struct rule_value value;
};

/* Appends a value. Returns false without room: the buffer stays as it is. */
bool stored_put(struct buffer *buffer, const struct stored_value *stored);

/* Takes the first value from untrusted bytes. Returns false at the end, and at invalid bytes. */
bool stored_next(struct text *bytes, struct stored_value *stored);

/* Finds the first value of the field, or of this name. Returns false if there is none. */
bool stored_find(struct text bytes, uint16_t field, struct text name, struct rule_value *value);

#endif
