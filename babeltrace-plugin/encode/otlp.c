/*
 * The OTLP encoder: an ExportTraceServiceRequest (opentelemetry-proto 1.x), in protobuf.
 *
 * Neighbouring spans of one resource are a group: they share a ResourceSpans. In a body, the first
 * unit of a group begins with the head of the group. The next units are fields of the ScopeSpans,
 * which the head has left open. When the end of the batch is known, otlp_frame() writes the lengths
 * of the ResourceSpans and of its ScopeSpans, four bytes each. If the first unit of a batch has no
 * head, otlp_frame() copies the group's head before the unit. The copy overwrites spans that were
 * already sent.
 *
 * A collector may refuse a whole request because of one span. So trace ids have 16 bytes, and no id
 * is zero. The encoder writes unique keys and valid UTF-8 for own spans. otlp_is_sound() has
 * checked the fields of foreign spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "otlp_parts.h"

#include "babeltrace-plugin/base/hash.h"

#include <assert.h>
#include <stdlib.h>

/* Fields of ScopeSpans, of Span, and of its parts. */
#define SCOPE_SPANS_SPAN PB_BYTES(2)

#define SPAN_TRACE_ID           PB_BYTES(1)
#define SPAN_SPAN_ID            PB_BYTES(2)
#define SPAN_PARENT_ID          PB_BYTES(4)
#define SPAN_NAME               PB_BYTES(5)
#define SPAN_KIND               PB_VARINT(6)
#define SPAN_START              PB_FIXED64(7)
#define SPAN_END                PB_FIXED64(8)
#define SPAN_ATTRIBUTE          PB_BYTES(9)
#define SPAN_DROPPED_ATTRIBUTES PB_VARINT(10)
#define SPAN_EVENT              PB_BYTES(11)
#define SPAN_DROPPED_EVENTS     PB_VARINT(12)
#define SPAN_LINKS              PB_BYTES(13)
#define SPAN_DROPPED_LINKS      PB_VARINT(14)
#define SPAN_STATUS             PB_BYTES(15)
#define SPAN_FLAGS              "\x85\x01" /* fixed32, number 16 */

#define EVENT_TIME        PB_FIXED64(1)
#define EVENT_NAME        PB_BYTES(2)
#define EVENT_ATTRIBUTE   PB_BYTES(3)
#define STATUS_MESSAGE    PB_BYTES(2)
#define STATUS_CODE       PB_VARINT(3)
#define STATUS_CODE_OK    1
#define STATUS_CODE_ERROR 2

#define VALUE_BOOLEAN      PB_VARINT(2)
#define OTLP_VALUE_INTEGER PB_VARINT(3)

#define FLAGS_SAMPLED  UINT32_C(0x101) /* W3C's sampled, and bit 8: FLAG_IS_REMOTE is valid */
#define FLAG_IS_REMOTE UINT32_C(0x200) /* the parent is in another process */

#define OTLP_LEFT_OUT "blkin.left_out"

#define OTLP_PATH "/v1/traces"

#define HEADS_LOG2 6
#define HEADS      (1U << HEADS_LOG2)

struct otlp {
    struct encoder base;
    uint64_t seed;
    struct head heads[HEADS]; /* by hash; a newer head replaces an older one */
    uint64_t groups;          /* number of groups with a head */
};

/* The state of writing one span. */
struct otlp_writer {
    const struct span *span;
    const struct resource *resource;
    char *start;
    const struct span_entry *error; /* the tag that becomes the status */
    bool is_ok;                     /* a foreign span has the status OK */
    uint32_t events;
    uint32_t events_left_out;
    uint32_t tags; /* number of tags and links */
    uint32_t tags_left_out;
    uint32_t links_left_out; /* included in tags_left_out */
    bool cut;
    struct tag_keys *keys;
};

/* ---- attributes ------------------------------------------------------------------------------ */

/* Begins an attribute of a span, whose keys must be unique. */
static char *otlp_begin_attribute(char *begin, struct otlp_writer *writing, struct text key)
{
    char *at, *end;

    begin[0] = SPAN_ATTRIBUTE;
    begin[2] = OTLP_KEY;
    at = pb_put_characters(begin + 4, key, LIMIT_KEY, &writing->cut);
    at = tag_keys_add(writing->keys, begin + 4, at);
    end = pb_end(begin + 3, at);
    if (end != at)
        tag_keys_moved(writing->keys, (size_t)(end - at));
    return end;
}

static char *otlp_end_attribute(char *begin, char *at, struct otlp_writer *writing)
{
    char *const end = pb_end(begin + 1, at);

    if (end != at)
        tag_keys_moved(writing->keys, (size_t)(end - at));
    return end;
}

static char *otlp_put_text_attribute(char *begin, struct otlp_writer *writing, struct text key,
                                     struct text value)
{
    char *at = otlp_begin_attribute(begin, writing, key);

    at = otlp_put_text_value(at, value, LIMIT_VALUE, &writing->cut);
    return otlp_end_attribute(begin, at, writing);
}

static char *otlp_put_integer_attribute(char *begin, struct otlp_writer *writing, struct text key,
                                        int64_t value)
{
    char *at = otlp_begin_attribute(begin, writing, key);

    at[0] = OTLP_VALUE;
    at[2] = OTLP_VALUE_INTEGER;
    at = pb_end(at + 1, pb_put_varint(at + 3, (uint64_t)value));
    return otlp_end_attribute(begin, at, writing);
}

static char *otlp_put_true(char *begin, struct otlp_writer *writing, struct text key)
{
    char *at = otlp_begin_attribute(begin, writing, key);

    *at++ = OTLP_VALUE;
    *at++ = 2;
    *at++ = VALUE_BOOLEAN;
    *at++ = 1;
    return otlp_end_attribute(begin, at, writing);
}

/* ---- a span ---------------------------------------------------------------------------------- */

static char *otlp_write_ids(char *at, const struct span *span)
{
    *at++ = SPAN_TRACE_ID;
    *at++ = 16;
    at = pb_put_id(at, span->trace_id_high);
    at = pb_put_id(at, span->trace_id);
    *at++ = SPAN_SPAN_ID;
    *at++ = 8;
    at = pb_put_id(at, span->id);
    if (span->parent_id && span->parent_id != span->id) {
        *at++ = SPAN_PARENT_ID;
        *at++ = 8;
        at = pb_put_id(at, span->parent_id);
    }
    return at;
}

static char *otlp_write_kind(char *at, const struct span *span)
{
    static const char kinds[] = {
        [SPAN_LOCAL] = 1,    [SPAN_SERVER] = 2,   [SPAN_CLIENT] = 3,
        [SPAN_PRODUCER] = 4, [SPAN_CONSUMER] = 5,
    };

    *at++ = SPAN_KIND;
    *at++ = kinds[span->kind];
    return at;
}

static char *otlp_write_times(char *at, const struct span *span)
{
    if (span->start_ns <= 0)
        return at;
    *at++ = SPAN_START;
    at = pb_put_fixed64(at, (uint64_t)span->start_ns);
    *at++ = SPAN_END;
    return pb_put_fixed64(at, (uint64_t)span->end_ns);
}

/* Sets "is remote" for a server's or consumer's span with a parent: the parent is probably in
 * another process. */
static char *otlp_write_flags(char *at, const struct span *span)
{
    const bool is_remote = (span->kind == SPAN_SERVER || span->kind == SPAN_CONSUMER) &&
                           (span->parent_id || span->shared);

    at = text_copy(at, text_of(SPAN_FLAGS));
    return pb_put_fixed32(at, is_remote ? FLAGS_SAMPLED | FLAG_IS_REMOTE : FLAGS_SAMPLED);
}

static char *otlp_write_address(char *at, struct otlp_writer *writing, const struct endpoint *of,
                                const char *address, const char *port)
{
    if (endpoint_address(of).length)
        at = otlp_put_text_attribute(at, writing, text_of(address), endpoint_address(of));
    return of->port ? otlp_put_integer_attribute(at, writing, text_of(port), of->port) : at;
}

/* Writes the addresses of client and server, unless the program has recorded them. */
static char *otlp_write_logical_addresses(char *at, struct otlp_writer *writing)
{
    const struct span *span = writing->span;
    const struct endpoint *const server = span->kind == SPAN_SERVER ? span->endpoint : span->remote;
    const struct endpoint *const client = span->kind == SPAN_SERVER ? span->remote : NULL;

    if (span->kind == SPAN_LOCAL || writing->resource->has_logical_address)
        return at;
    if (server)
        at = otlp_write_address(at, writing, server, "server.address", "server.port");
    if (client)
        at = otlp_write_address(at, writing, client, "client.address", "client.port");
    return at;
}

/* Writes the span's own attributes before the tags of the trace, so a tag with the same key is
 * renamed. */
static char *otlp_write_own_attributes(char *at, struct otlp_writer *writing)
{
    const struct endpoint *remote = writing->span->remote;

    if (writing->span->debug)
        at = otlp_put_true(at, writing, text_of("blkin.debug"));
    if (writing->span->shared)
        at = otlp_put_true(at, writing, text_of("blkin.shared"));
    at = otlp_write_address(at, writing, writing->span->endpoint, "network.local.address",
                            "network.local.port");
    if (remote && remote->service.length) {
        char *const begin = at;

        at = otlp_begin_attribute(begin, writing, text_of("peer.service"));
        at = otlp_put_text_value(at, remote->service, LIMIT_NAME, &writing->cut);
        at = otlp_end_attribute(begin, at, writing);
    }
    if (remote)
        at = otlp_write_address(at, writing, remote, "network.peer.address", "network.peer.port");
    return otlp_write_logical_addresses(at, writing);
}

static bool otlp_has_room(const struct otlp_writer *writing, const char *at)
{
    return (size_t)(at - writing->start) < LIMIT_SPAN;
}

static char *otlp_write_event(char *begin, struct otlp_writer *writing,
                              const struct span_entry *entry)
{
    const struct text severity = span_entry_key(entry);
    char *at = begin + 2;

    begin[0] = SPAN_EVENT;
    *at++ = EVENT_TIME;
    at = pb_put_fixed64(at, (uint64_t)entry->integer);
    *at++ = EVENT_NAME;
    at = pb_put_text(at, span_entry_value(entry), LIMIT_VALUE, &writing->cut);
    if (severity.length) {
        char *const pair = at;

        at = otlp_begin_single(pair, EVENT_ATTRIBUTE, text_of("severity"));
        at = pb_end(pair + 1, otlp_put_text_value(at, severity, LIMIT_KEY, &writing->cut));
    }
    return pb_end(begin + 1, at);
}

static char *otlp_write_annotation(char *at, struct otlp_writer *writing,
                                   const struct span_entry *entry)
{
    if (is_implied(writing->span, entry))
        return at;
    if (entry->integer > 0 && writing->events < LIMIT_ANNOTATIONS && otlp_has_room(writing, at)) {
        writing->events++;
        return otlp_write_event(at, writing, entry);
    }
    writing->events_left_out++;
    return at;
}

static char *otlp_write_link(char *at, const struct span_entry *entry)
{
    const struct span_link link = span_entry_link(entry);

    *at++ = SPAN_LINKS;
    *at++ = 2 + 16 + 2 + 8;
    *at++ = SPAN_TRACE_ID;
    *at++ = 16;
    at = pb_put_id(at, link.trace_id_high);
    at = pb_put_id(at, link.trace_id);
    *at++ = SPAN_SPAN_ID;
    *at++ = 8;
    return pb_put_id(at, link.span_id);
}

/* Returns true for a tag that OpenTelemetry's mapping to Zipkin has added to a foreign span: the
 * encoder leaves out such a tag. Sets is_ok for the status OK. */
static bool otlp_is_of_mapping(struct otlp_writer *writing, const struct span_entry *entry)
{
    const struct text key = span_entry_key(entry);

    if (!writing->span->is_foreign || !text_begins(key, "otel."))
        return false;
    if (!text_is(key, "otel.status_code"))
        return text_is(key, "otel.library.name") || text_is(key, "otel.library.version");
    writing->is_ok = text_is(span_entry_value(entry), "OK");
    return true;
}

static char *otlp_write_tag(char *at, struct otlp_writer *writing, const struct span_entry *entry)
{
    const struct text given = span_entry_key(entry);
    /* receivers refuse an attribute without a key */
    const struct text key = given.length ? given : text_of("unnamed");

    if (entry == writing->resource->tags[0] || entry == writing->resource->tags[1] ||
        otlp_is_of_mapping(writing, entry))
        return at;
    if (entry->type != SPAN_LINK && !writing->error && text_is(key, "error")) {
        writing->error = entry;
        return at;
    }
    if (writing->tags >= LIMIT_TAGS || !otlp_has_room(writing, at)) {
        writing->tags_left_out++;
        writing->links_left_out += entry->type == SPAN_LINK;
        return at;
    }
    writing->tags++;
    if (entry->type == SPAN_LINK)
        return otlp_write_link(at, entry);
    if (entry->type == SPAN_TAG_INTEGER)
        return otlp_put_integer_attribute(at, writing, key, entry->integer);
    return otlp_put_text_attribute(at, writing, key, span_entry_value(entry));
}

/* Writes the tag blkin.left_out, as the Zipkin encoder does, and OpenTelemetry's dropped counts. */
static char *otlp_write_left_out(char *at, struct otlp_writer *writing)
{
    char text[96];
    char *end = text_copy(text, text_of("annotations: "));

    writing->cut = true;
    end = json_put_integer(end, writing->events_left_out);
    end = text_copy(end, text_of(", tags: "));
    end = json_put_integer(end, writing->tags_left_out);
    at = otlp_put_text_attribute(at, writing, text_of(OTLP_LEFT_OUT),
                                 (struct text){text, (size_t)(end - text)});
    *at++ = SPAN_DROPPED_ATTRIBUTES;
    at = pb_put_varint(at, writing->tags_left_out - writing->links_left_out);
    *at++ = SPAN_DROPPED_EVENTS;
    at = pb_put_varint(at, writing->events_left_out);
    *at++ = SPAN_DROPPED_LINKS;
    return pb_put_varint(at, writing->links_left_out);
}

static char *otlp_write_status(char *begin, struct otlp_writer *writing)
{
    const struct span_entry *entry = writing->error;
    char digits[JSON_INTEGER_MAX];
    struct text message = span_entry_value(entry);
    char *at = begin + 2;

    if (entry->type == SPAN_TAG_INTEGER)
        message =
            (struct text){digits, (size_t)(json_put_integer(digits, entry->integer) - digits)};
    begin[0] = SPAN_STATUS;
    *at++ = STATUS_MESSAGE;
    at = pb_put_text(at, message, LIMIT_VALUE, &writing->cut);
    *at++ = STATUS_CODE;
    *at++ = STATUS_CODE_ERROR;
    return pb_end(begin + 1, at);
}

/* Copies the fields of a message Span, except ids and times: struct span has newer values of them.
 */
static char *otlp_copy_fields(char *at, struct text message)
{
    const unsigned newer = 1U << 1 | 1U << 2 | 1U << 4 | 1U << 7 | 1U << 8; /* numbers of fields */
    struct pb_reader reader = pb_reader_of(message);
    const unsigned char *from = reader.at;
    struct pb_member field;

    for (; pb_next(&reader, &field); from = reader.at) {
        const uint32_t number = field.tag >> 3;

        if (number >= 32 || !(newer >> number & 1))
            at = text_copy(at, (struct text){(const char *)from, (size_t)(reader.at - from)});
    }
    return at;
}

/* Writes name, kind, times, flags and own attributes. */
static char *otlp_write_span_itself(char *at, struct otlp_writer *writing)
{
    const struct span *span = writing->span;

    if (span->name_length) {
        *at++ = SPAN_NAME;
        at = pb_put_text(at, span_name(span), LIMIT_NAME, &writing->cut);
    }
    at = otlp_write_kind(at, span);
    at = otlp_write_times(at, span);
    at = otlp_write_flags(at, span);
    return otlp_write_own_attributes(at, writing);
}

static char *otlp_write_fields(char *at, struct otlp_writer *writing)
{
    const struct span *span = writing->span;
    const struct span_entry *message = writing->resource->message;
    const struct span_entry *entry = message ? span_next_entry(message) : span_first_entry(span);

    at = otlp_write_ids(at, span);
    if (message)
        at = otlp_write_times(otlp_copy_fields(at, span_entry_value(message)), span);
    else
        at = otlp_write_span_itself(at, writing);
    for (; entry < span_entries_end(span); entry = span_next_entry(entry)) {
        if (entry->type == SPAN_ANNOTATION)
            at = otlp_write_annotation(at, writing, entry);
        else if (entry->type < SPAN_ORIGIN)
            at = otlp_write_tag(at, writing, entry);
    }
    if (writing->events_left_out || writing->tags_left_out)
        at = otlp_write_left_out(at, writing);
    if (!writing->error && writing->is_ok) {
        static const char ok[] = {SPAN_STATUS, 2, STATUS_CODE, STATUS_CODE_OK};

        return text_copy(at, (struct text){ok, sizeof(ok)});
    }
    return writing->error ? otlp_write_status(at, writing) : at;
}

static char *otlp_write_span(char *begin, struct otlp_writer *writing)
{
    char *const fields = begin + 1 + OTLP_SPAN_LENGTH;
    char *const at = otlp_write_fields(fields, writing);
    const size_t size = (size_t)(at - fields);

    *begin = SCOPE_SPANS_SPAN;
    if (size < UINT32_C(1) << OTLP_SPAN_LENGTH * 7) {
        pb_put_padded(begin + 1, (uint32_t)size, OTLP_SPAN_LENGTH);
        return at;
    }
    memmove(begin + 1 + PB_PADDED, fields, size);
    pb_put_padded(begin + 1, (uint32_t)size, PB_PADDED);
    return at + PB_PADDED - OTLP_SPAN_LENGTH;
}

/* Returns the upper limit of a span's size. Counts the log as text: an invalid byte becomes U+FFFD,
 * three bytes. So an entry's header counts three times its size, which exceeds the tags and lengths
 * around key and value. */
static size_t otlp_size_limit(const struct span *span)
{
    const size_t entry = PB_TEXT_MAX(LIMIT_KEY) + PB_TEXT_MAX(LIMIT_VALUE);
    const size_t remote =
        span->remote ? PB_TEXT_MAX(encoder_least(span->remote->service.length, LIMIT_NAME)) : 0;

    static_assert(3 * sizeof(struct span_entry) >= 64,
                  "three headers exceed the tags and lengths of an entry");
    return 1280 + remote + PB_TEXT_MAX(encoder_least(span->name_length, LIMIT_NAME)) +
           encoder_least(PB_TEXT_MAX(span->log_length - span->first_entry), LIMIT_SPAN + 3 * entry);
}

/* Returns NULL when out of memory. */
static const struct head *otlp_head_of(struct otlp *otlp, const struct resource *resource)
{
    const uint64_t hash = resource_hash(otlp->seed, resource);
    struct head *head = &otlp->heads[hash >> (64 - HEADS_LOG2)];

    if (head->number && resource_equal(&head->of, resource))
        return head;
    head->number = 0;
    if (!otlp_make_head(head, resource))
        return NULL;
    head->number = ++otlp->groups;
    return head;
}

static bool otlp_encode(struct encoder *encoder, struct buffer *buffer, const struct span *span,
                        uint64_t *group, bool *cut)
{
    struct otlp *otlp = (struct otlp *)encoder;
    const struct resource resource = resource_of(span);
    const struct head *const head = otlp_head_of(otlp, &resource);
    struct tag_keys keys; /* large, so it is not cleared for each span */
    struct otlp_writer writing = {.span = span, .resource = &resource, .keys = &keys};
    char *at;

    if (!head || !buffer_reserve(buffer, otlp_size_limit(span) + head->length))
        return false;
    keys.count = 0;
    keys.seed = otlp->seed;
    at = buffer->data + buffer->length;
    if (!group || *group != head->number)
        at = text_copy(at, (struct text){head->data, head->length});
    writing.start = at;
    at = otlp_write_span(at, &writing);
    buffer->length = (size_t)(at - buffer->data);
    *cut = writing.cut || head->cut;
    if (group)
        *group = head->number;
    return true;
}

/* ---- the protocol ---------------------------------------------------------------------------- */

static void otlp_free(struct encoder *encoder)
{
    struct otlp *otlp = (struct otlp *)encoder;

    for (unsigned i = 0; i < HEADS; i++)
        free(otlp->heads[i].data);
    free(otlp);
}

static struct encoder *otlp_encoder_new(void)
{
    struct otlp *otlp = calloc(1, sizeof(*otlp));

    if (!otlp)
        return NULL;
    otlp->base = (struct encoder){.encode = otlp_encode,
                                  .frame = otlp_frame,
                                  .head_length = otlp_head_length,
                                  .trace_of = otlp_trace_of,
                                  .describe = otlp_describe,
                                  .free = otlp_free};
    otlp->seed = hash_seed(otlp);
    return &otlp->base;
}

/* empty_batch is an empty message. No file_joint: two messages in a row are one message. */
const struct protocol otlp_protocol = {
    .format = FORMAT_OTLP,
    .name = "otlp",
    .peer = "an OTLP collector",
    .endpoint = "http://localhost:4318" OTLP_PATH,
    .path = OTLP_PATH,
    .content_type = "application/x-protobuf",
    .empty_batch = {"", 0},
    .again = (const short[]){429, 502, 503, 504, 0},
    .suspect = (const short[]){0},
    .is_answer = otlp_is_answer,
    .rejected = otlp_rejected,
    .reason = otlp_reason,
    .encoder_new = otlp_encoder_new,
};
