/*
 * The CPU time, per span, of sending batches of 1000 spans over HTTP to a collector on loopback,
 * with the sink's transport. The anchor is writing the same bytes to a plain socket.
 *
 *     bench-post PORT      (of a null_server)
 *
 * Prints "run TURN PASS NAME NS", per span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "batch.h"
#include "babeltrace-plugin/encode/encoder.h"
#include "babeltrace-plugin/deliver/transport.h"
#include "sample_span.h"

#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define POST_SPANS 1000

static struct transport *transport;
static struct payload payload;
static int bare;
static struct buffer request;

static void post(unsigned spans)
{
    struct transport_reply reply = {0};

    if (!spans)
        return;
    transport->send(transport, &payload, &reply);
    if (reply.outcome != OUTCOME_ACCEPTED)
        errx(1, "%s", reply.error.text);
}

static void write_bare(unsigned spans)
{
    char answer[256];

    if (!spans)
        return;
    for (size_t done = 0; done < request.length;) {
        const ssize_t sent = send(bare, request.data + done, request.length - done, MSG_NOSIGNAL);

        if (sent <= 0)
            errx(1, "send");
        done += (size_t)sent;
    }
    if (recv(bare, answer, sizeof(answer), 0) <= 0)
        errx(1, "no answer");
}

static void append(struct buffer *buffer, const char *bytes, size_t length)
{
    if (!buffer_reserve(buffer, length))
        errx(1, "no memory");
    memcpy(buffer->data + buffer->length, bytes, length);
    buffer->length += length;
}

static void connect_bare(unsigned port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_port = htons(port)};
    char head[256];
    const int length = snprintf(head, sizeof(head),
                                "POST /api/v2/spans HTTP/1.1\r\nHost: localhost\r\n"
                                "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                                payload.text.length);

    bare = socket(AF_INET, SOCK_STREAM, 0);
    if (bare < 0 || connect(bare, (const struct sockaddr *)&address, sizeof(address)) != 0)
        errx(1, "cannot connect");
    append(&request, head, (size_t)length);
    append(&request, payload.text.data, payload.text.length);
}

static void make_batch(void)
{
    static struct buffer json;
    struct encoder *encoder = zipkin_protocol.encoder_new();
    static struct span span; /* each span in turn */
    bool cut;

    if (!encoder)
        errx(1, "no memory");
    append(&json, "[", 1);
    for (unsigned i = 0; i < POST_SPANS; i++) {
        sample_span(&span, i);
        if (i > 0)
            append(&json, ",", 1);
        if (!encoder->encode(encoder, &json, &span, NULL, &cut))
            errx(1, "cannot encode");
    }
    append(&json, "]", 1);
    payload.text = (struct text){json.data, json.length};
    payload.spans = (struct text){json.data + 1, json.length - 2};
}

int main(int argc, char **argv)
{
    static const struct subject subjects[] = {{"post", post}, {"post_bare", write_bare}};
    const struct batches batches = {
        .turns = 10, .group = 20, .calls = POST_SPANS, .clock = CLOCK_PROCESS_CPUTIME_ID};
    char endpoint[64];
    struct error error;

    if (argc != 2)
        errx(1, "usage: bench-post PORT");
    make_batch();
    snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%s/", argv[1]);
    transport = http_transport_open(&(struct transport_options){.endpoint = endpoint,
                                                                .protocol = &zipkin_protocol,
                                                                .request_timeout_ms = 15000,
                                                                .compression = COMPRESSION_AUTO},
                                    &error);
    if (!transport)
        errx(1, "%s", error.text);
    connect_bare((unsigned)strtoul(argv[1], NULL, 10));
    measure(&batches, subjects, 2);
    transport->free(transport);
    close(bare);
    return 0;
}
