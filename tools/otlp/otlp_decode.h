/*
 * Reads OTLP traces: an ExportTraceServiceRequest, or a file or topic of them, written by anyone.
 *
 * The fast part reads the fields that assembling and counting need, and keeps the bytes of a span
 * for passing the span on. Only spans that are written in another form are read as a whole.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_OTLP_DECODE_H
#define BLKIN_OUTPUT_OTLP_DECODE_H

#include "babeltrace-plugin/encode/protobuf.h"
#include "babeltrace-plugin/spans/span.h"

/* The common part of a sequence of spans. Texts point into the request. Messages have no tag and
 * length; a missing message is empty. */
struct otlp_origin {
    struct text resource;             /* message Resource */
    struct text scope;                /* message InstrumentationScope */
    struct text service;              /* the resource's service.name */
    struct text schema, scope_schema; /* URLs of the resource and of the scope */
    uint64_t number;                  /* number of the resource in the request, from 1 */
    uint64_t scope_number; /* number of the scope; scopes with different numbers may be equal */
};

struct otlp_span {
    uint64_t trace_id_high;
    uint64_t trace_id;
    uint64_t id;
    uint64_t parent_id; /* 0: none */
    int64_t start_ns;   /* since 1970; 0: not known */
    int64_t end_ns;     /* >= start_ns */
    struct text name;
    struct text peer_service; /* the attribute peer.service; empty: none */
    struct text raw;          /* message Span */
    enum span_kind kind;
    bool is_error;
};

typedef void otlp_span_fn(void *context, const struct otlp_origin *origin,
                          const struct otlp_span *span);

struct otlp_decoded {
    uint64_t spans;
    uint64_t invalid; /* without a trace id of 16 bytes or an id of 8, or with one of zeros */
    bool is_broken;   /* malformed request: the bytes behind the fault were not read */
};

/* Decodes a request, and calls `call` for each span. */
struct otlp_decoded otlp_decode(struct text request, otlp_span_fn *call, void *context);

/* The state of a request that is read in steps. */
struct otlp_decoding {
    struct pb_reader request, resource_spans, scope_spans; /* the unread rest of each */
    struct otlp_origin origin;                             /* of the next span */
    struct otlp_decoded decoded;                           /* so far */
};

void otlp_decode_begin(struct otlp_decoding *decoding, struct text request);

/* Reads at most so many fields; a span counts as one. Returns false at the end. */
bool otlp_decode_some(struct otlp_decoding *decoding, uint64_t most, otlp_span_fn *call,
                      void *context);

/* Reads a message Span. Returns false if it is malformed. */
bool otlp_read_span(struct text message, struct otlp_span *span);

/* ---- the whole span -------------------------------------------------------------------------- */

/* Copies the value of an attribute of a message Span or Resource, NUL-terminated and cut to `size`.
 * Returns false if the attribute is missing. */
bool otlp_span_attribute(struct text span, struct text key, char *value, size_t size);
bool otlp_resource_attribute(struct text resource, struct text key, char *value, size_t size);

/*
 * Returns whether a receiver takes the span of another tracer as it came; a receiver refuses a
 * whole request for one other span. Fields that OpenTelemetry's messages define have the types that
 * these say, texts are UTF-8, and ids have their lengths. Attributes have keys, and values are not
 * nested deeply. Other fields may be anything.
 */
bool otlp_is_sound(const struct otlp_origin *origin, struct text span);

/*
 * Fills `whole`, whose log is used again: free() it at the end. The endpoints are the table's.
 * Returns false if the span is broken, or when out of memory.
 *
 * Of our own scope the span becomes what our encoder was given. Of any other scope the span is
 * mapped as OpenTelemetry's specification maps it to Zipkin (trace/sdk_exporters/zipkin.md and
 * common/mapping-to-non-otlp.md): attributes are tags, those of scope and resource too, and so are
 * status and dropped counts; events are annotations; the remote endpoint is of the first attribute
 * in the specification's list that is there. Behind these entries is the span as it came, for back
 * ends of OTLP (SPAN_MESSAGE), if it is sound.
 */
bool otlp_decode_span(const struct otlp_origin *origin, const struct otlp_span *span,
                      struct endpoint_table *endpoints, struct span *whole);

#endif
