/*
 * Fields by path. The index of a path's first member is computed once for a class. The rest of
 * the path is resolved in each event, because array elements and a variant's choice differ.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decode.h"

#include <stdlib.h>

/* The type of a field, if the class tells it. */
enum rule_leaf { LEAF_ANY, LEAF_SIGNED, LEAF_UNSIGNED };

/* The structure that has the first member of a path. */
enum path_root { ROOT_NONE, ROOT_PAYLOAD, ROOT_COMMON_CONTEXT, ROOT_OWN_CONTEXT };

struct rule_path {
    enum path_root root;
    enum rule_leaf leaf;
    enum rule_value_type unread; /* the value's type until the value is read: VALUE_UNREAD, or
                                    VALUE_NONE if the class has no such field */
    uint64_t index;
    struct text rest; /* the rest of the path: "", "[2]", ".a.b" */
};

struct rule_fields_plan {
    struct rule_event event; /* event.class is the struct rule_class */
    const bt_event *current;
    const bt_field_class *payload;
    struct rule_path process;
    const struct rule_path *first_end; /* the end of the paths that every event needs */
    const struct rule_path *end;
    struct rule_path paths[];
};

/* ---- paths ----------------------------------------------------------------------------------- */

static bool class_is_hex(const bt_field_class *class)
{
    return bt_field_class_integer_get_preferred_display_base(class) ==
           BT_FIELD_CLASS_INTEGER_PREFERRED_DISPLAY_BASE_HEXADECIMAL;
}

static enum rule_leaf path_leaf(const bt_field_class *class)
{
    const bt_field_class_type type = bt_field_class_get_type(class);

    if (type == BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)
        return LEAF_SIGNED;
    return type == BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER ? LEAF_UNSIGNED : LEAF_ANY;
}

/* Looks for the first member of the path. Sets the parts of the value that are equal in all
 * events. */
static bool path_find_member(struct rule_path *path, enum path_root root,
                             const bt_field_class *class, struct text name,
                             struct rule_value *value)
{
    const uint64_t count = class ? bt_field_class_structure_get_member_count(class) : 0;

    for (uint64_t i = 0; i < count; i++) {
        const bt_field_class_structure_member *member =
            bt_field_class_structure_borrow_member_by_index_const(class, i);
        const bt_field_class *member_class =
            bt_field_class_structure_member_borrow_field_class_const(member);

        if (!text_is(name, bt_field_class_structure_member_get_name(member)))
            continue;
        path->root = root;
        path->unread = VALUE_UNREAD;
        path->index = i;
        if (!path->rest.length)
            path->leaf = path_leaf(member_class);
        value->is_hex = path->leaf == LEAF_UNSIGNED && class_is_hex(member_class);
        return true;
    }
    return false;
}

/* Returns the text before the first "." or "[". */
static struct text path_first(struct text text)
{
    size_t length = 0;

    while (length < text.length && text.data[length] != '.' && text.data[length] != '[')
        length++;
    return text_cut(text, length);
}

static void path_find(struct rule_path *path, struct text field, const bt_event_class *event_class,
                      struct rule_value *value)
{
    const bt_stream_class *stream = bt_event_class_borrow_stream_class_const(event_class);
    const bool is_context = field.length && field.data[0] == '$';
    const struct text text = text_after(field, is_context);
    const struct text name = path_first(text);

    *path = (struct rule_path){.unread = VALUE_NONE, .rest = text_after(text, name.length)};
    if (!is_context)
        (void)path_find_member(path, ROOT_PAYLOAD,
                               bt_event_class_borrow_payload_field_class_const(event_class), name,
                               value);
    else if (!path_find_member(
                 path, ROOT_COMMON_CONTEXT,
                 bt_stream_class_borrow_event_common_context_field_class_const(stream), name,
                 value))
        (void)path_find_member(
            path, ROOT_OWN_CONTEXT,
            bt_event_class_borrow_specific_context_field_class_const(event_class), name, value);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Sets only the parts that differ between events; the class has set is_hex. */
static inline void value_set_signed(struct rule_value *value, int64_t integer)
{
    value->type = VALUE_INTEGER;
    value->is_negative = integer < 0;
    value->integer = (uint64_t)integer;
}

static inline void value_set_unsigned(struct rule_value *value, uint64_t integer)
{
    value->type = VALUE_INTEGER;
    value->integer = integer;
}

/* Reads the first label, if there is one. */
static void field_read_label(const bt_field *field, bool is_signed, struct rule_value *value)
{
    bt_field_class_enumeration_mapping_label_array labels;
    uint64_t count = 0;

    if ((is_signed ? (int)bt_field_enumeration_signed_get_mapping_labels(field, &labels, &count)
                   : (int)bt_field_enumeration_unsigned_get_mapping_labels(field, &labels,
                                                                           &count)) != 0) {
        bt_current_thread_clear_error();
        return;
    }
    if (!count)
        return;
    value->type = VALUE_TEXT;
    value->has_number = true;
    value->text = text_of(labels[0]);
}

static void field_read(const bt_field *field, struct rule_value *value)
{
    const bt_field_class_type type = bt_field_get_class_type(field);

    *value = (struct rule_value){.type = VALUE_NONE};
    if (type == BT_FIELD_CLASS_TYPE_STRING) {
        value->type = VALUE_TEXT;
        value->text =
            (struct text){bt_field_string_get_value(field), bt_field_string_get_length(field)};
    } else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER)) {
        value_set_unsigned(value, bt_field_integer_unsigned_get_value(field));
        value->is_hex = class_is_hex(bt_field_borrow_class_const(field));
        if (type == BT_FIELD_CLASS_TYPE_UNSIGNED_ENUMERATION)
            field_read_label(field, false, value);
    } else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER)) {
        value_set_signed(value, bt_field_integer_signed_get_value(field));
        if (type == BT_FIELD_CLASS_TYPE_SIGNED_ENUMERATION)
            field_read_label(field, true, value);
    } else if (type == BT_FIELD_CLASS_TYPE_BOOL) {
        value_set_unsigned(value, bt_field_bool_get_value(field) != 0);
    } else if (type == BT_FIELD_CLASS_TYPE_SINGLE_PRECISION_REAL) {
        value->type = VALUE_REAL;
        value->real = (double)bt_field_real_single_precision_get_value(field);
    } else if (type == BT_FIELD_CLASS_TYPE_DOUBLE_PRECISION_REAL) {
        value->type = VALUE_REAL;
        value->real = bt_field_real_double_precision_get_value(field);
    }
}

/* Returns the field itself, or the content if it is an option or a variant. NULL: no content. */
static const bt_field *field_selected(const bt_field *field)
{
    while (field) {
        const bt_field_class_type type = bt_field_get_class_type(field);

        if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_VARIANT))
            field = bt_field_variant_borrow_selected_option_field_const(field);
        else if (bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_OPTION))
            field = bt_field_option_borrow_field_const(field);
        else
            break;
    }
    return field;
}

static const bt_field *field_element(const bt_field *array, struct text *rest)
{
    uint64_t index = 0;
    size_t i = 1;

    if (!bt_field_class_type_is(bt_field_get_class_type(array), BT_FIELD_CLASS_TYPE_ARRAY))
        return NULL;
    for (; i < rest->length && rest->data[i] >= '0' && rest->data[i] <= '9' && i < 12; i++)
        index = index * 10 + (uint64_t)(rest->data[i] - '0');
    if (i == 1 || i == rest->length || rest->data[i] != ']' ||
        index >= bt_field_array_get_length(array))
        return NULL;
    *rest = text_after(*rest, i + 1);
    return bt_field_array_borrow_element_field_by_index_const(array, index);
}

static const bt_field *field_member(const bt_field *structure, struct text *rest)
{
    const struct text name = path_first(text_after(*rest, 1));
    char string[257];

    if (bt_field_get_class_type(structure) != BT_FIELD_CLASS_TYPE_STRUCTURE ||
        name.length >= sizeof(string))
        return NULL;
    *text_copy(string, name) = '\0';
    *rest = text_after(*rest, 1 + name.length);
    return bt_field_structure_borrow_member_field_by_name_const(structure, string);
}

static const bt_field *field_follow(const bt_field *field, struct text rest)
{
    field = field_selected(field);
    while (field && rest.length)
        field = field_selected(rest.data[0] == '[' ? field_element(field, &rest)
                                                   : field_member(field, &rest));
    return field;
}

static inline const bt_field *path_member(const struct rule_path *path, const bt_event *event)
{
    const bt_field *structure =
        path->root == ROOT_PAYLOAD          ? bt_event_borrow_payload_field_const(event)
        : path->root == ROOT_COMMON_CONTEXT ? bt_event_borrow_common_context_field_const(event)
                                            : bt_event_borrow_specific_context_field_const(event);

    return bt_field_structure_borrow_member_field_by_index_const(structure, path->index);
}

static void path_read(const struct rule_path *path, const bt_event *event, struct rule_value *value)
{
    const bt_field *field = field_follow(path_member(path, event), path->rest);

    if (field)
        field_read(field, value);
    else
        value->type = VALUE_NONE;
}

/* Reads a value that every event needs if the value is an integer. Another value is read when a
 * rule asks for it. */
static inline void path_read_first(const struct rule_path *path, const bt_event *event,
                                   struct rule_value *value)
{
    if (path->leaf == LEAF_UNSIGNED)
        value_set_unsigned(value, bt_field_integer_unsigned_get_value(path_member(path, event)));
    else if (path->leaf == LEAF_SIGNED)
        value_set_signed(value, bt_field_integer_signed_get_value(path_member(path, event)));
    else
        value->type = path->unread;
}

/* ---- callbacks of pairing -------------------------------------------------------------------- */

static struct rule_fields_plan *rule_fields_of(struct rule_event *event)
{
    return (struct rule_fields_plan *)event; /* event is the plan's first member */
}

static void rule_fields_read(struct rule_event *event, size_t slot)
{
    struct rule_fields_plan *plan = rule_fields_of(event);

    path_read(&plan->paths[slot], plan->current, &event->values[slot]);
}

static bool rule_fields_member(struct rule_event *event, size_t i, struct text *name,
                               struct rule_value *value)
{
    struct rule_fields_plan *plan = rule_fields_of(event);
    const bt_field *field;

    if (!plan->payload || i >= bt_field_class_structure_get_member_count(plan->payload))
        return false;
    *name = text_of(bt_field_class_structure_member_get_name(
        bt_field_class_structure_borrow_member_by_index_const(plan->payload, i)));
    field = field_selected(bt_field_structure_borrow_member_field_by_index_const(
        bt_event_borrow_payload_field_const(plan->current), i));
    value->type = VALUE_NONE;
    if (field)
        field_read(field, value);
    return true;
}

static struct text rule_fields_process(struct rule_event *event)
{
    struct rule_fields_plan *plan = rule_fields_of(event);
    struct rule_value value = {.type = VALUE_NONE};

    if (plan->process.root != ROOT_NONE)
        path_read(&plan->process, plan->current, &value);
    return value.type == VALUE_TEXT ? value.text : (struct text){NULL, 0};
}

struct rule_fields_plan *rule_fields_new(const struct rules *rules, const struct rule_class *class,
                                         const bt_event_class *event_class)
{
    const size_t count = class->field_count;
    struct rule_fields_plan *plan =
        calloc(1, sizeof(*plan) + count * (sizeof(plan->paths[0]) + sizeof(struct rule_value)));
    struct rule_value process;

    if (!plan)
        return NULL;
    plan->event = (struct rule_event){.class = class,
                                      .values = (struct rule_value *)(void *)(plan->paths + count),
                                      .read = rule_fields_read,
                                      .member = class->wants_all ? rule_fields_member : NULL,
                                      .process = rule_fields_process};
    plan->payload = bt_event_class_borrow_payload_field_class_const(event_class);
    plan->first_end = plan->paths + class->first_count;
    plan->end = plan->paths + count;
    path_find(&plan->process, text_of("$procname"), event_class, &process);
    for (size_t i = 0; i < count; i++)
        path_find(&plan->paths[i], rules->fields[class->fields[i]], event_class,
                  &plan->event.values[i]);
    return plan;
}

void rule_fields_free(struct rule_fields_plan *plan)
{
    free(plan);
}

enum decoded rule_fields_decode(struct rule_fields_plan *plan, const struct origin_fields *origin,
                                const bt_message *message, const bt_event *bt_event,
                                struct event *event)
{
    struct rule_value *value = plan->event.values;
    const struct rule_path *path = plan->paths;

    if (!time_of_snapshot(bt_message_event_borrow_default_clock_snapshot_const(message),
                          &event->time_ns))
        return DECODED_UNREADABLE;
    event->kind = EVENT_RULE;
    event->ruled = &plan->event;
    plan->current = bt_event;
    origin_read(origin, bt_event, &event->origin);
    for (; path < plan->first_end; path++, value++)
        path_read_first(path, bt_event, value);
    for (; path < plan->end; path++, value++)
        value->type = path->unread;
    return DECODED;
}
