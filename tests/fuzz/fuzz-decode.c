/*
 * Fuzzes the decoder with all that a trace may describe and have: event classes of any name, with
 * any fields of any types, contexts and clocks or none, many streams that come and go. A source
 * component makes them through libbabeltrace2 itself, as the decoder sees those of a trace.
 *
 * The decoded values must be the given ones. An event with all fields of the format must be
 * decoded. An event with an unknown name must be foreign.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

/* libFuzzer chooses inputs by their coverage of the product, not of this file */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

#include "babeltrace-plugin/decode/input.h"
#include "source_graph.h"

#include "tracepoints/format/events.h"

#include <inttypes.h>
#include <babeltrace2/babeltrace.h>

static struct fuzz source;

/* ---- fields ---- */

enum type {
    TYPE_STRING,
    TYPE_SIGNED,
    TYPE_UNSIGNED,
    TYPE_ENUM,
    TYPE_BOOL,
    TYPE_REAL,
    TYPE_STRUCTURE,
    TYPE_ARRAY,
    TYPES
};

/* The names with a meaning, their meaning, and their place in struct event: -1 is not checked. */
static const struct known_field {
    const char *name;
    bool is_text;
    int offset;
} known_fields[] = {
#define DECODE_NUMBER(name, member)                      \
    {                                                    \
        name, false, (int)offsetof(struct event, member) \
    }
#define DECODE_TEXT(name, member)                       \
    {                                                   \
        name, true, (int)offsetof(struct event, member) \
    }
    DECODE_NUMBER("trace_id", trace_id),
    DECODE_NUMBER("span_id", span_id),
    DECODE_NUMBER("parent_span_id", parent_id),
    DECODE_NUMBER("port_no", port),
    DECODE_TEXT("trace_name", span_name),
    DECODE_TEXT("service_name", service),
    DECODE_TEXT("ip", ip),
    DECODE_TEXT("key", key),
    {"event", true, -1},
    {"val", true, -1}, /* a number in zipkin:keyval_integer */
    DECODE_NUMBER("parent_id", parent_id),
    DECODE_NUMBER("duration", duration_ns),
    DECODE_NUMBER("thread", thread),
    DECODE_NUMBER("sequence", sequence),
    {"flags", false, -1},
    DECODE_TEXT("name", span_name),
    DECODE_TEXT("service", service),
    DECODE_TEXT("text", value),
    DECODE_NUMBER("realtime", realtime),
    {"pid", false, -1},
    {"monotonic", false, -1},
    {"packed", true, -1},
    DECODE_NUMBER("period_ms", period_ms),
    DECODE_TEXT("group", group),
    DECODE_TEXT("instance", instance),
    DECODE_TEXT("names", names),
    DECODE_TEXT("values", values),
};
#define KNOWN (sizeof(known_fields) / sizeof(known_fields[0]))

static const char *const event_names[] = {
    "zipkin:timestamp",
    "zipkin:keyval_string",
    "zipkin:keyval_integer",
    "zipkin:keyval",
    "blkin:span",
    "blkin:begin",
    "blkin:annotation_info",
    "blkin:annotation_emerg",
    "blkin:tag",
    "blkin:end",
    "blkin:process",
    "blkin:slow",
    "blkin:metric",
};
#define DECODE_NAMES (sizeof(event_names) / sizeof(event_names[0]))

/* The fields that were given to one event. */
#define DECODE_FIELDS_MAX 40

struct member {
    char name[24];
    const struct known_field *known; /* NULL: an unknown name */
    enum type type;
    uint64_t number;
    char text[96];
};

struct class
{
    const bt_event_class *class;
    bool is_ours;
    bool is_whole; /* every field that the format has for the event */
    unsigned count;
    struct member members[DECODE_FIELDS_MAX];
};

static bt_field_class *field_class_of(bt_trace_class *trace_class, enum type type)
{
    bt_field_class *inner, *class;

    switch (type) {
    case TYPE_STRING:
        return bt_field_class_string_create(trace_class);
    case TYPE_SIGNED:
        return bt_field_class_integer_signed_create(trace_class);
    case TYPE_UNSIGNED:
        return bt_field_class_integer_unsigned_create(trace_class);
    case TYPE_ENUM:
        return bt_field_class_enumeration_unsigned_create(trace_class);
    case TYPE_BOOL:
        return bt_field_class_bool_create(trace_class);
    case TYPE_REAL:
        return bt_field_class_real_double_precision_create(trace_class);
    case TYPE_STRUCTURE:
        return bt_field_class_structure_create(trace_class);
    default:
        inner = bt_field_class_integer_unsigned_create(trace_class);
        class = bt_field_class_array_static_create(trace_class, inner, 3);
        bt_field_class_put_ref(inner);
        return class;
    }
}

static bool has_member(const struct class *class, const char *name)
{
    for (unsigned i = 0; i < class->count; i++) {
        if (strcmp(class->members[i].name, name) == 0)
            return true;
    }
    return false;
}

static void add_member(bt_trace_class *trace_class, bt_field_class *structure, struct class *class,
                       const char *name, const struct known_field *known, enum type type)
{
    struct member *member = &class->members[class->count];
    bt_field_class *field_class;

    if (class->count == DECODE_FIELDS_MAX || has_member(class, name))
        return;
    *member = (struct member){.known = known, .type = type};
    snprintf(member->name, sizeof(member->name), "%s", name);
    field_class = field_class_of(trace_class, type);
    REQUIRE(bt_field_class_structure_append_member(structure, name, field_class) ==
            BT_FIELD_CLASS_STRUCTURE_APPEND_MEMBER_STATUS_OK);
    bt_field_class_put_ref(field_class);
    class->count++;
}

static void add_any_member(bt_trace_class *trace_class, bt_field_class *structure,
                           struct class *class)
{
    const uint64_t choice = take(&source, 1);
    const struct known_field *known = choice < 240 ? &known_fields[choice % KNOWN] : NULL;
    const uint64_t type = take(&source, 1);
    char name[4] = {(char)('a' + choice % 16), (char)('a' + class->count % 26), '\0'};

    add_member(trace_class, structure, class, known ? known->name : name, known,
               type < 32 || !known ? (enum type)(type % TYPES)
               : known->is_text    ? TYPE_STRING
               : type & 1          ? TYPE_SIGNED
                                   : TYPE_UNSIGNED);
}

/* Writes a packed text of any length; fuzz-packed covers its contents. */
static unsigned put_packed(char *text)
{
    const uint64_t choice = take(&source, 1);
    const size_t length = choice & 1   ? BLKIN_HEAD_SIZE + BLKIN_TAIL_SIZE
                          : choice & 2 ? BLKIN_DETAIL_HEAD_SIZE
                                       : choice % 70;

    memset(text, '0', length);
    if (length > 0)
        text[0] = (char)('0' + BLKIN_FORMAT_VERSION + (choice >= 252));
    if (length > 3)
        text[1 + choice % (length - 3)] += (char)(choice % 16);
    return (unsigned)length;
}

static unsigned put_any_text(char *text)
{
    unsigned length = 0;

    for (uint64_t left = take(&source, 1) % 16; left; left--) {
        const char byte = (char)take(&source, 1);

        if (byte)
            text[length++] = byte;
    }
    return length;
}

static void put_member(bt_field *field, struct member *member)
{
    unsigned length;

    switch (member->type) {
    case TYPE_STRING:
        length = strcmp(member->name, "packed") == 0 ? put_packed(member->text)
                                                     : put_any_text(member->text);
        member->text[length] = '\0';
        REQUIRE(bt_field_string_set_value(field, member->text) ==
                BT_FIELD_STRING_SET_VALUE_STATUS_OK);
        break;
    case TYPE_SIGNED:
        member->number = take(&source, 1) % 4 ? take(&source, 1) : take(&source, 8);
        bt_field_integer_signed_set_value(field, (int64_t)member->number);
        break;
    case TYPE_UNSIGNED:
    case TYPE_ENUM:
        member->number = take(&source, 1) % 4 ? take(&source, 1) : take(&source, 8);
        bt_field_integer_unsigned_set_value(field, member->number);
        break;
    case TYPE_BOOL:
        bt_field_bool_set_value(field, BT_TRUE);
        break;
    case TYPE_REAL:
        bt_field_real_double_precision_set_value(field, 0.1);
        break;
    case TYPE_ARRAY:
        for (uint64_t i = 0; i < 3; i++)
            bt_field_integer_unsigned_set_value(
                bt_field_array_borrow_element_field_by_index(field, i), i);
        break;
    default:
        break;
    }
}

static void put_members(bt_field *structure, struct class *class)
{
    for (unsigned i = 0; structure && i < class->count; i++)
        put_member(bt_field_structure_borrow_member_field_by_index(structure, i),
                   &class->members[i]);
}

/* ---- classes ---- */

static bool is_number(const struct member *member)
{
    return member->type == TYPE_SIGNED || member->type == TYPE_UNSIGNED ||
           member->type == TYPE_ENUM;
}

/* Adds all members of our events; "val" is a text or a number. */
static void add_all_members(bt_trace_class *trace_class, bt_field_class *payload,
                            struct class *class, bool val_is_number)
{
    static const enum type numbers[] = {TYPE_UNSIGNED, TYPE_SIGNED, TYPE_ENUM, TYPE_UNSIGNED};
    const uint64_t choice = take(&source, 1);

    for (size_t i = 0; i < KNOWN; i++) {
        const struct known_field *known = &known_fields[i];
        const bool is_text = known->is_text && !(val_is_number && !strcmp(known->name, "val"));

        add_member(trace_class, payload, class, known->name, known,
                   is_text ? TYPE_STRING : numbers[(choice >> i % 7) & 3]);
    }
}

/* Returns whether the field must have a well-formed text. */
static bool is_packed(const char *name)
{
    return strncmp(name, "blkin:", 6) == 0 && strcmp(name, "blkin:process") != 0 &&
           strcmp(name, "blkin:metric") != 0;
}

static void make_event_class(bt_trace_class *trace_class, bt_stream_class *stream_class,
                             struct class *class)
{
    bt_event_class *event_class = bt_event_class_create(stream_class);
    const uint64_t choice = take(&source, 1), shape = take(&source, 1);
    const char *name = event_names[choice % DECODE_NAMES];
    bt_field_class *payload;
    char other[40];

    *class = (struct class){.class = event_class, .is_ours = choice < 220};
    if (class->is_ours) {
        (void)bt_event_class_set_name(event_class, name);
    } else if (choice < 250) {
        snprintf(other, sizeof(other), "%.*sx", (int)(shape % 16), name);
        (void)bt_event_class_set_name(event_class, other);
    }
    if (shape < 16)
        return;
    payload = bt_field_class_structure_create(trace_class);
    class->is_whole = shape >= 128;
    if (class->is_whole)
        add_all_members(trace_class, payload, class, strcmp(name, "zipkin:keyval_integer") == 0);
    else
        for (uint64_t i = shape % 24; i; i--)
            add_any_member(trace_class, payload, class);
    if (is_packed(name))
        class->is_whole = false;
    (void)bt_event_class_set_payload_field_class(event_class, payload);
    bt_field_class_put_ref(payload);
}

/* ---- one execution ---- */

#define CLASSES_MAX        20
#define DECODE_STREAMS_MAX 8

static struct streams *streams; /* of all executions, because addresses are used again */
static struct class classes[CLASSES_MAX];
static struct class context;
static uint64_t checksum;
static bool is_clock_sane; /* times in ns, not far from the epoch */

static void touch(struct text text)
{
    for (size_t i = 0; i < text.length; i++)
        checksum += (unsigned char)text.data[i];
}

static void check_member(const struct member *member, const struct event *event)
{
    const char *at;

    if (!member->known || member->known->offset < 0)
        return;
    at = (const char *)event + member->known->offset;
    if (member->known->is_text && member->type == TYPE_STRING) {
        struct text text;

        memcpy(&text, at, sizeof(text));
        REQUIRE(text_is(text, member->text) ||
                (text.length == 0 && strcmp(member->text, "-") == 0));
    } else if (!member->known->is_text && is_number(member)) {
        uint64_t number;

        memcpy(&number, at, sizeof(number));
        REQUIRE(number == member->number);
    }
}

/* Returns whether the field was read: a field of another type leaves its member as it was. */
static bool is_read(const struct member *member, const char *name)
{
    static const struct {
        const char *prefix;
        const char *fields;
    } reads[] = {
        {"zipkin:", " trace_name service_name port_no ip trace_id span_id parent_span_id "},
        {"blkin:span", " trace_id parent_id duration name service "},
        {"blkin:begin", " trace_id parent_id name service "},
        {"blkin:annotation", " trace_id text "},
        {"blkin:tag", " trace_id "},
        {"blkin:end", " trace_id "},
        {"blkin:process", " realtime thread sequence "},
        {"blkin:metric", " thread sequence period_ms group instance names values "},
    };
    char word[32];

    snprintf(word, sizeof(word), " %s ", member->name);
    for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
        if (strncmp(name, reads[i].prefix, strlen(reads[i].prefix)) == 0)
            return strstr(reads[i].fields, word);
    }
    return false;
}

static void check_context(const struct event *event)
{
    for (unsigned i = 0; i < context.count; i++) {
        const struct member *member = &context.members[i];

        if (strcmp(member->name, "vtid") == 0 && member->type == TYPE_SIGNED)
            REQUIRE(event->origin.tid == (int64_t)member->number);
        if (strcmp(member->name, "procname") == 0 && member->type == TYPE_STRING)
            REQUIRE(text_is(event->origin.process, member->text));
    }
}

static void decode(const bt_message *message, const bt_stream *stream, struct class *class,
                   bool has_clock)
{
    static struct event event;
    struct stream_decoder *decoder = streams_decoder(streams, stream);
    const char *name = bt_event_class_get_name(class->class);
    enum decoded decoded;

    REQUIRE(decoder);
    decoded = streams_decode(streams, message, &event);
    if (strcmp(name ? name : "", "blkin:slow") == 0) {
        REQUIRE(decoded == DECODED_ALARM);
        return;
    }
    REQUIRE(class->is_ours || decoded == DECODED_FOREIGN);
    REQUIRE(!class->is_ours || decoded == DECODED || decoded == DECODED_UNREADABLE ||
            (is_packed(name) && decoded == DECODED_NEWER));
    REQUIRE(!class->is_ours || stream_decoder_has_ours(decoder, stream));
    REQUIRE(!(class->is_ours && class->is_whole && has_clock && is_clock_sane) ||
            decoded == DECODED);
    REQUIRE(has_clock || decoded != DECODED);
    if (decoded != DECODED)
        return;
    for (unsigned i = 0; i < class->count; i++) {
        if (is_read(&class->members[i], name))
            check_member(&class->members[i], &event);
    }
    check_context(&event);
    touch(event.origin.host);
    touch(event.origin.process);
    if (event.kind == EVENT_SPAN || event.kind == EVENT_TAG)
        touch(event.log);
    if (event.kind == EVENT_SPAN || event.kind == EVENT_BEGIN)
        touch(event.ip);
    if (event.kind <= EVENT_KEYVAL_TEXT || event.kind == EVENT_ANNOTATION)
        touch(event.value);
    if (event.kind == EVENT_METRIC) {
        touch(event.group);
        touch(event.instance);
        touch(event.names);
        touch(event.values);
    }
}

static void send_event(bt_self_message_iterator *iterator, bt_stream *stream, struct class *class,
                       bool has_clock)
{
    bt_message *message = has_clock ? bt_message_event_create_with_default_clock_snapshot(
                                          iterator, class->class, stream, take(&source, 2))
                                    : bt_message_event_create(iterator, class->class, stream);
    bt_event *event = bt_message_event_borrow_event(message);

    put_members(bt_event_borrow_payload_field(event), class);
    put_members(bt_event_borrow_common_context_field(event), &context);
    decode(message, stream, class, has_clock);
    bt_message_put_ref(message);
}

static bt_clock_class *make_clock(bt_stream_class *stream_class)
{
    bt_clock_class *clock = bt_clock_class_create(self_component);
    const uint64_t frequency = 1 + take(&source, 2);
    const int64_t offset_s = (int64_t)take(&source, take(&source, 1) < 192 ? 4 : 8);

    is_clock_sane = offset_s >= -(INT64_C(1) << 32) && offset_s <= INT64_C(1) << 32;
    bt_clock_class_set_frequency(clock, frequency);
    bt_clock_class_set_offset(clock, offset_s, take(&source, 8) % frequency);
    (void)bt_stream_class_set_default_clock_class(stream_class, clock);
    return clock;
}

static void make_context(bt_trace_class *trace_class, bt_stream_class *stream_class)
{
    static const char *const names[] = {"vpid", "vtid", "procname", "ip"};
    bt_field_class *structure;

    context = (struct class){.count = 0};
    if (take(&source, 1) < 64)
        return;
    structure = bt_field_class_structure_create(trace_class);
    for (uint64_t i = take(&source, 1) % 5; i; i--) {
        const uint64_t choice = take(&source, 1);
        const char *name = names[choice % 4];

        add_member(trace_class, structure, &context, name, NULL,
                   choice < 64       ? (enum type)(choice / 4 % TYPES)
                   : choice % 4 == 2 ? TYPE_STRING
                                     : TYPE_SIGNED);
    }
    (void)bt_stream_class_set_event_common_context_field_class(stream_class, structure);
    bt_field_class_put_ref(structure);
}

static void set_host(bt_trace *trace)
{
    const uint64_t choice = take(&source, 1);

    if (choice < 100)
        (void)bt_trace_set_environment_entry_string(trace, "hostname", "node");
    else if (choice < 150)
        (void)bt_trace_set_environment_entry_integer(trace, "hostname", 7);
}

static void run_input(bt_self_message_iterator *iterator)
{
    bt_trace_class *trace_class = bt_trace_class_create(self_component);
    bt_stream_class *stream_class = bt_stream_class_create(trace_class);
    const bool has_clock = take(&source, 1) >= 32;
    bt_clock_class *clock = has_clock ? make_clock(stream_class) : NULL;
    const uint64_t number = take(&source, 1);
    const unsigned class_count = 1 + (unsigned)(number >= 192 ? CLASSES_MAX - 1 : number % 5);
    bt_stream *made[DECODE_STREAMS_MAX];
    bt_trace *trace;
    unsigned events = 0;

    make_context(trace_class, stream_class);
    for (unsigned i = 0; i < class_count; i++)
        make_event_class(trace_class, stream_class, &classes[i]);
    trace = bt_trace_create(trace_class);
    set_host(trace);
    for (unsigned i = 0; i < DECODE_STREAMS_MAX; i++)
        made[i] = bt_stream_create(stream_class, trace);
    while (source.at < source.end) {
        const uint64_t choice = take(&source, 1);
        bt_stream *stream = made[choice < 128 ? 0 : choice % DECODE_STREAMS_MAX];

        if (choice >= 240)
            streams_end(streams, stream);
        else
            send_event(iterator, stream, &classes[(take(&source, 1) + events++) % class_count],
                       has_clock);
    }
    for (unsigned i = 0; i < DECODE_STREAMS_MAX; i++) {
        streams_end(streams, made[i]);
        bt_stream_put_ref(made[i]);
    }
    for (unsigned i = 0; i < class_count; i++)
        bt_event_class_put_ref(classes[i].class);
    bt_trace_put_ref(trace);
    bt_clock_class_put_ref(clock);
    bt_stream_class_put_ref(stream_class);
    bt_trace_class_put_ref(trace_class);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bt_graph *graph;

    if (!graph) {
        graph = make_graph();
        streams = streams_new(NULL);
        REQUIRE(streams);
    }
    random_number = sum_of(data, size);
    source = (struct fuzz){data, data + size};
    REQUIRE(bt_graph_run_once(graph) == BT_GRAPH_RUN_ONCE_STATUS_AGAIN);
    return 0;
}

#pragma clang attribute pop
