/*
 * Rules: the events of any LTTng program that begin and end a span. doc/rules.md has the syntax.
 *
 * A rules file is read once, at the start. An error names the line. Field names get numbers at that
 * time, so an event's values are found by number.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RULES_H
#define BLKIN_RULES_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/base/table.h"
#include "babeltrace-plugin/base/text.h"
#include "babeltrace-plugin/spans/span.h"

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
    bool has_number;  /* of VALUE_TEXT: a label of an enumeration, and `integer` is its number */
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

#define RULES_COUNT_MAX  1000
#define RULES_FIELDS_MAX 1000
#define RULES_KEY_MAX    16 /* fields of a key */
#define RULES_FILE_MAX   (1U << 20)

#define RULE_NO_LOOKUP UINT16_MAX
#define RULE_NO_FORM   UINT16_MAX

/* A field of an event, or the value that a lookup has for the field's value. */
struct rule_operand {
    uint16_t field;
    uint16_t lookup;
};

enum rule_comparison { RULE_EQUAL, RULE_UNEQUAL, RULE_LESS, RULE_GREATER, RULE_MOST, RULE_LEAST };

struct rule_test {
    uint16_t field;
    enum rule_comparison comparison;
    struct rule_value value;
};

/* True if all tests are true. */
struct rule_condition {
    struct rule_test *tests;
    size_t count;
};

/* A text with fields in it: each piece is a text, followed by a field's value unless it is last. */
struct rule_piece {
    struct text literal;
    bool has_operand;
    struct rule_operand operand;
};

struct rule_template {
    struct rule_piece *pieces;
    size_t count;
};

struct rule_fields {
    uint16_t *fields;
    size_t count;
};

struct rule_tag {
    struct text key;
    struct rule_operand operand;
};

/* In the order of use within one event: ends come before begins. */
enum rule_point_kind {
    POINT_LOOKUP, /* the event has a value for a lookup */
    POINT_END,
    POINT_EVENT, /* the event is a whole span */
    POINT_BEGIN,
    POINT_STAGE, /* a child span begins, and the last stage ends */
    POINT_MARK,  /* an annotation */
};

enum rule_times {
    TIMES_DURATION, /* the field is the duration of the span, which ends with the event */
    TIMES_FROM,     /* the field is the begin of the span */
    TIMES_UNTIL,    /* the field is the end of the span, which begins with the event */
};

/* Another name of a field in one event. */
struct rule_rename {
    uint16_t name; /* the name in the section's keys */
    uint16_t field;
};

struct rule_point {
    enum rule_point_kind kind;
    uint16_t owner;      /* number of the rule or the lookup */
    struct text text;    /* as in the file */
    struct text pattern; /* of events' names, with * and ? */
    struct rule_condition condition;
    struct rule_rename *renames;
    size_t rename_count;
    struct text label;     /* of POINT_STAGE and POINT_MARK */
    enum rule_times times; /* this and the next two members: of POINT_EVENT */
    uint16_t time_field;
    int64_t unit_ns;
};

enum rule_scope { SCOPE_THREAD, SCOPE_PROCESS, SCOPE_HOST, SCOPE_SESSION };

enum rule_parent {
    PARENT_NONE,
    PARENT_THREAD,      /* the innermost open span of the thread */
    PARENT_RULE,        /* the open span of a rule with this key */
    PARENT_TRACEPARENT, /* a field has the W3C header of this name */
    PARENT_IDS,         /* two fields have the trace id and the span id */
};

/* The position in the file. The title is without "span" or "lookup". */
struct rule_section {
    struct text title;
    const char *file;
    unsigned line;
};

struct span_rule {
    struct rule_section section;
    struct rule_template name;
    struct rule_template service; /* no pieces: the process's name */
    unsigned points;              /* a bit for each kind in the section */
    bool has_key, is_stack, tags_all;
    bool is_parent;        /* a rule names this one as parent, with a key */
    bool encloses;         /* is on the thread's stack, where other spans find their parent */
    enum rule_scope scope; /* without a key: of the thread */
    struct rule_fields key;
    uint16_t form; /* equal for rules whose keys have the same scope and fields */
    enum rule_parent parent;
    uint16_t parent_rule;
    struct text parent_title; /* until all rules are read */
    struct rule_fields parent_fields;
    struct rule_fields join; /* empty: not given */
    enum span_kind kind;
    struct rule_tag *tags;
    size_t tag_count;
    struct rule_condition error;
    uint16_t error_field; /* RULE_NO_FIELD: not given */
    int64_t timeout_ns;
    int64_t least_ns;
    struct rule_fields stored; /* fields outside the key that a begin stores until the end */
};

struct rule_lookup {
    struct rule_section section;
    enum rule_scope scope;
    struct rule_fields key; /* one field */
    uint16_t value;         /* RULE_NO_FIELD: not given */
    bool has_event;
};

/* The first lookup of all rules: the names of processes, by pid. */
#define RULES_PROCESS_NAMES 0

struct rules {
    struct span_rule *rules;
    size_t count;
    struct rule_lookup *lookups;
    size_t lookup_count;
    struct rule_point *points;
    size_t point_count;
    struct text *fields; /* their names, by number */
    size_t field_count;
    struct table classes;
    void **blocks; /* all memory of the rules */
    size_t block_count;
};

/*
 * Reads a file, each file NAME.rules of a folder in order of names, or the file NAME that BlkKin
 * ships; or several of these, separated by commas. Returns NULL with error set: file, line and
 * expectation.
 */
struct rules *rules_read(const char *paths, struct error *error);

/* Parses a text; name is for messages. */
struct rules *rules_parse(struct text text, const char *name, struct error *error);

/* NULL is allowed. */
void rules_free(struct rules *rules);

/* ---- rules for the events of one name -------------------------------------------------------- */

struct rule_class {
    struct table_link in_table;
    struct text name;
    const struct rule_point **points; /* in order of use */
    size_t point_count;
    uint16_t *slots;  /* of each field of the rules: its index among values, or RULE_NO_FIELD */
    uint16_t *fields; /* of each index: its field */
    size_t field_count;
    size_t first_count; /* the values that each event needs: keys and conditions */
    bool wants_all;     /* also members of the event that no rule names */
};

/* Returns NULL if no rule names such events, or when out of memory (then *has_no_memory is set). */
const struct rule_class *rules_class(struct rules *rules, struct text name, bool *has_no_memory);

#endif
