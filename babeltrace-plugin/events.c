/*
 * Counts the events of each name, and proposes rules from the names.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sink.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENT_KINDS_MAX 20000 /* bounds the memory: a trace may have any number of names */

/* Events of one name. If several classes have the name, the fields are those of the first class. */
struct kind {
    struct table_link in_table;
    struct text name;
    uint64_t count;
    struct text *fields;
    size_t field_count;
    bool has_thread;
};

struct events {
    bt_message_iterator *iterator;
    int64_t end_ms; /* by clock_ms(): later events are not counted; INT64_MAX: no end */
    struct table kinds;
    uint64_t left_out; /* events of kinds for which there is no room */
};

static char *events_copy(const char *string)
{
    return strdup(string ? string : "");
}

static void events_free_kind(struct table_link *link)
{
    struct kind *kind = caa_container_of(link, struct kind, in_table);

    for (size_t i = 0; i < kind->field_count; i++)
        free((char *)(uintptr_t)kind->fields[i].data);
    free(kind->fields);
    free((char *)(uintptr_t)kind->name.data);
    free(kind);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool events_read_fields(struct kind *kind, const bt_field_class *payload)
{
    const uint64_t count = payload ? bt_field_class_structure_get_member_count(payload) : 0;

    kind->fields = calloc(count + 1, sizeof(*kind->fields));
    for (uint64_t i = 0; kind->fields && i < count; i++) {
        char *name = events_copy(bt_field_class_structure_member_get_name(
            bt_field_class_structure_borrow_member_by_index_const(payload, i)));

        if (!name)
            return false;
        kind->fields[kind->field_count++] = text_of(name);
    }
    return kind->fields != NULL;
}

static bool events_has_thread(const bt_event_class *class)
{
    const bt_field_class *context = bt_stream_class_borrow_event_common_context_field_class_const(
        bt_event_class_borrow_stream_class_const(class));

    return context && bt_field_class_structure_borrow_member_by_name_const(context, "vtid") != NULL;
}

/* Returns NULL when out of memory, or if there are EVENT_KINDS_MAX kinds. */
static struct kind *events_add(struct events *events, const bt_event_class *class, uint64_t hash)
{
    struct kind *kind = events->kinds.count < EVENT_KINDS_MAX ? calloc(1, sizeof(*kind)) : NULL;

    if (!kind)
        return NULL;
    kind->name = text_of(events_copy(bt_event_class_get_name(class)));
    kind->has_thread = events_has_thread(class);
    if (!kind->name.data ||
        !events_read_fields(kind, bt_event_class_borrow_payload_field_class_const(class))) {
        events_free_kind(&kind->in_table);
        return NULL;
    }
    table_add(&events->kinds, &kind->in_table, hash);
    return kind;
}

static void events_count(struct events *events, const bt_message *message)
{
    const bt_event_class *class =
        bt_event_borrow_class_const(bt_message_event_borrow_event_const(message));
    const struct text name = text_of(bt_event_class_get_name(class));
    const uint64_t hash = hash_text(events->kinds.seed, name);
    struct kind *kind;

    table_find(kind, &events->kinds, hash, in_table, text_equal(kind->name, name));
    if (!kind)
        kind = events_add(events, class, hash);
    if (kind)
        kind->count++;
    else
        events->left_out++;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* A word in the name of a begin event, and the word in its place in the name of the end event. */
static const char *const events_pairs[][2] = {
    {"start", "end"},     {"start", "done"},       {"start", "stop"},
    {"start", "finish"},  {"begin", "end"},        {"enter", "exit"},
    {"entry", "exit"},    {"enter", "leave"},      {"req", "acq"},
    {"request", "reply"}, {"request", "response"}, {"submit", "complete"},
    {"submit", "done"},   {"queued", "completed"}, {"dispatched", "completed"},
    {"lock", "unlock"},   {"alloc", "free"},       {"malloc", "free"},
    {"open", "close"},    {"began", "finished"},   {"func_entry", "func_exit"},
    {"send", "receive"},  {"started", "finished"}, {"acquire", "release"},
};

static const struct kind *events_find(struct events *events, struct text name)
{
    struct kind *kind;

    table_find(kind, &events->kinds, hash_text(events->kinds.seed, name), in_table,
               text_equal(kind->name, name));
    return kind;
}

/* Returns the kind whose name has pair[1] where this kind's name has pair[0]; NULL: none. */
static const struct kind *events_partner(struct events *events, const struct kind *kind,
                                         const char *const pair[2])
{
    const char *at = strstr(kind->name.data, pair[0]);
    char name[512];
    int length;

    if (!at)
        return NULL;
    length = snprintf(name, sizeof(name), "%.*s%s%s", (int)(at - kind->name.data), kind->name.data,
                      pair[1], at + strlen(pair[0]));
    return length > 0 && length < (int)sizeof(name)
               ? events_find(events, (struct text){name, (size_t)length})
               : NULL;
}

static bool events_has_field(const struct kind *kind, struct text field)
{
    for (size_t i = 0; i < kind->field_count; i++) {
        if (text_equal(kind->fields[i], field))
            return true;
    }
    return false;
}

static void events_propose(const struct kind *begin, const struct kind *end)
{
    const char *colon = strchr(begin->name.data, ':');
    const char *before = "key = ";

    printf("\n[span %s]\nbegin = %s\nend = %s\n", colon ? colon + 1 : begin->name.data,
           begin->name.data, end->name.data);
    for (size_t i = 0; i < begin->field_count; i++) {
        if (!events_has_field(end, begin->fields[i]))
            continue;
        printf("%s%s", before, begin->fields[i].data);
        before = " ";
    }
    printf("%s%s\n", before[0] == ' ' ? "\n" : "", begin->has_thread ? "parent = thread" : "");
}

static int events_compare(const void *a, const void *b)
{
    const struct kind *first = *(const struct kind *const *)a;
    const struct kind *second = *(const struct kind *const *)b;

    return first->count != second->count ? (first->count < second->count ? 1 : -1)
                                         : text_compare(first->name, second->name);
}

static void events_print(struct events *events)
{
    const struct kind **sorted =
        (const struct kind **)calloc(events->kinds.count + 1, sizeof(*sorted));
    struct kind *kind;
    size_t count = 0;

    table_for_each(kind, &events->kinds, in_table)
    {
        /* the author of a trace chooses the names, and a terminal shows them */
        string_make_plain((char *)(uintptr_t)kind->name.data);
        for (size_t i = 0; i < kind->field_count; i++)
            string_make_plain((char *)(uintptr_t)kind->fields[i].data);
        if (sorted)
            sorted[count++] = kind;
    }
    if (count)
        qsort((void *)sorted, count, sizeof(*sorted), events_compare);
    puts("# times, event, fields");
    for (size_t i = 0; i < count; i++) {
        printf("%10" PRIu64 "  %s ", sorted[i]->count, sorted[i]->name.data);
        for (size_t field = 0; field < sorted[i]->field_count; field++)
            printf(" %s", sorted[i]->fields[field].data);
        putchar('\n');
    }
    if (events->left_out)
        printf("%10" PRIu64 "  with other names, for which there is no room\n", events->left_out);
    puts("\n# A proposal, made from the names alone: choose the key fields yourself.");
    for (size_t i = 0; i < count; i++) {
        const struct kind *end = NULL;

        for (size_t k = 0; !end && k < sizeof(events_pairs) / sizeof(events_pairs[0]); k++)
            end = events_partner(events, sorted[i], events_pairs[k]);
        if (end && end != sorted[i])
            events_propose(sorted[i], end);
    }
    free((void *)sorted);
    fflush(stdout);
}

/* ---- the component --------------------------------------------------------------------------- */

static struct events *events_of(bt_self_component_sink *self)
{
    return bt_self_component_get_data(bt_self_component_sink_as_self_component(self));
}

#define EVENT_SECONDS_MAX 86400

/* Reads the parameter "seconds", counted from now. Returns false for an invalid value. */
static bool events_read_end(struct events *events, const bt_value *params)
{
    const bt_value *seconds = bt_value_map_borrow_entry_value_const(params, "seconds");
    int64_t count;

    events->end_ms = INT64_MAX;
    if (!seconds)
        return true;
    if (!bt_value_is_signed_integer(seconds))
        return false;
    count = bt_value_integer_signed_get(seconds);
    if (count < 1 || count > EVENT_SECONDS_MAX)
        return false;
    events->end_ms = clock_ms() + count * 1000;
    return true;
}

bt_component_class_initialize_method_status
events_initialize(bt_self_component_sink *self, bt_self_component_sink_configuration *configuration,
                  const bt_value *params, void *data)
{
    struct events *events = calloc(1, sizeof(*events));

    (void)configuration;
    (void)data;
    if (!events || !table_init(&events->kinds)) {
        free(events);
        return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_MEMORY_ERROR;
    }
    if (!events_read_end(events, params)) {
        table_destroy(&events->kinds, NULL);
        free(events);
        BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_COMPONENT(
            bt_self_component_sink_as_self_component(self), "seconds: expected a number of 1 to %d",
            EVENT_SECONDS_MAX);
        return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_ERROR;
    }
    bt_self_component_set_data(bt_self_component_sink_as_self_component(self), events);
    return (bt_component_class_initialize_method_status)bt_self_component_sink_add_input_port(
        self, "in", NULL, NULL);
}

bt_component_class_sink_graph_is_configured_method_status
events_graph_is_configured(bt_self_component_sink *self)
{
    return (bt_component_class_sink_graph_is_configured_method_status)
        bt_message_iterator_create_from_sink_component(
            self, bt_self_component_sink_borrow_input_port_by_index(self, 0),
            &events_of(self)->iterator);
}

bt_component_class_sink_consume_method_status events_consume(bt_self_component_sink *self)
{
    struct events *events = events_of(self);
    bt_message_array_const messages;
    uint64_t count;
    const bt_message_iterator_next_status status =
        bt_message_iterator_next(events->iterator, &messages, &count);

    for (uint64_t i = 0; status == BT_MESSAGE_ITERATOR_NEXT_STATUS_OK && i < count; i++) {
        if (bt_message_get_type(messages[i]) == BT_MESSAGE_TYPE_EVENT)
            events_count(events, messages[i]);
        bt_message_put_ref(messages[i]);
    }
    if (status < 0 && events->kinds.count)
        events_print(events); /* the events that could be read */
    if (status < 0 || (status != BT_MESSAGE_ITERATOR_NEXT_STATUS_END &&
                       (events->end_ms == INT64_MAX || clock_ms() < events->end_ms)))
        return (bt_component_class_sink_consume_method_status)status;
    events_print(events);
    return BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_END;
}

void events_finalize(bt_self_component_sink *self)
{
    struct events *events = events_of(self);

    bt_message_iterator_put_ref(events->iterator);
    table_destroy(&events->kinds, events_free_kind);
    free(events);
}
