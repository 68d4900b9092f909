/*
 * Decodes fields by cached index. A stream's table of event classes grows with the classes of
 * events that were read, not with the classes in the metadata.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "decode.h"

#include "babeltrace-plugin/base/hash.h"

#include <stdlib.h>

enum field_type { FIELD_TEXT, FIELD_INTEGER };

/* A field of an event kind, and its offset in struct event. */
struct event_field {
    const char *name;
    enum field_type type;
    size_t offset;
};

#define TEXT_FIELD(name, member)                         \
    {                                                    \
        name, FIELD_TEXT, offsetof(struct event, member) \
    }
#define INTEGER_FIELD(name, member)                         \
    {                                                       \
        name, FIELD_INTEGER, offsetof(struct event, member) \
    }

#define COMMON_FIELDS                                                                              \
    TEXT_FIELD("trace_name", span_name), TEXT_FIELD("service_name", service),                      \
        INTEGER_FIELD("port_no", port), TEXT_FIELD("ip", ip), INTEGER_FIELD("trace_id", trace_id), \
        INTEGER_FIELD("span_id", span_id), INTEGER_FIELD("parent_span_id", parent_id)

#define THREAD INTEGER_FIELD("thread", thread), INTEGER_FIELD("sequence", sequence)

/* `log` has the packed text until packed_decode() splits it. */
#define PACKED_FIELD TEXT_FIELD("packed", log)

#define LAYOUT_FIELDS_MAX 9

enum layout_form { LAYOUT_PLAIN, LAYOUT_PACKED };

struct event_layout {
    const char *event_name;
    enum event_kind kind;
    enum layout_form form;
    struct event_field fields[LAYOUT_FIELDS_MAX + 1]; /* the last element has no name */
};

#define LAYOUT(name, kind, form, ...) \
    {                                 \
        name, kind, form,             \
        {                             \
            __VA_ARGS__               \
        }                             \
    }

#define ANNOTATION(severity)                                              \
    LAYOUT("blkin:annotation_" severity, EVENT_ANNOTATION, LAYOUT_PACKED, \
           INTEGER_FIELD("trace_id", trace_id), PACKED_FIELD, TEXT_FIELD("text", value))

static const struct event_layout layouts[] = {
    LAYOUT("zipkin:timestamp", EVENT_TIMESTAMP, LAYOUT_PLAIN, COMMON_FIELDS,
           TEXT_FIELD("event", value)),
    LAYOUT("zipkin:keyval_string", EVENT_KEYVAL_TEXT, LAYOUT_PLAIN, COMMON_FIELDS,
           TEXT_FIELD("key", key), TEXT_FIELD("val", value)),
    LAYOUT("zipkin:keyval_integer", EVENT_KEYVAL_INTEGER, LAYOUT_PLAIN, COMMON_FIELDS,
           TEXT_FIELD("key", key), INTEGER_FIELD("val", integer)),
    LAYOUT("blkin:span", EVENT_SPAN, LAYOUT_PACKED, INTEGER_FIELD("trace_id", trace_id),
           INTEGER_FIELD("parent_id", parent_id), INTEGER_FIELD("duration", duration_ns),
           INTEGER_FIELD("flags", flags), TEXT_FIELD("name", span_name), PACKED_FIELD,
           TEXT_FIELD("service", service)),
    LAYOUT("blkin:begin", EVENT_BEGIN, LAYOUT_PACKED, INTEGER_FIELD("trace_id", trace_id),
           INTEGER_FIELD("parent_id", parent_id), INTEGER_FIELD("flags", flags),
           TEXT_FIELD("name", span_name), PACKED_FIELD, TEXT_FIELD("service", service)),
    ANNOTATION("emerg"),
    ANNOTATION("alert"),
    ANNOTATION("crit"),
    ANNOTATION("err"),
    ANNOTATION("warning"),
    ANNOTATION("notice"),
    ANNOTATION("info"),
    ANNOTATION("debug"),
    LAYOUT("blkin:tag", EVENT_TAG, LAYOUT_PACKED, INTEGER_FIELD("trace_id", trace_id),
           PACKED_FIELD),
    LAYOUT("blkin:end", EVENT_END, LAYOUT_PACKED, INTEGER_FIELD("trace_id", trace_id),
           PACKED_FIELD),
    LAYOUT("blkin:process", EVENT_PROCESS, LAYOUT_PLAIN, INTEGER_FIELD("realtime", realtime),
           INTEGER_FIELD("pid", origin.pid), THREAD),
    LAYOUT("blkin:metric", EVENT_METRIC, LAYOUT_PLAIN, INTEGER_FIELD("monotonic", age_ns), THREAD,
           INTEGER_FIELD("period_ms", period_ms), TEXT_FIELD("group", group),
           TEXT_FIELD("instance", instance), TEXT_FIELD("names", names),
           TEXT_FIELD("values", values)),
    /* the original's oldest library had one event for all tags */
    LAYOUT("zipkin:keyval", EVENT_KEYVAL_TEXT, LAYOUT_PLAIN, COMMON_FIELDS, TEXT_FIELD("key", key),
           TEXT_FIELD("val", value)),
};

/* From a member of the payload to a member of struct event. */
struct move {
    uint16_t index;
    uint16_t offset;
};

/* Fields of one type. */
struct moves {
    unsigned count;
    struct move moves[LAYOUT_FIELDS_MAX];
};

/* The decoding of an event class. */
struct decode_plan {
    struct table_link in_table;
    const struct stream_decoder *decoder;
    const bt_event_class *class; /* lives as long as the stream */
    enum decoded result;         /* DECODED: the members below are valid */
    enum event_kind kind;
    bool is_packed;
    unsigned moment_bits; /* how many low bits of a clock value the event has, in age_ns; 0: the
                             event has no moment */
    struct text severity; /* of EVENT_ANNOTATION; empty for info */
    struct moves texts;
    struct moves signed_integers;
    struct moves unsigned_integers;
    struct rule_fields_plan *rule; /* of EVENT_RULE */
};

struct stream_decoder {
    struct table_link in_table; /* of streams */
    const bt_stream *stream;
    struct table plans;    /* by event class */
    uint64_t classes_seen; /* event classes of the stream class that has_ours covers */
    bool has_ours;
    bool has_clock;    /* false: events have no time */
    bool is_monotonic; /* LTTng's own clock: CLOCK_MONOTONIC in ns */
    struct origin_fields origin;
    int process_index;   /* in the common context; -1: not there */
    struct rules *rules; /* NULL: no rules */
};

static int context_index(const bt_field_class *context, const char *name, bt_field_class_type type)
{
    const uint64_t count = context ? bt_field_class_structure_get_member_count(context) : 0;

    for (uint64_t i = 0; i < count && i < INT16_MAX; i++) {
        const bt_field_class_structure_member *member =
            bt_field_class_structure_borrow_member_by_index_const(context, i);

        if (strcmp(bt_field_class_structure_member_get_name(member), name) == 0)
            return bt_field_class_type_is(
                       bt_field_class_get_type(
                           bt_field_class_structure_member_borrow_field_class_const(member)),
                       type)
                       ? (int)i
                       : -1;
    }
    return -1;
}

/* Returns the clock's offset. Its unit is ns, as LTTng's clock has a frequency of 1 GHz. */
static int64_t clock_of(const bt_clock_class *clock)
{
    int64_t seconds;
    uint64_t cycles;

    if (!clock)
        return 0;
    bt_clock_class_get_offset(clock, &seconds, &cycles);
    return (int64_t)((uint64_t)seconds * 1000000000 + cycles);
}

static bool is_monotonic(const bt_clock_class *clock)
{
    const char *name = clock ? bt_clock_class_get_name(clock) : NULL;

    return name && strcmp(name, "monotonic") == 0 &&
           bt_clock_class_get_frequency(clock) == UINT64_C(1000000000);
}

/* Returns NULL when out of memory. */
static struct stream_decoder *stream_decoder_new(const bt_stream *stream, struct rules *rules)
{
    const bt_stream_class *class = bt_stream_borrow_class_const(stream);
    const bt_field_class *context =
        bt_stream_class_borrow_event_common_context_field_class_const(class);
    const bt_value *host = bt_trace_borrow_environment_entry_value_by_name_const(
        bt_stream_borrow_trace_const(stream), "hostname");
    const bt_clock_class *clock;
    struct stream_decoder *decoder = calloc(1, sizeof(*decoder));

    if (!decoder || !table_init(&decoder->plans)) {
        free(decoder);
        return NULL;
    }
    clock = bt_stream_class_borrow_default_clock_class_const(class);
    decoder->stream = stream;
    decoder->rules = rules;
    decoder->has_clock = clock != NULL;
    decoder->is_monotonic = is_monotonic(clock);
    decoder->origin.origin = (struct origin){
        .host = text_of(host && bt_value_is_string(host) ? bt_value_string_get(host) : NULL),
        .clock = clock_of(clock)};
    decoder->process_index = context_index(context, "procname", BT_FIELD_CLASS_TYPE_STRING);
    decoder->origin.pid_index = context_index(context, "vpid", BT_FIELD_CLASS_TYPE_SIGNED_INTEGER);
    decoder->origin.tid_index = context_index(context, "vtid", BT_FIELD_CLASS_TYPE_SIGNED_INTEGER);
    decoder->origin.pid_ns_index =
        context_index(context, "pid_ns", BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER);
    return decoder;
}

static void free_plan(struct table_link *link)
{
    struct decode_plan *plan = caa_container_of(link, struct decode_plan, in_table);

    rule_fields_free(plan->rule);
    free(plan);
}

static void stream_decoder_free(struct table_link *link)
{
    struct stream_decoder *decoder = caa_container_of(link, struct stream_decoder, in_table);

    table_destroy(&decoder->plans, free_plan);
    free(decoder);
}

struct origin stream_decoder_origin(const struct stream_decoder *decoder)
{
    return decoder->origin.origin;
}

/* Returns NULL for events of other providers, and for blkin:slow. */
static const struct event_layout *find_layout(const char *event_name)
{
    for (size_t i = 0; event_name && i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        if (strcmp(event_name, layouts[i].event_name) == 0)
            return &layouts[i];
    }
    return NULL;
}

/* Returns the moves for a field of this type; NULL: the event's member has another type. */
static struct moves *moves_for(struct decode_plan *plan, enum field_type type,
                               const bt_field_class *class)
{
    const bt_field_class_type class_type = bt_field_class_get_type(class);

    if (type == FIELD_TEXT)
        return class_type == BT_FIELD_CLASS_TYPE_STRING ? &plan->texts : NULL;
    if (bt_field_class_type_is(class_type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER))
        return &plan->signed_integers;
    if (bt_field_class_type_is(class_type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER))
        return &plan->unsigned_integers;
    return NULL;
}

static bool plan_field(struct decode_plan *plan, const struct event_field *field,
                       const bt_field_class *payload)
{
    const uint64_t count = bt_field_class_structure_get_member_count(payload);

    for (uint64_t index = 0; index < count && index <= UINT16_MAX; index++) {
        const bt_field_class_structure_member *member =
            bt_field_class_structure_borrow_member_by_index_const(payload, index);
        struct moves *moves;

        if (strcmp(bt_field_class_structure_member_get_name(member), field->name) != 0)
            continue;
        moves = moves_for(plan, field->type,
                          bt_field_class_structure_member_borrow_field_class_const(member));
        if (!moves)
            return false;
        moves->moves[moves->count++] = (struct move){(uint16_t)index, (uint16_t)field->offset};
        return true;
    }
    return false;
}

static bool plan_layout(struct decode_plan *plan, const struct event_layout *layout,
                        const bt_field_class *payload)
{
    plan->kind = layout->kind;
    plan->is_packed = layout->form == LAYOUT_PACKED;
    plan->moment_bits = plan->is_packed                ? PACKED_MOMENT_BITS
                        : layout->kind == EVENT_METRIC ? 64
                                                       : 0;
    if (layout->kind == EVENT_ANNOTATION) {
        plan->severity = text_of(layout->event_name + strlen("blkin:annotation_"));
        if (text_is(plan->severity, "info"))
            plan->severity = (struct text){"", 0};
    }
    for (const struct event_field *field = layout->fields; field->name; field++) {
        if (!plan_field(plan, field, payload))
            return false;
    }
    return true;
}

/* Finds a rule that names a foreign event. */
static enum decoded plan_rule(struct decode_plan *plan, struct rules *rules, const char *name)
{
    const struct rule_class *class;
    bool has_no_memory = false;

    if (!rules || !name)
        return DECODED_FOREIGN;
    class = rules_class(rules, text_of(name), &has_no_memory);
    if (!class)
        return has_no_memory ? DECODED_NO_MEMORY : DECODED_FOREIGN;
    plan->kind = EVENT_RULE;
    plan->rule = rule_fields_new(rules, class, plan->class);
    return plan->rule ? DECODED : DECODED_NO_MEMORY;
}

static enum decoded make_plan(struct decode_plan *plan, struct rules *rules)
{
    const bt_field_class *payload = bt_event_class_borrow_payload_field_class_const(plan->class);
    const char *name = bt_event_class_get_name(plan->class);
    const struct event_layout *layout = find_layout(name);

    if (name && strcmp(name, "blkin:slow") == 0)
        return DECODED_ALARM;
    if (!layout)
        return plan_rule(plan, rules, name);
    return payload && plan_layout(plan, layout, payload) ? DECODED : DECODED_UNREADABLE;
}

/* Returns NULL when out of memory. */
static const struct decode_plan *add_plan(struct stream_decoder *decoder,
                                          const bt_event_class *class, uint64_t hash)
{
    struct decode_plan *plan = calloc(1, sizeof(*plan));

    if (!plan)
        return NULL;
    plan->decoder = decoder;
    plan->class = class;
    plan->result = make_plan(plan, decoder->rules);
    if (plan->result == DECODED && !decoder->has_clock)
        plan->result = DECODED_UNREADABLE;
    table_add(&decoder->plans, &plan->in_table, hash);
    return plan;
}

/* Returns NULL when out of memory. */
static const struct decode_plan *stream_decoder_plan(struct stream_decoder *decoder,
                                                     const bt_event_class *class)
{
    /* a trace cannot choose the addresses of classes, so the upper bits of a product are enough */
    const uint64_t hash = (uint64_t)(uintptr_t) class * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    const struct decode_plan *plan;

    table_find(plan, &decoder->plans, hash, in_table, plan->class == class);
    return plan ? plan : add_plan(decoder, class, hash);
}

static bool is_used(const struct stream_decoder *decoder, const char *event_name)
{
    bool has_no_memory = false;

    return find_layout(event_name) ||
           (decoder->rules && event_name &&
            rules_class(decoder->rules, text_of(event_name), &has_no_memory));
}

bool stream_decoder_has_ours(struct stream_decoder *decoder, const bt_stream *stream)
{
    const bt_stream_class *class = bt_stream_borrow_class_const(stream);
    const uint64_t count = bt_stream_class_get_event_class_count(class);

    for (; !decoder->has_ours && decoder->classes_seen < count; decoder->classes_seen++)
        decoder->has_ours = is_used(
            decoder, bt_event_class_get_name(bt_stream_class_borrow_event_class_by_index_const(
                         class, decoder->classes_seen)));
    return decoder->has_ours;
}

/* ---- the table of streams -------------------------------------------------------------------- */

struct streams *streams_new(struct rules *rules)
{
    struct streams *streams = calloc(1, sizeof(*streams));

    if (!streams || !table_init(&streams->table)) {
        free(streams);
        return NULL;
    }
    streams->rules = rules;
    return streams;
}

void streams_free(struct streams *streams)
{
    if (!streams)
        return;
    table_destroy(&streams->table, stream_decoder_free);
    free(streams);
}

static struct stream_decoder *streams_find(const struct streams *streams, const bt_stream *stream,
                                           uint64_t *hash)
{
    struct stream_decoder *decoder;

    *hash = hash_number(streams->table.seed, (uintptr_t)stream);
    table_find(decoder, &streams->table, *hash, in_table, decoder->stream == stream);
    return decoder;
}

struct stream_decoder *streams_decoder(struct streams *streams, const bt_stream *stream)
{
    uint64_t hash;
    struct stream_decoder *decoder = streams_find(streams, stream, &hash);

    if (decoder)
        return decoder;
    decoder = stream_decoder_new(stream, streams->rules);
    if (decoder)
        table_add(&streams->table, &decoder->in_table, hash);
    return decoder;
}

const struct decode_plan *streams_find_plan(struct streams *streams, struct recent_class *recent,
                                            const bt_event *event)
{
    const bt_event_class *class = bt_event_borrow_class_const(event);
    struct stream_decoder *decoder = streams_decoder(streams, bt_event_borrow_stream_const(event));
    const struct decode_plan *plan = decoder ? stream_decoder_plan(decoder, class) : NULL;

    if (plan)
        *recent = (struct recent_class){class, plan};
    return plan;
}

void streams_end(struct streams *streams, const bt_stream *stream)
{
    uint64_t hash;
    struct stream_decoder *decoder = streams_find(streams, stream, &hash);

    if (!decoder)
        return;
    memset(streams->recent, 0, sizeof(streams->recent)); /* may have plans of this decoder */
    table_remove(&streams->table, &decoder->in_table);
    stream_decoder_free(&decoder->in_table);
}

/* ---- events ---------------------------------------------------------------------------------- */

static struct text read_text(const bt_field *field)
{
    return (struct text){bt_field_string_get_value(field), bt_field_string_get_length(field)};
}

static const bt_field *member(const bt_field *structure, uint64_t index)
{
    return bt_field_structure_borrow_member_field_by_index_const(structure, index);
}

static void read_payload(struct event *event, const struct decode_plan *plan,
                         const bt_field *payload)
{
    char *const base = (char *)event;

    for (unsigned i = 0; i < plan->texts.count; i++) {
        const struct move move = plan->texts.moves[i];

        *(struct text *)(base + move.offset) = read_text(member(payload, move.index));
    }
    for (unsigned i = 0; i < plan->unsigned_integers.count; i++) {
        const struct move move = plan->unsigned_integers.moves[i];

        *(uint64_t *)(base + move.offset) =
            bt_field_integer_unsigned_get_value(member(payload, move.index));
    }
    for (unsigned i = 0; i < plan->signed_integers.count; i++) {
        const struct move move = plan->signed_integers.moves[i];

        *(int64_t *)(base + move.offset) =
            bt_field_integer_signed_get_value(member(payload, move.index));
    }
}

/* Returns how long before `now` the moment was. Returns 0 for an impossible moment, and without
 * LTTng's own clock. */
static int64_t age_at(const struct stream_decoder *decoder, const bt_clock_snapshot *now,
                      int64_t moment_ns, unsigned bits)
{
    int64_t age_ns;

    return decoder->is_monotonic &&
                   moment_age(bt_clock_snapshot_get_value(now), (uint64_t)moment_ns, bits, &age_ns)
               ? age_ns
               : 0;
}

__attribute__((noinline)) static enum decoded decode_ours(const struct decode_plan *plan,
                                                          const bt_message *message,
                                                          const bt_event *bt_event,
                                                          struct event *event)
{
    const struct stream_decoder *decoder = plan->decoder;
    const bt_clock_snapshot *now = bt_message_event_borrow_default_clock_snapshot_const(message);
    const bt_field *payload;
    enum decoded decoded;

    if (!time_of_snapshot(now, &event->time_ns))
        return DECODED_UNREADABLE;
    payload = bt_event_borrow_payload_field_const(bt_event);
    event->kind = plan->kind;
    event->trace_id_high = 0; /* the original's events have none */
    event->key = plan->severity;
    origin_read(&decoder->origin, bt_event, &event->origin);
    if (decoder->process_index >= 0)
        event->origin.process =
            read_text(member(bt_event_borrow_common_context_field_const(bt_event),
                             (uint64_t)decoder->process_index));
    read_payload(event, plan, payload);
    if (plan->kind == EVENT_METRIC)
        event_hide_dashes(event);
    if (plan->is_packed) {
        event->span_kind = event->flags >> 8;
        event->flags &= 0xff;
        decoded = packed_decode(event);
        if (decoded != DECODED)
            return decoded;
    }
    if (plan->moment_bits)
        event->age_ns = age_at(decoder, now, event->age_ns, plan->moment_bits);
    return DECODED;
}

enum decoded decode_event(const struct decode_plan *plan, const bt_message *message,
                          const bt_event *bt_event, struct event *event)
{
    if (plan->result != DECODED)
        return plan->result;
    return plan->rule
               ? rule_fields_decode(plan->rule, &plan->decoder->origin, message, bt_event, event)
               : decode_ours(plan, message, bt_event, event);
}
