/*
 * The hub's HTTP.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "server_parts.h"

#include "babeltrace-plugin/account/http_server.h"
#include "babeltrace-plugin/account/prometheus.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/say.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define OWN_FDS        64 /* files and sockets that are no connections */
#define CONNECTION_MAX 65536
#define HEAD_BYTES     8192 /* of a request, at most */
#define TICK_MS        1000

/* ---- answers --------------------------------------------------------------------------------- */

enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
                       char *text)
{
    static const struct http_header headers[] = {
        {0, "Cache-Control", "no-store"},
        {MHD_HTTP_UNAUTHORIZED, "WWW-Authenticate", "Bearer"},
        {MHD_HTTP_METHOD_NOT_ALLOWED, "Allow", "GET, HEAD, POST"},
        {MHD_HTTP_TOO_MANY_REQUESTS, "Retry-After", "1"},
        {0, NULL, NULL},
    };

    return http_answer(connection, status, type, text, headers);
}

enum MHD_Result answer_json(struct MHD_Connection *connection, unsigned status, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return answer(connection, status, "application/json", text);
}

enum MHD_Result deny(struct server *server, struct MHD_Connection *connection, unsigned status,
                     const char *why)
{
    if (status == MHD_HTTP_UNAUTHORIZED || status == MHD_HTTP_FORBIDDEN)
        server->counts.unauthorized++;
    else if (status != MHD_HTTP_TOO_MANY_REQUESTS)
        server->counts.malformed++;
    return answer_json(connection, status, json_pack("{ss}", "error", why));
}

/* ---- the other pages ------------------------------------------------------------------------- */

static json_t *server_host_json(const struct host *host)
{
    const struct host_counts *counts = &host->counts;

    return json_pack("{ss, ss, so, sI, sI, sI, sI}", "host", host->name, "state",
                     host->is_there ? "there" : "away", "since", json_time(host->since_ns),
                     "posted", (json_int_t)counts->posted, "delivered",
                     (json_int_t)counts->delivered, "dropped_traces",
                     (json_int_t)counts->dropped_traces, "missed", (json_int_t)counts->missed);
}

static json_t *hosts_json(const struct board *board)
{
    json_t *hosts = json_array();
    const struct host *host;

    table_for_each(host, &board->hosts, in_table)
    {
        if (host_is_shown(host))
            (void)json_array_append_new(hosts, server_host_json(host));
    }
    return json_pack("{ss, so}", "boot", board->boot, "hosts", hosts);
}

static enum MHD_Result give_page(struct server *server, struct MHD_Connection *connection,
                                 const char *url)
{
    if (strcmp(url, "/v1/hosts") == 0)
        return answer_json(connection, MHD_HTTP_OK, hosts_json(server->board));
    if (strcmp(url, "/metrics") == 0)
        return answer(connection, MHD_HTTP_OK, PROMETHEUS_CONTENT_TYPE,
                      server->page(server->page_context));
    return deny(server, connection, MHD_HTTP_NOT_FOUND,
                "expected one of the paths /v1/messages, /v1/hosts, /metrics and /");
}

/* Whoever asks whether we live need not show who he is, and learns no more. */
static enum MHD_Result give_health(struct MHD_Connection *connection)
{
    return answer(connection, MHD_HTTP_OK, "text/plain; charset=utf-8",
                  strdup("blkin hub " BLKIN_RELEASE ": ok\n"));
}

/* ---- libmicrohttpd's calls ------------------------------------------------------------------- */

static bool is_too_long(struct MHD_Connection *connection)
{
    const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");

    return length && strtoull(length, NULL, 10) > BODY_MAX;
}

/* Who asks for messages or posts them speaks for a host. Returns false after it has answered. */
static bool know_host(struct server *server, struct MHD_Connection *connection, bool is_post,
                      enum MHD_Result *result)
{
    struct host *host = messages_host(server, connection, result);

    if (!host)
        return false;
    clients_know(server, connection, host);
    if (!is_post || messages_may_post(host))
        return true;
    server->counts.limited++;
    *result = deny(server, connection, MHD_HTTP_TOO_MANY_REQUESTS,
                   "this host posts too much: try again in some seconds");
    return false;
}

/* Of what is denied, the body is not waited for. */
static enum MHD_Result begin_request(struct server *server, struct MHD_Connection *connection,
                                     const char *url, bool is_post, void **place)
{
    const bool is_messages = strcmp(url, "/v1/messages") == 0;
    enum MHD_Result result = MHD_NO;
    const char *why = "";
    unsigned denied;
    struct request *request;

    server->counts.requests++;
    denied = access_from_page(server->access, connection, is_post || is_messages, &why);
    if (!denied && !is_post && strcmp(url, "/") == 0)
        return give_health(connection);
    if (!denied)
        denied = access_denied(server->access, connection,
                               is_messages ? messages_host_name(connection) : NULL, &why);
    if (denied)
        return deny(server, connection, denied, why);
    clients_go_on(connection);
    if (is_post && is_too_long(connection))
        return deny(server, connection, MHD_HTTP_CONTENT_TOO_LARGE,
                    "expected a body of at most 1 MiB");
    if (is_messages && !know_host(server, connection, is_post, &result))
        return result;
    request = calloc(1, sizeof(*request));
    if (!request)
        return MHD_NO;
    request->server = server;
    request->connection = connection;
    *place = request;
    return MHD_YES;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data,
                              size_t *size, void **place)
{
    struct server *server = context;
    struct request *request = *place;
    const bool is_post = strcmp(method, "POST") == 0;
    const bool is_get = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;

    (void)version;
    if (!is_post && !is_get)
        return deny(server, connection, MHD_HTTP_METHOD_NOT_ALLOWED, "expected GET or POST");
    if (!request)
        return begin_request(server, connection, url, is_post, place);
    if (*size) {
        messages_take_body(request, data, *size);
        *size = 0;
        return MHD_YES;
    }
    if (strcmp(url, "/v1/messages") == 0)
        return is_post ? messages_take(request) : messages_give(request);
    if (is_post)
        return deny(server, connection, MHD_HTTP_NOT_FOUND, "expected /v1/messages");
    return give_page(server, connection, url);
}

static void completed(void *context, struct MHD_Connection *connection, void **place,
                      enum MHD_RequestTerminationCode code)
{
    struct request *request = *place;

    (void)context;
    (void)connection;
    (void)code;
    if (!request)
        return;
    waiting_end(request);
    request->server->upload_bytes -= request->body.capacity;
    buffer_free(&request->body);
    free(request);
    *place = NULL;
}

/* ---- in the loop ----------------------------------------------------------------------------- */

static void tick(void *context)
{
    struct server *server = context;

    timer_set(server->loop, &server->tick, TICK_MS);
    gate_tick(server);
    clients_look_for_slow(server);
    waiting_look_for_gone(server);
    board_tick(server->board, clock_ms());
    waiting_answer_late(server, clock_ms());
}

static void wake(void *context)
{
    waiting_wake(context);
}

/* As many connections as there are descriptors for. */
static unsigned connection_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 256;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        (void)getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur > CONNECTION_MAX + OWN_FDS)
        return CONNECTION_MAX;
    return limit.rlim_cur > 2 * OWN_FDS ? (unsigned)limit.rlim_cur - OWN_FDS : OWN_FDS;
}

static void log_message(void *context, const char *format, va_list values)
{
    char text[512];

    (void)context;
    (void)vsnprintf(text, sizeof(text), format, values);
    text[strcspn(text, "\n")] = '\0';
    say(BK6004, "%s", text);
}

static struct MHD_Daemon *start_daemon(struct server *server)
{
    const struct access *access = server->access;
    const struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, access->cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, access->key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t) "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1"},
        {access->trust ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0, access->trust},
        {MHD_OPTION_END, 0, NULL}};
    const struct MHD_OptionItem *more = access->is_tls ? tls : &tls[4];
    const unsigned flags = HTTP_FLAGS | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME |
                           (access->is_tls ? MHD_USE_TLS : 0U);

    return MHD_start_daemon(
        flags, 0, NULL, NULL, handle, server, MHD_OPTION_EXTERNAL_LOGGER, log_message, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, completed, NULL, MHD_OPTION_NOTIFY_CONNECTION, clients_notify,
        server, MHD_OPTION_CONNECTION_LIMIT, connection_limit(), MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)STRANGER_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_BYTES,
        MHD_OPTION_ARRAY, more, MHD_OPTION_END);
}

struct server *server_open(struct loop *loop, int fd, struct board *board, struct access *access,
                           server_page_fn *page, void *context, struct error *error)
{
    struct server *server = calloc(1, sizeof(*server));

    if (!server)
        return error_null(error, "out of memory");
    *server = (struct server){.loop = loop,
                              .board = board,
                              .access = access,
                              .page = page,
                              .page_context = context,
                              .tick = {.due = tick, .context = server},
                              .wake = {.due = wake, .context = server}};
    CDS_INIT_LIST_HEAD(&server->waiting);
    CDS_INIT_LIST_HEAD(&server->strangers.list);
    if (!http_begin(&server->http, loop, start_daemon(server))) {
        error_set(error, "cannot start the HTTP server%s",
                  access->is_tls ? ": is hub-key-file the key of hub-cert-file?" : "");
        http_end(&server->http);
        free(server);
        return NULL;
    }
    if (!gate_open(server, fd, connection_limit())) {
        error_set(error, "cannot wait for connections: %s", strerror(errno));
        http_end(&server->http);
        free(server);
        return NULL;
    }
    tick(server);
    return server;
}

void server_close(struct server *server)
{
    struct request *request, *next;

    if (!server)
        return;
    cds_list_for_each_entry_safe(request, next, &server->waiting, in_waiting)
        waiting_resume(request);
    (void)MHD_run(server->http.daemon);
    gate_close(server);
    http_end(&server->http);
    timer_clear(server->loop, &server->tick);
    timer_clear(server->loop, &server->wake);
    free(server->fds);
    free(server);
}

const struct server_counts *server_counts(const struct server *server)
{
    return &server->counts;
}

unsigned server_connections(const struct server *server)
{
    return http_connections(&server->http);
}
