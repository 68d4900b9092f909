/*
 * A program that uses only the original's C headers. The program must compile unchanged, and give
 * the events in original-c.expect, field by field. Its ids are fixed for the comparison.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <stdio.h>
#include <stdlib.h>
#include <zipkin_c.h>

#define C_CHECK(call)                               \
    do {                                            \
        if ((call) != 0) {                          \
            fprintf(stderr, "failed: %s\n", #call); \
            exit(1);                                \
        }                                           \
    } while (0)

struct original_message {
    struct blkin_trace_info_packed trace_info;
};

/* The server's side of a connection: the packed info arrives with the message. */
static void serve(const struct original_message *msg)
{
    struct blkin_endpoint server;
    struct blkin_trace_info info;
    struct blkin_trace trace;
    struct blkin_annotation annotation;

    C_CHECK(blkin_init_endpoint(&server, "10.0.0.2", 5555, "server"));
    C_CHECK(blkin_unpack_trace_info(&msg->trace_info, &info));
    C_CHECK(blkin_init_child_info(&trace, &info, &server, "handle"));
    trace.info.span_id = 0x22;

    C_CHECK(blkin_init_timestamp_annotation(&annotation, SERVER_RECV, &server));
    C_CHECK(blkin_record(&trace, &annotation));
    C_CHECK(blkin_init_string_annotation(&annotation, "object", "rbd_data.1", NULL));
    C_CHECK(blkin_record(&trace, &annotation));
    C_CHECK(blkin_init_integer_annotation(&annotation, "offset", INT64_MIN, &server));
    C_CHECK(blkin_record(&trace, &annotation));
    BLKIN_TIMESTAMP(&trace, &server, SERVER_SEND);
}

int main(void)
{
    struct blkin_endpoint client;
    const struct blkin_trace_info fixed = {0x11, 0x11, 0};
    struct blkin_trace trace;
    struct blkin_trace same;
    struct original_message msg;
    int high_port = 50000;

    C_CHECK(blkin_init());
    C_CHECK(blkin_init_endpoint(&client, "2001:db8::1", high_port, "client"));
    C_CHECK(blkin_init_new_trace(&trace, "write", &client));
    C_CHECK(blkin_set_trace_info(&trace, &fixed));

    BLKIN_TIMESTAMP(&trace, &client, CLIENT_SEND);
    C_CHECK(blkin_pack_trace_info(&trace.info, &msg.trace_info));
    serve(&msg);
    BLKIN_KEYVAL_STRING(&trace, &client, "pool", "rbd");
    BLKIN_KEYVAL_INTEGER(&trace, &client, "length", 4096);
    C_CHECK(blkin_set_trace_properties(&same, &trace.info, "write again", &client));
    BLKIN_TIMESTAMP(&same, NULL, WIRE_SEND);
    BLKIN_TIMESTAMP(&trace, &client, CLIENT_RECV);
    return 0;
}
