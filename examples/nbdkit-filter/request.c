/*
 * The span of one NBD request: a server span, and in it a step, or a span, around the layer below.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "request.h"

#include <stdio.h>
#include <string.h>

/* The names of the request's span, and of the call to the layer below. */
static const struct {
    const char *request;
    const char *layer;
} names[] = {
    [REQUEST_READ] = {"read", "next.pread"},   [REQUEST_WRITE] = {"write", "next.pwrite"},
    [REQUEST_FLUSH] = {"flush", "next.flush"}, [REQUEST_TRIM] = {"trim", "next.trim"},
    [REQUEST_ZERO] = {"zero", "next.zero"},    [REQUEST_EXTENTS] = {"extents", "next.extents"},
    [REQUEST_CACHE] = {"cache", "next.cache"},
};

static int pass_on(nbdkit_next *next, const struct request *request, int *err)
{
    const uint32_t count = request->count;
    const uint64_t offset = request->offset;
    const uint32_t flags = request->flags;

    switch (request->type) {
    case REQUEST_READ:
        return next->pread(next, request->data, count, offset, flags, err);
    case REQUEST_WRITE:
        return next->pwrite(next, request->data, count, offset, flags, err);
    case REQUEST_FLUSH:
        return next->flush(next, flags, err);
    case REQUEST_TRIM:
        return next->trim(next, count, offset, flags, err);
    case REQUEST_ZERO:
        return next->zero(next, count, offset, flags, err);
    case REQUEST_EXTENTS:
        return next->extents(next, count, offset, flags, request->data, err);
    case REQUEST_CACHE:
        return next->cache(next, count, offset, flags, err);
    }
    __builtin_unreachable();
}

/* Tags the flags by the names in nbdkit's documentation, such as "fua,may_trim". */
static void tag_flags(struct blkin_span *span, uint32_t flags)
{
    static const char *const flag_names[] = {"may_trim", "fua", "req_one", "fast_zero"};
    char text[64] = "";
    size_t length = 0;

    for (size_t i = 0; i < sizeof(flag_names) / sizeof(flag_names[0]); i++) {
        if (flags & (1u << i))
            length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s",
                                       length > 0 ? "," : "", flag_names[i]);
    }
    if (length > 0)
        blkin_span_tag_string(span, "flags", text);
}

static void describe(struct blkin_span *span, const struct connection *connection,
                     const struct request *request)
{
    if (request->type != REQUEST_FLUSH) {
        blkin_span_tag_uint64(span, "offset", request->offset);
        blkin_span_tag_uint64(span, "length", request->count);
    }
    if (request->flags)
        tag_flags(span, request->flags);
    if (connection->export[0])
        blkin_span_tag_string(span, "export", connection->export);
    if (connection->client_ip[0])
        blkin_span_set_remote(span, NULL, connection->client_ip, connection->client_port);
}

static const char *error_name(int error)
{
#ifdef __GLIBC__
    const char *name = strerrorname_np(error);

    if (name)
        return name;
#endif
    return strerror(error);
}

static void tag_result(struct blkin_span *span, int result, const int *err)
{
    if (result == -1)
        BLKIN_ERROR(span, error_name(*err));
}

/* Passes the request on with the span as the current one. A layer below that uses libblkin makes
 * children of it. */
static int pass_on_within(struct blkin_span *span, nbdkit_next *next, const struct request *request,
                          int *err)
{
    BLKIN_CURRENT_SCOPE(span);

    return pass_on(next, request, err);
}

/* Makes a step. The span stays the current one: if this filter is also below, on this thread,
 * its step is inside this step. */
static int trace_step(struct blkin_span *span, nbdkit_next *next, const struct request *request,
                      int *err)
{
    int result;

    blkin_step_begin(span, names[request->type].layer, BLKIN_INTERNAL);
    result = pass_on_within(span, next, request, err);
    tag_result(span, result, err);
    blkin_step_end(span);
    return result;
}

static int trace_span(struct blkin_span *above, nbdkit_next *next, const struct request *request,
                      int *err)
{
    struct blkin_span span;
    int result;

    blkin_span_begin(&span, names[request->type].layer, BLKIN_INTERNAL, above);
    result = pass_on_within(&span, next, request, err);
    tag_result(&span, result, err);
    blkin_span_end(&span);
    return result;
}

static int trace_layer(struct blkin_span *above, nbdkit_next *next,
                       const struct connection *connection, const struct request *request, int *err)
{
    if (connection->layers_are_spans)
        return trace_span(above, next, request, err);
    return trace_step(above, next, request, err);
}

int request_trace(nbdkit_next *next, const struct connection *connection,
                  const struct request *request, int *err)
{
    struct blkin_span *const above = blkin_current();
    struct blkin_span span;
    int result;

    if (above)
        return trace_layer(above, next, connection, request, err);
    /* a filter in between made this request in its own thread, for example to read ahead */
    if (connection->is_inner)
        return pass_on(next, request, err);

    blkin_span_begin_remote(&span, names[request->type].request, BLKIN_SERVER,
                            connection->has_parent ? &connection->parent : NULL);
    if (blkin_span_is_recorded(&span))
        describe(&span, connection, request);
    if (connection->has_layer)
        result = trace_layer(&span, next, connection, request, err);
    else
        result = pass_on_within(&span, next, request, err);
    tag_result(&span, result, err);
    blkin_span_end(&span);
    return result;
}
