/*
 * Rules: which events of any LTTng program begin and end a span. doc/rules.md has the syntax.
 *
 * A rules file is read once, at the start; what is wrong in it is told with its line. Names of
 * fields are numbered when they are read, so that an event's values are found by a number.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RULES_H
#define BLKIN_RULES_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/base/table.h"
#include "babeltrace-plugin/spans/span.h"
#include "value.h"

#define RULES_COUNT_MAX  1000
#define RULES_FIELDS_MAX 1000
#define RULES_KEY_MAX    16 /* fields of a key */
#define RULES_FILE_MAX   (1U << 20)

/* A field of an event, or what a lookup has for the value of that field. */
#define RULE_NO_LOOKUP UINT16_MAX
#define RULE_NO_FORM   UINT16_MAX

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

/* All of its tests hold; of no tests: always. */
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

/* In the order in which one event is used: what it ends, ends before what it begins. */
enum rule_point_kind {
    POINT_LOOKUP, /* the event has a value for a lookup */
    POINT_END,
    POINT_EVENT, /* the event is all of a span */
    POINT_BEGIN,
    POINT_STAGE, /* a child span begins, and the stage before it ends */
    POINT_MARK,  /* an annotation */
};

enum rule_times {
    TIMES_DURATION, /* the field is how long the span took, until the event */
    TIMES_FROM,     /* the field is when the span began */
    TIMES_UNTIL,    /* the field is when the span, which begins with the event, ends */
};

/* In one event, the field has another name. */
struct rule_rename {
    uint16_t name; /* that the section's keys have */
    uint16_t field;
};

struct rule_point {
    enum rule_point_kind kind;
    uint16_t owner;      /* the rule's or the lookup's number */
    struct text text;    /* as the file has it */
    struct text pattern; /* of events' names: * and ? */
    struct rule_condition condition;
    struct rule_rename *renames;
    size_t rename_count;
    struct text label;     /* of POINT_STAGE and POINT_MARK */
    enum rule_times times; /* these three of POINT_EVENT */
    uint16_t time_field;
    int64_t unit_ns;
};

enum rule_scope { SCOPE_THREAD, SCOPE_PROCESS, SCOPE_HOST, SCOPE_SESSION };

enum rule_parent {
    PARENT_NONE,
    PARENT_THREAD,      /* the innermost open span of the thread */
    PARENT_RULE,        /* the open span of a rule with this key */
    PARENT_TRACEPARENT, /* a field has the W3C's header of this name */
    PARENT_IDS,         /* two fields have the trace id and the span id */
};

/* Where it is said; the title is without "span" or "lookup". */
struct rule_section {
    struct text title;
    const char *file;
    unsigned line;
};

struct span_rule {
    struct rule_section section;
    struct rule_template name;
    struct rule_template service; /* no pieces: the process's name */
    unsigned points;              /* a bit for each kind that it has */
    bool has_key, is_stack, tags_all;
    bool is_parent; /* of a rule that names it with its key */
    bool encloses;  /* it is a parent for other spans of its thread, of which there are some */
    enum rule_scope scope; /* without a key, of the thread */
    struct rule_fields key;
    uint16_t form; /* the same for rules whose keys have the same scope and fields */
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
    struct rule_fields kept; /* that a begin keeps until the end: of none of its key */
};

struct rule_lookup {
    struct rule_section section;
    enum rule_scope scope;
    struct rule_fields key; /* one */
    uint16_t value;         /* RULE_NO_FIELD: not given */
    bool has_event;
};

/* The lookup that all rules have first: the names of processes, by their pids. */
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
    uint64_t digest; /* of all that was read: other rules have another one */
    struct table classes;
    void **blocks; /* all memory that the rest points to */
    size_t block_count;
};

/*
 * Reads a file, or each file NAME.rules of a folder in the order of their names, or the file NAME
 * that comes with BlkKin; or several of these, with commas in between. NULL with error set, which
 * names the file, the line, and what was expected.
 */
struct rules *rules_read(const char *paths, struct error *error);

/* The same, of a text; name is for messages. */
struct rules *rules_parse(struct text text, const char *name, struct error *error);

/* NULL is allowed. */
void rules_free(struct rules *rules);

/* ---- what rules say about the events of a name ----------------------------------------------- */

struct rule_class {
    struct table_link in_table;
    struct text name;
    const struct rule_point **points; /* in the order in which they are used */
    size_t point_count;
    uint16_t *slots;  /* of each field of the rules: its place among values; or RULE_NO_FIELD */
    uint16_t *fields; /* of each place: its field */
    size_t field_count;
    size_t first_count; /* of these, that each event is asked for: keys and conditions */
    bool wants_all;     /* members of the event that no rule names, too */
};

/* NULL: no rule names such events, or there is no memory for it (then *is_starved is set). */
const struct rule_class *rules_class(struct rules *rules, struct text name, bool *is_starved);

#endif
