/*
 * Reads OTLP traces: an ExportTraceServiceRequest from any sender.
 *
 * otlp_decode() reads only the fields that stores and statistics need, and points to the bytes of
 * the span. otlp_decode_span() reads all fields: only an encoder for another format needs them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_OTLP_DECODE_H
#define BLKIN_TOOLS_OTLP_DECODE_H

#include "babeltrace-plugin/spans/span.h"
#include "otlp_value.h"

/* The resource and the scope of spans. Texts point into the request or a store. A message is
 * without the tag and the length before it; a missing message is empty. */
struct otlp_origin {
    struct text resource;             /* message Resource */
    struct text scope;                /* message InstrumentationScope */
    struct text service;              /* the resource's service.name */
    struct text schema, scope_schema; /* URLs of the resource and of the scope */
    uint64_t number;       /* of the resource; 0: unknown. otlp_decode() counts changes from 1 on */
    uint64_t scope_number; /* of the scope; equal scopes may have different numbers */
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
    uint64_t invalid; /* the trace id or the span id is missing, zero or of a wrong length */
    bool is_broken;   /* malformed request: the bytes after the fault were not read */
};

/* Decodes a request, and calls `call` for each valid span. */
struct otlp_decoded otlp_decode(struct text request, otlp_span_fn *call, void *context);

/* The state of a request that is read in steps. */
struct otlp_decoding {
    struct pb_reader request, resource_spans, scope_spans; /* the unread rest of each */
    struct otlp_origin origin;                             /* of the next span */
    struct otlp_decoded decoded;                           /* so far */
};

void otlp_decode_begin(struct otlp_decoding *decoding, struct text request);

/* Reads at most `most` fields; a span counts as one. Returns false at the end or at a fault. */
bool otlp_decode_some(struct otlp_decoding *decoding, uint64_t most, otlp_span_fn *call,
                      void *context);

/* Reads a message Span. Returns false if the message is malformed. */
bool otlp_read_span(struct text message, struct otlp_span *span);

/* ---- the whole span -------------------------------------------------------------------------- */

/* Copies the value of an attribute, NUL-terminated and cut to `size`. tag: OTLP_SPAN_ATTRIBUTE of a
 * message Span, or OTLP_RESOURCE_ATTRIBUTE of a message Resource. Returns false if the attribute is
 * missing. */
bool otlp_attribute_text(struct text message, enum otlp_field tag, struct text key, char *text,
                         size_t size);

/*
 * Returns true if a collector accepts the bytes of another tracer's span. A collector refuses a
 * whole request because of one unsound span. In a sound span, the fields that OpenTelemetry defines
 * have the defined types, texts are UTF-8, and ids have their lengths. Attributes have keys, and
 * values are not nested deeply. Unknown fields may be anything.
 */
bool otlp_is_sound(const struct otlp_origin *origin, struct text span);

/*
 * Fills `whole`. The memory of whole->log is used again by the next call; the caller frees it at
 * the end. The table owns the endpoints. Returns false if the span is broken, or when out of
 * memory.
 *
 * A span of the scope "blkin" becomes the span that BlkKin's encoder was given. A span of another
 * scope is mapped as OpenTelemetry's specification maps it to Zipkin (trace/sdk_exporters/zipkin.md
 * and common/mapping-to-non-otlp.md). Attributes of span, scope and resource, the status and
 * dropped counts become tags. Events become annotations. The remote endpoint is the first present
 * attribute of the specification's list. If the span is sound and the log has room, the span's
 * bytes follow as the entry SPAN_MESSAGE, for back ends of OTLP.
 */
bool otlp_decode_span(const struct otlp_origin *origin, const struct otlp_span *span,
                      struct endpoint_table *endpoints, struct span *whole);

#endif
