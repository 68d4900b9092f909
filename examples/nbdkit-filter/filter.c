/*
 * nbdkit-blkin-filter: traces every request of any nbdkit plugin. README.md is its manual.
 *
 * This file has what nbdkit calls: parameters, connections and requests. nbdkit runs the requests
 * of a connection in parallel. This is safe, because they only read the state of the connection.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "request.h"

#include <blkin/blkin_context.h>

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define SERVICE_MAX 72 /* libblkin cuts longer names */

/*
 * Set while nbdkit reads its command line. The filter may be loaded twice, above and below another
 * one: then both share these settings.
 */
static struct {
    const char *service;
    const char *sampling;
    int spans;
    bool layers_are_spans;
    bool has_parent;
    struct blkin_context parent;
} settings = {.service = "nbdkit", .spans = 2};

/* ---- parameters ---- */

static int set_service(const char *value)
{
    const size_t length = strlen(value);

    if (length == 0 || length > SERVICE_MAX) {
        nbdkit_error("blkin-service='%s': expected a name of 1 to %d bytes", value, SERVICE_MAX);
        return -1;
    }
    settings.service = value;
    return 0;
}

static int set_spans(const char *value)
{
    if (strcmp(value, "1") != 0 && strcmp(value, "2") != 0) {
        nbdkit_error("blkin-spans='%s': expected 1 (the request) or 2 (and the layer below)",
                     value);
        return -1;
    }
    settings.spans = value[0] - '0';
    return 0;
}

static int set_layers(const char *value)
{
    if (strcmp(value, "steps") != 0 && strcmp(value, "spans") != 0) {
        nbdkit_error("blkin-layers='%s': expected steps (of the request's span) or spans (of "
                     "their own)",
                     value);
        return -1;
    }
    settings.layers_are_spans = strcmp(value, "spans") == 0;
    return 0;
}

static int set_parent(const char *value)
{
    if (blkin_context_from_traceparent(&settings.parent, value, strlen(value)) != 0) {
        nbdkit_error("blkin-traceparent='%s': expected a W3C traceparent, such as "
                     "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                     value);
        return -1;
    }
    settings.has_parent = true;
    return 0;
}

static int set_sampling(const char *value)
{
    if (blkin_set_sampling(value) != 0) {
        nbdkit_error("blkin-sampling='%s': expected always, never, ratio=0.01 or rate=100, and "
                     "rules as in ratio=0.01,flush:always",
                     value);
        return -1;
    }
    settings.sampling = value;
    return 0;
}

static int filter_config(nbdkit_next_config *next, nbdkit_backend *backend, const char *key,
                         const char *value)
{
    if (strcmp(key, "blkin-service") == 0)
        return set_service(value);
    if (strcmp(key, "blkin-spans") == 0)
        return set_spans(value);
    if (strcmp(key, "blkin-layers") == 0)
        return set_layers(value);
    if (strcmp(key, "blkin-traceparent") == 0)
        return set_parent(value);
    if (strcmp(key, "blkin-sampling") == 0)
        return set_sampling(value);
    if (strncmp(key, "blkin-", strlen("blkin-")) == 0) {
        nbdkit_error("unknown parameter '%s': the blkin filter has blkin-service, blkin-spans, "
                     "blkin-layers, blkin-traceparent and blkin-sampling",
                     key);
        return -1;
    }
    return next(backend, key, value);
}

#define HELP                                                                                 \
    "blkin-service=NAME         Service name of the spans (default: nbdkit)\n"               \
    "blkin-spans=1|2            1: a span for each request; 2 (default): and one for the\n"  \
    "                           layer below\n"                                               \
    "blkin-layers=steps|spans   Record layers as steps of the request's span, one event\n"   \
    "                           for all (default), or as spans of their own\n"               \
    "blkin-traceparent=CONTEXT  W3C trace context that all requests belong to, unless the\n" \
    "                           client's export name ends with /traceparent=CONTEXT\n"       \
    "blkin-sampling=POLICY      Which traces to start: always (default), never,\n"           \
    "                           ratio=0.01, rate=100 (a second), ratio=0.01,flush:always"

/* ---- the process ---- */

/* Called in the process that serves. The library cannot start earlier: if nbdkit goes to the
 * background, the threads of the first process end. */
static int filter_after_fork(nbdkit_backend *backend)
{
    (void)backend;
    blkin_set_service(settings.service, NULL, 0);
    blkin_set_version("nbdkit " NBDKIT_VERSION_STRING);
    (void)blkin_init();
    /* after blkin_init(), because a parameter has priority over BLKIN_SAMPLING */
    if (settings.sampling)
        (void)blkin_set_sampling(settings.sampling);
    return 0;
}

static void filter_unload(void)
{
    blkin_set_service(NULL, NULL, 0);
    blkin_set_version(NULL); /* the filter, which has the text, is unmapped next */
}

/* ---- connections ---- */

static void set_client(struct connection *connection)
{
    union {
        struct sockaddr any;
        struct sockaddr_in ip4;
        struct sockaddr_in6 ip6;
        struct sockaddr_storage storage;
    } peer = {.any.sa_family = AF_UNSPEC};
    socklen_t length = sizeof(peer);
    const void *address;

    if (nbdkit_peer_name(&peer.any, &length) != 0)
        return;
    if (peer.any.sa_family == AF_INET) {
        address = &peer.ip4.sin_addr;
        connection->client_port = ntohs(peer.ip4.sin_port);
    } else if (peer.any.sa_family == AF_INET6) {
        address = &peer.ip6.sin6_addr;
        connection->client_port = ntohs(peer.ip6.sin6_port);
    } else {
        return;
    }
    (void)inet_ntop(peer.any.sa_family, address, connection->client_ip,
                    sizeof(connection->client_ip));
}

#define KEY        "traceparent="
#define KEY_LENGTH (sizeof(KEY) - 1)

#define VALUE_LENGTH (BLKIN_TRACEPARENT_SIZE - 1)

/*
 * Returns true if the export name ends with a W3C trace context. Then *context becomes this
 * context, and *length the length of the name without it. Returns false without a change if not.
 * Forms:
 *
 *     00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *     traceparent=00-4bf9...-01
 *     disk.img/traceparent=00-4bf9...-01    (or "?" in place of "/")
 */
static bool export_name_context(const char *name, size_t *length, struct blkin_context *context)
{
    struct blkin_context found;
    size_t left = strlen(name);

    if (left < VALUE_LENGTH)
        return false;
    left -= VALUE_LENGTH;
    if (blkin_context_from_traceparent(&found, name + left, VALUE_LENGTH) != 0)
        return false;
    if (left > 0) {
        if (left < KEY_LENGTH || memcmp(name + left - KEY_LENGTH, KEY, KEY_LENGTH) != 0)
            return false;
        left -= KEY_LENGTH;
    }
    if (left > 0) {
        left--;
        if (name[left] != '/' && name[left] != '?')
            return false;
    }
    *length = left;
    *context = found;
    return true;
}

/* Sets parent and export of the connection; the strings live as long as the connection. */
static int set_parent_and_export(struct connection *connection, const char *name)
{
    size_t length = strlen(name);

    connection->has_parent = settings.has_parent;
    connection->parent = settings.parent;
    if (export_name_context(name, &length, &connection->parent))
        connection->has_parent = true;
    else if (strstr(name, "traceparent="))
        nbdkit_debug("blkin: export name '%s' does not end with a valid traceparent: "
                     "passed on unchanged",
                     name);
    connection->export = nbdkit_strndup_intern(name, length);
    return connection->export ? 0 : -1;
}

static void *filter_open(nbdkit_next_open *next, nbdkit_context *context, int readonly,
                         const char *export_name, int is_tls)
{
    static _Thread_local int depth; /* a filter opens the one below it before it returns */
    struct connection *connection = calloc(1, sizeof(*connection));
    int opened = -1;

    (void)is_tls;
    if (!connection) {
        nbdkit_error("blkin: no memory for a connection");
        return NULL;
    }
    connection->is_inner = depth > 0;
    connection->has_layer = settings.spans == 2;
    connection->layers_are_spans = settings.layers_are_spans;
    set_client(connection);
    if (set_parent_and_export(connection, export_name) == 0) {
        depth++;
        opened = next(context, readonly, connection->export);
        depth--;
    }
    if (opened == -1) {
        free(connection);
        return NULL;
    }
    return connection;
}

static void filter_close(void *handle)
{
    free(handle);
}

/* ---- requests ----
 *
 * While nobody records, a request costs a test and a jump to the layer below. The functions with
 * spans are marked APART, so that the compiler keeps them out of this path.
 */

#define APART __attribute__((noinline, cold))

APART static int trace(nbdkit_next *next, void *handle, enum request_type type, uint32_t count,
                       uint64_t offset, uint32_t flags, void *data, int *err)
{
    const struct request request = {
        .type = type,
        .count = count,
        .offset = offset,
        .flags = flags,
        .data = data,
    };

    return request_trace(next, handle, &request, err);
}

/* The arguments have the order of the callback's, so the compiler need not move them. */
APART static int trace_pread(nbdkit_next *next, void *handle, void *buffer, uint32_t count,
                             uint64_t offset, uint32_t flags, int *err)
{
    return trace(next, handle, REQUEST_READ, count, offset, flags, buffer, err);
}

/* Casts const away; pass_on() only reads the buffer. */
APART static int trace_pwrite(nbdkit_next *next, void *handle, const void *buffer, uint32_t count,
                              uint64_t offset, uint32_t flags, int *err)
{
    return trace(next, handle, REQUEST_WRITE, count, offset, flags, (void *)buffer, err);
}

static int filter_pread(nbdkit_next *next, void *handle, void *buffer, uint32_t count,
                        uint64_t offset, uint32_t flags, int *err)
{
    if (request_is_traced())
        return trace_pread(next, handle, buffer, count, offset, flags, err);
    return next->pread(next, buffer, count, offset, flags, err);
}

static int filter_pwrite(nbdkit_next *next, void *handle, const void *buffer, uint32_t count,
                         uint64_t offset, uint32_t flags, int *err)
{
    if (request_is_traced())
        return trace_pwrite(next, handle, buffer, count, offset, flags, err);
    return next->pwrite(next, buffer, count, offset, flags, err);
}

static int filter_flush(nbdkit_next *next, void *handle, uint32_t flags, int *err)
{
    if (request_is_traced())
        return trace(next, handle, REQUEST_FLUSH, 0, 0, flags, NULL, err);
    return next->flush(next, flags, err);
}

static int filter_trim(nbdkit_next *next, void *handle, uint32_t count, uint64_t offset,
                       uint32_t flags, int *err)
{
    if (request_is_traced())
        return trace(next, handle, REQUEST_TRIM, count, offset, flags, NULL, err);
    return next->trim(next, count, offset, flags, err);
}

static int filter_zero(nbdkit_next *next, void *handle, uint32_t count, uint64_t offset,
                       uint32_t flags, int *err)
{
    if (request_is_traced())
        return trace(next, handle, REQUEST_ZERO, count, offset, flags, NULL, err);
    return next->zero(next, count, offset, flags, err);
}

static int filter_extents(nbdkit_next *next, void *handle, uint32_t count, uint64_t offset,
                          uint32_t flags, struct nbdkit_extents *extents, int *err)
{
    if (request_is_traced())
        return trace(next, handle, REQUEST_EXTENTS, count, offset, flags, extents, err);
    return next->extents(next, count, offset, flags, extents, err);
}

static int filter_cache(nbdkit_next *next, void *handle, uint32_t count, uint64_t offset,
                        uint32_t flags, int *err)
{
    if (request_is_traced())
        return trace(next, handle, REQUEST_CACHE, count, offset, flags, NULL, err);
    return next->cache(next, count, offset, flags, err);
}

static struct nbdkit_filter filter = {
    .name = "blkin",
    .longname = "nbdkit BlkKin filter",
    .description = "Traces every request with BlkKin: its agent, or LTTng, records the spans.",
    .unload = filter_unload,
    .config = filter_config,
    .config_help = HELP,
    .after_fork = filter_after_fork,
    .open = filter_open,
    .close = filter_close,
    .pread = filter_pread,
    .pwrite = filter_pwrite,
    .flush = filter_flush,
    .trim = filter_trim,
    .zero = filter_zero,
    .extents = filter_extents,
    .cache = filter_cache,
};

struct nbdkit_filter *filter_init(void); /* nbdkit's header defines it without a prototype */
NBDKIT_REGISTER_FILTER(filter)
