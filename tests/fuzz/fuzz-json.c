/*
 * Any span, encoded, is JSON that the strictest decoder takes, and nothing in it was written past
 * the room reserved for it.
 *
 *     make build/fuzz/fuzz-json && build/fuzz/fuzz-json -max_total_time=60 FOLDER
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "core/endpoint.h"
#include "output/encoder.h"
#include "zipkin_rules.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is left of the input; zeros once it has ended. */
struct input {
    const uint8_t *data;
    size_t size;
};

static uint8_t take_byte(struct input *input)
{
    if (input->size == 0)
        return 0;
    input->size--;
    return *input->data++;
}

static uint64_t take_integer(struct input *input)
{
    uint64_t value = 0;

    for (unsigned count = take_byte(input) % 9; count; count--)
        value = value << 8 | take_byte(input);
    return value;
}

/* A piece of the input, repeated if its length byte says so: short inputs reach the limits too. */
static struct text take_text(struct input *input, char *room, size_t room_size)
{
    static const unsigned repeats[] = {1, 1, 1, 1, 1, 1, 100, 3000};
    const uint8_t length_byte = take_byte(input);
    const unsigned repeat = repeats[length_byte >> 5];
    const size_t length = (length_byte & 31) < input->size ? length_byte & 31 : input->size;
    size_t filled = 0;

    for (unsigned i = 0; i < repeat && filled + length <= room_size; i++) {
        memcpy(room + filled, input->data, length);
        filled += length;
    }
    input->data += length;
    input->size -= length;
    return (struct text){room, filled};
}

static void fill(struct span *span, struct endpoint_table *endpoints, struct input *input)
{
    static char first[1 << 16], second[1 << 16];
    const struct text service = take_text(input, first, sizeof(first));
    const struct text ip = take_text(input, second, sizeof(second));

    span->endpoint = endpoint_get(endpoints, service, ip, (int64_t)take_integer(input));
    span->trace_id = take_integer(input) | 1; /* no span without ids gets here */
    span->id = take_integer(input) | 1;
    span->parent_id = take_integer(input);
    span->kind = (enum span_kind)(take_byte(input) % (SPAN_CONSUMER + 1));
    span->trace_id_high = take_integer(input);
    span->debug = take_byte(input) & 1;
    if (take_byte(input) & 1)
        span->remote = endpoint_get(endpoints, ip, service, (int64_t)take_integer(input));
    span->start_ns = (int64_t)take_integer(input);
    span->end_ns = (int64_t)take_integer(input);
    if (span->end_ns < span->start_ns)
        span->end_ns = span->start_ns;
    (void)span_set_name(span, take_text(input, first, sizeof(first)));
    while (input->size) {
        const uint8_t how = take_byte(input);
        const struct text key = take_text(input, first, sizeof(first));
        const struct text value = take_text(input, second, sizeof(second));
        const int64_t integer = (int64_t)take_integer(input);

        for (unsigned i = 0; i <= (how >> 2 == 63 ? 600U : 0U); i++)
            (void)span_add(span, (enum span_entry_type)(how % 3), key, value, integer);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct endpoint_table *endpoints = endpoint_table_new();
    struct encoder *encoder = zipkin_json_encoder_new();
    struct buffer buffer = {0};
    struct span span = {0};
    json_error_t error;
    const char *fault;
    json_t *json;
    bool cut;

    fill(&span, endpoints, &input);
    if (!encoder->encode(encoder, &buffer, &span, &cut))
        abort();
    fault = text_fault(buffer.data, buffer.length);
    json = span_load(buffer.data, buffer.length, &error);
    if (!fault)
        fault = json ? span_fault(json) : error.text;
    if (fault) {
        fprintf(stderr, "%s: %.*s\n", fault, (int)buffer.length, buffer.data);
        abort();
    }
    json_decref(json);
    buffer_free(&buffer);
    free(span.log);
    encoder->free(encoder);
    endpoint_table_free(endpoints);
    return 0;
}
