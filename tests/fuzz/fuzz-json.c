/*
 * Fuzzes the Zipkin encoder with spans of any bytes, ids and times. The JSON must fit in the
 * reserved bytes, parse, keep every decoder's rules, and account for each annotation and tag.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
/* Includes the source for zipkin_size_limit(): a buffer that grows in powers of two would hide a
 * limit that is too small. */
#include "babeltrace-plugin/encode/zipkin_json.c"

/* libFuzzer chooses inputs by their coverage of the encoder, not of this file */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

#include "fuzz.h"
#include "fuzz_span.h"
#include "zipkin_rules.h"

/* jansson's memory, all freed at once: a check per allocation would take most of the time. */
static struct {
    _Alignas(16) char bytes[8 << 20];
    size_t used;
} arena;

static void *arena_take(size_t size)
{
    void *block = arena.bytes + arena.used;

    arena.used += (size + 15) & ~(size_t)15;
    REQUIRE(arena.used <= sizeof(arena.bytes));
    return block;
}

static void arena_keep(void *block)
{
    (void)block;
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    json_set_alloc_funcs(arena_take, arena_keep);
    return 0;
}

/* Each freed block waits in the quarantine of AddressSanitizer. With the default of 256 MiB, each
 * new block would be on new pages, whose page faults take time. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=1:malloc_context_size=3";
}

static size_t size_of(json_t *span, const char *key)
{
    json_t *value = json_object_get(span, key);

    return json_is_array(value) ? json_array_size(value) : json_object_size(value);
}

/* Takes the encoder's own tag, which is the last tag. A tag of this name from the trace is earlier.
 */
static bool take_left_out(json_t *span, size_t *annotations, size_t *tags)
{
    const char *key, *last = NULL;
    const char *text;
    json_t *value;

    json_object_foreach(json_object_get(span, "tags"), key, value) last = key;
    text = last && strncmp(last, "blkin.left_out", 14) == 0
               ? json_string_value(json_object_get(json_object_get(span, "tags"), last))
               : NULL;
    return text && sscanf(text, "annotations: %zu, tags: %zu", annotations, tags) == 2;
}

/* Requires that every annotation and tag is in the JSON, counted as left out, or implied by the
 * kind and the times. */
static void require_account(json_t *json, const struct span *span, const struct entries *entries,
                            bool cut)
{
    size_t annotations = 0, tags = 0, implied = 0;
    const bool left_out = take_left_out(json, &annotations, &tags);

    SPAN_FOR_EACH_ENTRY(span, entry)
    implied += entry->type == SPAN_ANNOTATION && is_implied(span, entry);
    REQUIRE(size_of(json, "tags") - left_out + tags == entries->tags);
    REQUIRE(size_of(json, "annotations") + annotations + implied == entries->annotations);
    REQUIRE(!left_out || cut);
}

static void require_rules(const struct buffer *buffer, const struct span *span,
                          const struct entries *entries, bool cut)
{
    json_error_t error;
    const char *fault = text_fault(buffer->data, buffer->length);
    json_t *json;

    /* parsing takes most of the time, so only some inputs are parsed, always the same ones */
    if (!fault && buffer->length % 4)
        return;
    json = fault ? NULL : span_load(buffer->data, buffer->length, &error);
    if (!fault)
        fault = json ? span_fault(json) : error.text;
    if (fault)
        fprintf(stderr, "%s: %.*s\n", fault, (int)buffer->length, buffer->data);
    REQUIRE(!fault);
    require_account(json, span, entries, cut);
    arena.used = 0;
}

static void encode_exactly(struct encoder *encoder, const struct span *span,
                           const struct entries *entries)
{
    const size_t limit = zipkin_size_limit(span);
    struct buffer buffer = {.data = malloc(limit), .capacity = limit, .limit = limit};
    bool cut = false;

    REQUIRE(encoder->encode(encoder, &buffer, span, NULL, &cut));
    REQUIRE(buffer.length <= limit && buffer.capacity == limit);
    require_rules(&buffer, span, entries, cut);
    buffer_free(&buffer);
}

static void encode_without_room(struct encoder *encoder, const struct span *span)
{
    struct buffer buffer = {.limit = zipkin_size_limit(span) - 1};
    bool cut = false;

    REQUIRE(!encoder->encode(encoder, &buffer, span, NULL, &cut));
    REQUIRE(buffer.length == 0);
    buffer_free(&buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz source = {data, data + size};
    struct encoder *encoder;
    struct endpoint endpoints[2];
    struct entries entries;
    struct span span = {0};

    random_number = hash_of(data, size);
    encoder = zipkin_json_encoder_new();
    REQUIRE(encoder);
    is_slow = is_one_in(2003, data, size);
    expanded_length = 0;
    take_endpoint(&source, &endpoints[0]);
    take_endpoint(&source, &endpoints[1]);
    for (unsigned i = 0; i < 1 + size % 2; i++) {
        take_span(&source, &span, endpoints, &entries);
        if (size % 64 == 0)
            encode_without_room(encoder, &span);
        encode_exactly(encoder, &span, &entries);
    }
    encoder->free(encoder);
    free(span.log);
    return 0;
}

#pragma clang attribute pop
