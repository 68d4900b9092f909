/* SPDX-License-Identifier: BSD-2-Clause */
#include "receiver.h"

#include "babeltrace-plugin/base/listen.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/unix_socket.h"
#include "babeltrace-plugin/encode/protobuf.h"
#include "tools/base/metrics.h"
#include "upload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* The most memory of the bodies of all requests. One sender may use half of the memory that the
 * bodies of the other senders leave. */
#define BODIES_MAX    (UINT64_C(64) << 20)
#define MESSAGE_BYTES (8U << 20) /* the largest request after decompression */
/* The most connections. A further one closes the longest idle one of the sender with the most. */
#define CONNECTIONS      256
#define CONNECTION_BYTES 65536 /* memory for the head of a request and a piece of its body */
#define IDLE_S           120   /* then a connection is closed; SDKs send every 5 s */
#define TICK_MS          1000
#define REQUEST_MS       30000             /* the time limit of a request */
#define TURN_NS          INT64_C(10000000) /* for requests in one turn of the loop; others wait */
#define PROTOBUF         "application/x-protobuf"
#define TEXT_MAX         256 /* of a message in an answer */

static const struct unix_socket_kind socket_of_all_users = {SOCK_STREAM, 0666, 64};

struct refusal {
    unsigned status; /* of HTTP */
    unsigned code;   /* of gRPC */
    size_t counter;  /* in struct otlp_counts */
    const char *why;
};

#define COUNTER(name) offsetof(struct otlp_counts, name)

enum {
    INVALID_ARGUMENT = 3,
    PERMISSION_DENIED = 7,
    RESOURCE_EXHAUSTED = 8,
    UNIMPLEMENTED = 12,
    UNAVAILABLE = 14
};

static const struct refusal of_web_page = {
    MHD_HTTP_FORBIDDEN, PERMISSION_DENIED, COUNTER(refused_page),
    "this request comes from a web page: only programs may send spans here"};
static const struct refusal wrong_method = {MHD_HTTP_METHOD_NOT_ALLOWED, UNIMPLEMENTED,
                                            COUNTER(refused_page), "expected POST /v1/traces"};
static const struct refusal wrong_path = {
    MHD_HTTP_NOT_FOUND, UNIMPLEMENTED, COUNTER(refused_page),
    "expected POST /v1/traces, so set OTEL_EXPORTER_OTLP_ENDPOINT without a path"};
static const struct refusal wrong_signal = {
    MHD_HTTP_NOT_FOUND, UNIMPLEMENTED, COUNTER(refused_page),
    "expected POST /v1/traces: only spans are taken here, so set OTEL_METRICS_EXPORTER=none and "
    "OTEL_LOGS_EXPORTER=none"};
static const struct refusal wrong_type = {MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, UNIMPLEMENTED,
                                          COUNTER(refused_type),
                                          "expected Content-Type: application/x-protobuf, so set "
                                          "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf"};
static const struct refusal wrong_coding = {
    MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, UNIMPLEMENTED, COUNTER(refused_type),
    "expected no Content-Encoding or gzip, so set OTEL_EXPORTER_OTLP_COMPRESSION=gzip or none"};
static const struct refusal too_large = {
    MHD_HTTP_CONTENT_TOO_LARGE, INVALID_ARGUMENT, COUNTER(refused_too_large),
    "the request is too large: send fewer spans at once (OTEL_BSP_MAX_EXPORT_BATCH_SIZE)"};
static const struct refusal not_gzip = {MHD_HTTP_BAD_REQUEST, INVALID_ARGUMENT,
                                        COUNTER(refused_broken), "the body is not gzip"};
static const struct refusal not_otlp = {
    MHD_HTTP_BAD_REQUEST, INVALID_ARGUMENT, COUNTER(refused_broken),
    "expected an ExportTraceServiceRequest: the spans before the error were accepted"};
static const struct refusal too_many = {MHD_HTTP_TOO_MANY_REQUESTS, RESOURCE_EXHAUSTED,
                                        COUNTER(refused_rate), "too many spans per second"};
static const struct refusal no_memory = {MHD_HTTP_SERVICE_UNAVAILABLE, UNAVAILABLE,
                                         COUNTER(refused_memory), "out of memory: try again"};

struct receiver {
    struct loop *loop;
    struct receiver_calls calls;
    struct otlp_peers *senders;
    struct http http;
    struct http_peers peers;
    struct accepting tcp, local;
    struct unix_socket local_socket;
    char url[LISTEN_URL_MAX];
    struct timer tick;
    uint64_t body_bytes;          /* memory of all bodies */
    struct cds_list_head waiting; /* requests that wait for the next turn: suspended */
    struct timer turn;
    uint64_t turn_run; /* the number of the current MHD_run() */
    int64_t turn_ns;   /* when the MHD_run() turn_run began */
    bool is_ending;
};

struct otlp_request {
    struct receiver *receiver;
    const struct refusal *refusal; /* NULL: none so far */
    unsigned retry_s;
    bool is_answered;
    bool is_taking; /* the body is complete, and its spans are taken in steps */
    struct upload upload;
    struct receiver_message message;
    struct MHD_Connection *connection;
    struct cds_list_head in_waiting;
};

static void receiver_accept(void *context, int fd, const union peer_address *from, socklen_t length)
{
    struct receiver *receiver = context;
    struct otlp_peer *sender = otlp_peers_find(receiver->senders, fd, from);

    if (!sender) {
        close(fd);
        return;
    }
    sender->counts.connections++;
    http_peers_admit(&receiver->peers, fd, from, length, &sender->payer.sender);
    http_run_soon(&receiver->http);
}

/* Notes that a request of the connection begins or ends. */
static void receiver_set_busy(struct receiver *receiver, struct MHD_Connection *connection,
                              bool is_busy)
{
    struct listener_peer *peer = http_peer(connection);

    if (!peer)
        return;
    peer->is_busy = is_busy;
    peer_touch(&receiver->peers.peers, peer);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Frees the text. No byte of an encoded answer is 0, because no answer contains the number 0. */
static enum MHD_Result receiver_answer(struct MHD_Connection *connection, unsigned status,
                                       unsigned retry_s, char *text)
{
    char seconds[16];
    const struct http_header headers[] = {
        {MHD_HTTP_METHOD_NOT_ALLOWED, "Allow", "POST"},
        {MHD_HTTP_TOO_MANY_REQUESTS, "Retry-After", seconds},
        {MHD_HTTP_SERVICE_UNAVAILABLE, "Retry-After", seconds},
        {0, NULL, NULL},
    };

    (void)snprintf(seconds, sizeof(seconds), "%u", retry_s ? retry_s : 1);
    return http_answer(connection, status, PROTOBUF, text, headers);
}

/* Returns a google.rpc.Status; NULL: out of memory. */
static char *receiver_status_of(const struct refusal *refusal)
{
    char *text = malloc(PB_TEXT_MAX(TEXT_MAX)), *at = text;
    bool cut;

    if (!text)
        return NULL;
    *at++ = PB_VARINT(1);
    at = pb_put_varint(at, refusal->code);
    *at++ = PB_BYTES(2);
    *pb_put_text(at, text_of(refusal->why), TEXT_MAX, &cut) = '\0';
    return text;
}

/* Returns an ExportTraceServiceResponse with the number of rejected spans. wrong: without ids, or
 * too large. unstored: for which memory ran out. Returns NULL when out of memory. */
static char *receiver_response_of(uint64_t wrong, uint64_t unstored)
{
    static const char of_wrong[] = "spans without a trace id and an id of their own, or too large "
                                   "(resource and scope together: 64 KiB)";
    const char *why = !unstored ? of_wrong
                      : wrong   ? "wrong spans, and out of memory"
                                : "out of memory";
    const uint64_t rejected = wrong + unstored;
    char *text = malloc(PB_TEXT_MAX(TEXT_MAX)), *at = text, *partial;
    bool cut;

    if (text && rejected) {
        *at++ = PB_BYTES(1);
        partial = at++;
        *at++ = PB_VARINT(1);
        at = pb_put_varint(at, rejected);
        *at++ = PB_BYTES(2);
        at = pb_end(partial, pb_put_text(at, text_of(why), TEXT_MAX, &cut));
    }
    if (text)
        *at = '\0';
    return text;
}

static enum MHD_Result receiver_refuse(struct otlp_request *request,
                                       struct MHD_Connection *connection)
{
    const struct refusal *refusal = request->refusal;
    uint64_t *counter =
        (uint64_t *)(void *)((char *)&request->message.sender->counts + refusal->counter);

    ++*counter;
    request->is_answered = true;
    return receiver_answer(connection, refusal->status, request->retry_s,
                           receiver_status_of(refusal));
}

/* ---- requests -------------------------------------------------------------------------------- */

static const char *receiver_header(struct MHD_Connection *connection, const char *name)
{
    const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);

    return value ? value : "";
}

/* The type may have parameters. */
static bool receiver_is_protobuf(struct MHD_Connection *connection)
{
    const char *type = receiver_header(connection, "Content-Type");
    const size_t length = sizeof(PROTOBUF) - 1;

    return strncasecmp(type, PROTOBUF, length) == 0 && strchr("; \t", type[length]) != NULL;
}

/* RFC 9110, 8.4.1.3: x-gzip is the same as gzip. */
static bool receiver_is_gzip(struct MHD_Connection *connection)
{
    const char *coding = receiver_header(connection, "Content-Encoding");

    return strcasecmp(coding, "gzip") == 0 || strcasecmp(coding, "x-gzip") == 0;
}

/* Returns NULL for /v1/traces. Accepts further slashes at both ends, because users configure
 * endpoints with a slash at the end. */
static const struct refusal *receiver_path_refusal(const char *url)
{
    struct text path = text_of(url + strspn(url, "/"));

    while (path.length && path.data[path.length - 1] == '/')
        path.length--;
    if (text_is(path, "v1/traces"))
        return NULL;
    return text_is(path, "v1/metrics") || text_is(path, "v1/logs") ? &wrong_signal : &wrong_path;
}

static const struct refusal *receiver_head_refusal(struct MHD_Connection *connection,
                                                   const char *url, const char *method)
{
    const char *coding = receiver_header(connection, "Content-Encoding");
    const char *length = receiver_header(connection, "Content-Length");

    if (*receiver_header(connection, "Origin"))
        return &of_web_page;
    if (receiver_path_refusal(url))
        return receiver_path_refusal(url);
    if (strcmp(method, "POST") != 0)
        return &wrong_method;
    if (!receiver_is_protobuf(connection))
        return &wrong_type;
    if (*coding && !receiver_is_gzip(connection) && strcasecmp(coding, "identity") != 0)
        return &wrong_coding;
    return strtoull(length, NULL, 10) > MESSAGE_BYTES ? &too_large : NULL;
}

static enum MHD_Result receiver_begin(struct receiver *receiver, struct MHD_Connection *connection,
                                      const char *url, const char *method, void **request_slot)
{
    const struct listener_peer *peer = http_peer(connection);
    struct otlp_peer *sender =
        peer ? caa_container_of(peer->sender, struct otlp_peer, payer.sender) : NULL;
    struct otlp_request *request = sender ? calloc(1, sizeof(*request)) : NULL;

    if (!sender)
        return MHD_NO;
    sender->counts.requests++;
    if (!request) {
        sender->counts.refused_memory++;
        return MHD_NO;
    }
    request->receiver = receiver;
    request->message.sender = sender;
    request->connection = connection;
    request->refusal = receiver_head_refusal(connection, url, method);
    upload_begin(&request->upload, receiver_is_gzip(connection), MESSAGE_BYTES);
    if (!request->refusal) {
        request->retry_s = receiver->calls.busy_s(receiver->calls.context, sender);
        request->refusal = request->retry_s ? &too_many : NULL;
    }
    *request_slot = request;
    receiver_set_busy(receiver, connection, true);
    /* a too large request is refused at once, as its body may never end */
    return request->refusal == &too_large ? receiver_refuse(request, connection) : MHD_YES;
}

/* Updates the sums of memory. before: the former capacity of the body. */
static void receiver_count_body(struct otlp_request *request, size_t before)
{
    request->receiver->body_bytes += request->upload.bytes.capacity - before;
    request->message.sender->body_bytes += request->upload.bytes.capacity - before;
}

static void receiver_drop_body(struct otlp_request *request)
{
    const size_t before = request->upload.bytes.capacity;

    upload_free(&request->upload);
    receiver_count_body(request, before);
}

static const struct refusal *const refusals[] = {
    [UPLOAD_FINE] = NULL,
    [UPLOAD_TOO_LONG] = &too_large,
    [UPLOAD_BROKEN] = &not_gzip,
    [UPLOAD_STARVED] = &no_memory,
};

static void receiver_add(struct otlp_request *request, const char *data, size_t size)
{
    const size_t before = request->upload.bytes.capacity;
    struct otlp_peer *sender = request->message.sender;

    sender->counts.bytes += size;
    if (request->refusal)
        return;
    if (request->receiver->body_bytes + sender->body_bytes + size > BODIES_MAX)
        request->refusal = &no_memory;
    else
        request->refusal = refusals[upload_add(&request->upload, data, size)];
    receiver_count_body(request, before);
    if (request->refusal)
        receiver_drop_body(request);
}

/* Returns false if requests have used their time in this turn of the loop. Without a limit, other
 * work of the loop could wait for 256 requests of 20 ms each. */
static bool receiver_has_time(struct receiver *receiver)
{
    const int64_t now_ns = clock_ns();

    if (receiver->turn_run != receiver->http.runs) {
        receiver->turn_run = receiver->http.runs;
        receiver->turn_ns = now_ns;
    }
    return now_ns - receiver->turn_ns < TURN_NS;
}

/* Suspends the request until the next turn, when libmicrohttpd repeats the call. */
static enum MHD_Result receiver_wait(struct otlp_request *request)
{
    struct receiver *receiver = request->receiver;

    if (receiver->is_ending)
        return MHD_NO;
    cds_list_add_tail(&request->in_waiting, &receiver->waiting);
    MHD_suspend_connection(request->connection);
    timer_set(receiver->loop, &receiver->turn, 0);
    return MHD_YES;
}

static void receiver_resume(void *context)
{
    struct receiver *receiver = context;
    struct otlp_request *request, *next;

    cds_list_for_each_entry_safe(request, next, &receiver->waiting, in_waiting)
    {
        cds_list_del(&request->in_waiting);
        MHD_resume_connection(request->connection);
    }
    http_run_soon(&receiver->http);
}

static enum MHD_Result receiver_take(struct otlp_request *request)
{
    struct receiver *receiver = request->receiver;
    struct receiver_message *message = &request->message;

    if (!request->refusal)
        request->refusal = refusals[upload_end(&request->upload)];
    if (request->refusal)
        return receiver_refuse(request, request->connection);
    if (!request->is_taking)
        otlp_decode_begin(&message->decoding, upload_text(&request->upload));
    request->is_taking = true;
    if (receiver->calls.take(receiver->calls.context, message))
        return receiver_wait(request);
    if (message->decoding.decoded.is_broken) {
        request->refusal = &not_otlp;
        return receiver_refuse(request, request->connection);
    }
    message->sender->counts.requests_taken++;
    request->is_answered = true;
    return receiver_answer(
        request->connection, MHD_HTTP_OK, 0,
        receiver_response_of(message->decoding.decoded.invalid + message->too_large,
                             message->no_memory));
}

static enum MHD_Result receiver_handle(void *context, struct MHD_Connection *connection,
                                       const char *url, const char *method, const char *version,
                                       const char *data, size_t *size, void **request_slot)
{
    struct otlp_request *request = *request_slot;

    (void)version;
    if (!request)
        return receiver_begin(context, connection, url, method, request_slot);
    if (!request->refusal && !receiver_has_time(request->receiver))
        return receiver_wait(request);
    if (*size == 0)
        return receiver_take(request);
    receiver_add(request, data, *size);
    *size = 0;
    return MHD_YES;
}

static void receiver_completed(void *context, struct MHD_Connection *connection,
                               void **request_slot, enum MHD_RequestTerminationCode code)
{
    struct receiver *receiver = context;
    struct otlp_request *request = *request_slot;

    (void)code;
    if (!request)
        return;
    request->message.sender->counts.requests_cut_off += !request->is_answered;
    receiver_drop_body(request);
    receiver_set_busy(receiver, connection, false);
    free(request);
    *request_slot = NULL;
}

/* ---- in the loop ----------------------------------------------------------------------------- */

/* Drops libmicrohttpd's messages: they are about single connections, which are counted. */
static void receiver_log(void *context, const char *format, va_list values)
{
    (void)context;
    (void)format;
    (void)values;
}

static void receiver_tick(void *context)
{
    struct receiver *receiver = context;

    timer_set(receiver->loop, &receiver->tick, TICK_MS);
    (void)peers_end_late(&receiver->peers.peers);
    http_run_soon(&receiver->http);
}

static bool receiver_listen_tcp(struct receiver *receiver, const char *where, struct error *error)
{
    struct listen_address address;
    int fd;

    if (!listen_parse(&address, "otlp-listen", where, error))
        return false;
    fd = listen_open(&address, "otlp-listen", where, error);
    if (fd < 0)
        return false;
    listen_url(&address, fd, "http", receiver->url);
    accepting_begin(&receiver->tcp, receiver->loop, fd);
    return true;
}

struct receiver *receiver_open(struct loop *loop, const char *listen, const char *socket,
                               const struct receiver_calls *calls, struct otlp_peers *senders,
                               struct error *error)
{
    struct receiver *receiver = calloc(1, sizeof(*receiver));
    const char *where = listen ? listen : "";
    const char *path = socket ? socket : "";

    error_set(error, "out of memory");
    if (!receiver)
        return NULL;
    *receiver = (struct receiver){.loop = loop, .calls = *calls, .senders = senders};
    receiver->tcp = receiver->local =
        (struct accepting){.take_connection = receiver_accept, .context = receiver};
    receiver->tick = (struct timer){.due = receiver_tick, .context = receiver};
    receiver->turn = (struct timer){.due = receiver_resume, .context = receiver};
    receiver->peers.peers = (struct listener_peers){
        .most = CONNECTIONS, .time_ms = REQUEST_MS, .spares_busy = true, .spares_idle = true};
    CDS_INIT_LIST_HEAD(&receiver->waiting);
    http_peers_begin(
        &receiver->peers,
        MHD_start_daemon(HTTP_FLAGS | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
                         receiver_handle, receiver, MHD_OPTION_EXTERNAL_LOGGER, receiver_log, NULL,
                         MHD_OPTION_NOTIFY_COMPLETED, receiver_completed, receiver,
                         MHD_OPTION_NOTIFY_CONNECTION, http_peers_notify, &receiver->peers,
                         MHD_OPTION_CONNECTION_LIMIT, 65536U, MHD_OPTION_CONNECTION_TIMEOUT,
                         (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                         (size_t)CONNECTION_BYTES, MHD_OPTION_END));
    if (!http_begin(&receiver->http, loop, receiver->peers.daemon))
        error_set(error, "cannot start the HTTP server for OTLP: %s", strerror(errno));
    else if ((!*where || receiver_listen_tcp(receiver, where, error)) &&
             (!*path ||
              unix_socket_listen(&receiver->local_socket, &socket_of_all_users, path, error))) {
        if (*path)
            accepting_begin(&receiver->local, loop, receiver->local_socket.fd);
        receiver_tick(receiver);
        return receiver;
    }
    receiver_close(receiver);
    return NULL;
}

void receiver_close(struct receiver *receiver)
{
    if (!receiver)
        return;
    if (receiver->tcp.loop)
        close(receiver->tcp.listener.fd);
    if (receiver->local.loop)
        unix_socket_close(&receiver->local_socket);
    accepting_end(&receiver->tcp);
    accepting_end(&receiver->local);
    receiver->is_ending = true;
    if (!cds_list_empty(&receiver->waiting)) { /* no connection may be suspended at http_end() */
        receiver_resume(receiver);
        (void)MHD_run(receiver->http.daemon);
    }
    http_end(&receiver->http);
    timer_clear(receiver->loop, &receiver->turn);
    timer_clear(receiver->loop, &receiver->tick);
    free(receiver);
}

const char *receiver_url(const struct receiver *receiver)
{
    return receiver->url;
}

const char *receiver_socket(const struct receiver *receiver)
{
    return receiver->local.loop ? receiver->local_socket.address.sun_path : "";
}
