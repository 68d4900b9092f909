/*
 * The OTLP encoder for test-otlp.py. The program reads spans as lines on the standard input, and at
 * the end prints a request of all, as a line of hexadecimal digits. Texts in the input are
 * hexadecimal digits, too; "-" is the empty text.
 *
 *     endpoint SERVICE IPV4 IPV6 PORT    makes an endpoint; the first one has the number 0
 *     span HIGH TRACE ID PARENT KIND FLAGS START END ENDPOINT REMOTE NAME
 *             begins a span; ids and times are numbers; FLAGS: 1 debug, 2 shared;
 *             ENDPOINT, REMOTE: the number of an endpoint; REMOTE -1: none
 *     annotation TIME VALUE SEVERITY     adds an annotation to the span
 *     text KEY VALUE                     adds a tag to the span
 *     integer KEY VALUE                  adds a tag to the span
 *     link HIGH TRACE ID                 adds a link to the span
 *     add                                adds the span to the body; prints "cut" or "whole"
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/deliver/body.h"
#include "babeltrace-plugin/encode/encoder.h"

#include "check.h"

#include <stdio.h>

static struct endpoint endpoints[256];
static unsigned endpoint_count;
static struct span span;
static struct body body;
static struct encoder *encoder;

/* Decodes hexadecimal digits in place. */
static struct text text_from(char *digits)
{
    size_t length = 0;

    if (strcmp(digits, "-") == 0)
        return (struct text){digits, 0};
    for (unsigned byte; sscanf(digits + 2 * length, "%2x", &byte) == 1; length++)
        digits[length] = (char)byte; /* the decoded text is shorter than the digits */
    return (struct text){digits, length};
}

/* Returns the next word of the line. */
static char *word(void)
{
    char *found = strtok(NULL, " \n");

    CHECK(found != NULL);
    return found;
}

static int64_t number(void)
{
    const char *digits = word();

    return *digits == '-' ? strtoll(digits, NULL, 10) : (int64_t)strtoull(digits, NULL, 10);
}

static void add_endpoint(void)
{
    struct endpoint *endpoint = &endpoints[endpoint_count++];
    struct text service = text_from(word()), ipv4 = text_from(word()), ipv6 = text_from(word());

    service.data = memcpy(malloc(service.length + 1), service.data, service.length);
    *endpoint = (struct endpoint){.service = service};
    memcpy(endpoint->ipv4, ipv4.data, ipv4.length);
    memcpy(endpoint->ipv6, ipv6.data, ipv6.length);
    endpoint->port = (uint16_t)number();
}

static void begin_span(void)
{
    int64_t fields[10];

    for (int i = 0; i < 10; i++)
        fields[i] = number();
    free(span.log);
    span = (struct span){
        .trace_id_high = (uint64_t)fields[0],
        .trace_id = (uint64_t)fields[1],
        .id = (uint64_t)fields[2],
        .parent_id = (uint64_t)fields[3],
        .kind = (enum span_kind)fields[4],
        .debug = fields[5] & 1,
        .shared = fields[5] & 2,
        .start_ns = fields[6],
        .end_ns = fields[7],
        .endpoint = &endpoints[fields[8]],
        .remote = fields[9] < 0 ? NULL : &endpoints[fields[9]],
    };
    CHECK(span_set_name(&span, text_from(word())));
}

static void add_entry(const char *what)
{
    const struct text none = {NULL, 0};
    struct text key, value;

    if (strcmp(what, "annotation") == 0) {
        const int64_t time = number();

        value = text_from(word());
        key = text_from(word());
        CHECK(span_add(&span, SPAN_ANNOTATION, key, value, time));
    } else if (strcmp(what, "text") == 0) {
        key = text_from(word());
        value = text_from(word());
        CHECK(span_add(&span, SPAN_TAG_TEXT, key, value, 0));
    } else if (strcmp(what, "integer") == 0) {
        key = text_from(word());
        CHECK(span_add(&span, SPAN_TAG_INTEGER, key, none, number()));
    } else {
        const uint64_t high = (uint64_t)number(), trace = (uint64_t)number();

        CHECK(strcmp(what, "link") == 0);
        CHECK(span_add_link(&span, &(struct span_link){high, trace, (uint64_t)number()}));
    }
}

static void add_span(void)
{
    bool cut = false;

    CHECK(body_add(&body, encoder, &span, &cut));
    puts(cut ? "cut" : "whole");
}

static void print_frame(void)
{
    struct framed framed;

    body_frame((struct body_run){.body = &body, .end = body.count}, encoder, &framed);
    for (size_t i = 0; i < framed.payload.text.length; i++)
        printf("%02x", (unsigned char)framed.payload.text.data[i]);
    puts("");
    body_unframe(encoder, &framed);
}

int main(void)
{
    static char line[8 << 20];

    encoder = otlp_protocol.encoder_new();
    CHECK(encoder != NULL);
    while (fgets(line, sizeof(line), stdin)) {
        const char *what = strtok(line, " \n");

        if (strcmp(what, "endpoint") == 0)
            add_endpoint();
        else if (strcmp(what, "span") == 0)
            begin_span();
        else if (strcmp(what, "add") == 0)
            add_span();
        else
            add_entry(what);
    }
    print_frame();
    encoder->free(encoder);
    body_destroy(&body);
    free(span.log);
    return 0;
}
