/*
 * The hub's HTTP.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "server.h"

#include "account/prometheus.h"
#include "monotonic.h"
#include "service/say.h"

#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define BODY_MAX       MESSAGE_MAX
#define UPLOADS_MAX    (64U << 20) /* bytes of all bodies that are on their way */
#define ANSWER_BYTES   (256U << 10)
#define WAIT_MAX_MS    25000
#define STRANGER_S     10 /* a connection may say nothing for so long before it has shown who it is */
#define IDLE_S         300 /* and after that */
#define OWN_FDS        64  /* files and sockets that are no connections */
#define CONNECTION_MAX 65536
#define HEAD_BYTES     8192 /* of a request, at most */
#define TICK_MS        1000
#define WOKEN_PER_MS   50 /* so many are woken for each ms that has passed since the last time */

struct request {
    struct server *server;
    struct MHD_Connection *connection;
    bool is_post;
    struct buffer body;
    bool is_too_long, is_too_much; /* for a body; for all bodies together */
    /* one that waits: */
    struct host *host; /* NULL: it does not wait */
    int64_t until_ms;
    const char *conflict; /* why it must not wait any more */
    struct request *next, **link;
};

struct server {
    struct loop *loop;
    struct MHD_Daemon *daemon;
    struct board *board;
    struct access *access;
    server_page_fn *page;
    void *page_context;
    struct watched epoll;
    struct timer run, tick, wake;
    struct request *waiting;
    size_t waiting_count;
    struct pollfd *fds; /* of those who wait */
    size_t fds_room;
    size_t upload_bytes;
    bool has_resumed; /* since the last run */
    int64_t woken_ms;
    uint64_t told_version; /* of the hosts: all who waited then know it */
    struct server_counts counts;
};

/* ---- answers --------------------------------------------------------------------------------- */

/* text is freed, also if this fails; NULL: there was no memory for it. */
static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
                              char *text)
{
    struct MHD_Response *response =
        text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE) : NULL;
    enum MHD_Result result;

    if (!response) {
        free(text);
        return MHD_NO; /* ends the connection: its owner tries again */
    }
    (void)MHD_add_response_header(response, "Content-Type", type);
    (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    if (status == MHD_HTTP_UNAUTHORIZED)
        (void)MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)MHD_add_response_header(response, "Allow", "GET, HEAD, POST");
    if (status == MHD_HTTP_TOO_MANY_REQUESTS)
        (void)MHD_add_response_header(response, "Retry-After", "1");
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer_json(struct MHD_Connection *connection, unsigned status, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return answer(connection, status, "application/json", text);
}

static enum MHD_Result deny(struct server *server, struct MHD_Connection *connection,
                            unsigned status, const char *why)
{
    if (status == MHD_HTTP_UNAUTHORIZED)
        server->counts.unauthorized++;
    else
        server->counts.malformed++;
    return answer_json(connection, status, json_pack("{ss}", "error", why));
}

/* ---- what is asked --------------------------------------------------------------------------- */

static const char *argument(struct MHD_Connection *connection, const char *name)
{
    const char *value = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);

    return value ? value : "";
}

static uint64_t number(struct MHD_Connection *connection, const char *name, uint64_t none)
{
    const char *text = argument(connection, name);
    char *end;
    uint64_t value;

    errno = 0;
    value = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0 ? value : none;
}

/* Returns NULL after it has answered. */
static struct host *asking_host(struct server *server, struct MHD_Connection *connection,
                                enum MHD_Result *result)
{
    const char *name = argument(connection, "host");
    struct host *host;

    if (!message_is_host(name)) {
        *result = deny(server, connection, MHD_HTTP_BAD_REQUEST,
                       "host: expected a name of letters, digits, '.', '-' and '_', at most 253");
        return NULL;
    }
    host = board_host(server->board, name, clock_ms());
    if (!host)
        *result = deny(server, connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                       "the hub knows as many hosts as it can");
    return host;
}

/* ---- those who wait -------------------------------------------------------------------------- */

static void stop_waiting(struct request *request)
{
    if (!request->host)
        return;
    request->host->waiting = NULL;
    request->host = NULL;
    *request->link = request->next;
    if (request->next)
        request->next->link = request->link;
    request->server->waiting_count--;
}

/* Its handler is called again, and answers. */
static void resume(struct request *request, const char *conflict)
{
    struct server *server = request->server;

    stop_waiting(request);
    request->conflict = conflict;
    MHD_resume_connection(request->connection);
    server->has_resumed = true;
    timer_set(server->loop, &server->run, 0);
}

static void resume_host(void *context, struct host *host)
{
    (void)context;
    if (host->waiting)
        resume(host->waiting, NULL);
}

static void wake_all(void *context)
{
    struct server *server = context;
    struct request *request = server->waiting, *next;

    server->woken_ms = clock_ms();
    for (; request; request = next) {
        next = request->next;
        if (board_has_news(server->board, request->host))
            resume(request, NULL);
    }
}

/* With many hosts, posts that come in a row are given to them together. */
static void wake_soon(struct server *server)
{
    const int64_t due_ms = server->woken_ms + (int64_t)server->waiting_count / WOKEN_PER_MS;
    const int64_t now_ms = clock_ms();

    if (now_ms >= due_ms)
        wake_all(server);
    else
        timer_set(server->loop, &server->wake, due_ms - now_ms);
}

static void wait_for_news(struct request *request, struct host *host)
{
    struct server *server = request->server;

    request->host = host;
    host->waiting = request;
    request->next = server->waiting;
    request->link = &server->waiting;
    if (request->next)
        request->next->link = &request->next;
    server->waiting = request;
    server->waiting_count++;
    MHD_suspend_connection(request->connection);
}

/* ---- GET /v1/messages ------------------------------------------------------------------------ */

static void print_hosts(struct printer *printer, const struct board *board)
{
    const char *comma = "";

    print_string(printer, ",\"hosts\":[");
    for (size_t i = 0; i < BOARD_BUCKETS; i++) {
        for (const struct host *host = board->hosts[i]; host; host = host->next) {
            if (!host->is_there)
                continue;
            print(printer, "%s\"%s\"", comma, host->name); /* a name has nothing to escape */
            comma = ",";
        }
    }
    print_string(printer, "]");
}

static bool knows_us(const struct request *request)
{
    return strcmp(argument(request->connection, "boot"), request->server->board->boot) == 0;
}

static bool knows_hosts(const struct request *request)
{
    return knows_us(request) &&
           number(request->connection, "hosts", 0) == request->server->board->hosts_version;
}

static enum MHD_Result answer_news(struct request *request, struct host *host)
{
    struct board *board = request->server->board;
    struct printer printer = {.has_failed = false};
    uint64_t has;

    print_string(&printer, "{\"messages\":[");
    has = board_print(board, host, ANSWER_BYTES, &printer);
    print(&printer,
          "],\"boot\":\"%s\",\"next\":%" PRIu64 ",\"settled\":%" PRIu64
          ",\"hosts_version\":%" PRIu64,
          board->boot, has, board_settled(board, clock_ms()), board->hosts_version);
    if (!knows_hosts(request))
        print_hosts(&printer, board);
    print_string(&printer, "}");
    return answer(request->connection, MHD_HTTP_OK, "application/json", print_end(&printer));
}

/* One that has been started anew goes on where the one before it was. */
static void take_position(struct request *request, struct host *host)
{
    struct board *board = request->server->board;

    if (knows_us(request))
        board_has(board, host, number(request->connection, "after", 0));
    else if (*argument(request->connection, "boot"))
        board_has(board, host, 0);
}

static const char same_name[] =
    "another recorder of this name asks the hub, too: give each a host name of its own";

static enum MHD_Result give_messages(struct request *request)
{
    struct server *server = request->server;
    enum MHD_Result result = MHD_NO;
    struct host *host;
    const char *agent = argument(request->connection, "agent");
    const uint64_t wait_ms = number(request->connection, "wait", 0);
    const bool has_waited = request->until_ms != 0;

    if (request->conflict)
        return deny(server, request->connection, MHD_HTTP_CONFLICT, request->conflict);
    host = asking_host(server, request->connection, &result);
    if (!host)
        return result;
    if (!has_waited) {
        if (host->waiting)
            resume(host->waiting, same_name); /* or it was this one, which has gone since */
        (void)snprintf(host->agent, sizeof(host->agent), "%s", agent);
        board_comes(server->board, host, clock_ms());
        request->until_ms = clock_ms() + (int64_t)(wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS);
    }
    take_position(request, host);
    if (!has_waited && wait_ms && knows_hosts(request) && !board_has_news(server->board, host)) {
        wait_for_news(request, host);
        return MHD_YES;
    }
    return answer_news(request, host);
}

/* ---- POST /v1/messages ----------------------------------------------------------------------- */

static void take_body(struct request *request, const char *data, size_t size)
{
    struct server *server = request->server;
    const size_t before = request->body.capacity;

    request->is_too_long = request->is_too_long || request->body.length + size > BODY_MAX;
    request->is_too_much = request->is_too_much || server->upload_bytes + size > UPLOADS_MAX;
    if (request->is_too_long || request->is_too_much)
        return;
    if (!buffer_reserve(&request->body, size)) {
        request->is_too_much = true;
        return;
    }
    memcpy(request->body.data + request->body.length, data, size);
    request->body.length += size;
    server->upload_bytes += request->body.capacity - before;
}

static enum MHD_Result answer_posted(struct request *request, const struct posted *posted)
{
    const struct board *board = request->server->board;
    const bool is_capped = json_array_size(posted->dropped) > 0;

    return answer_json(request->connection, is_capped ? MHD_HTTP_TOO_MANY_REQUESTS : MHD_HTTP_OK,
                       json_pack("{ss, sI, si, si, sO, sO}", "boot", board->boot, "last",
                                 (json_int_t)board->next - 1, "accepted", (int)posted->accepted,
                                 "doubles", (int)posted->doubles, "refused", posted->refused,
                                 "dropped", posted->dropped));
}

static enum MHD_Result post_all(struct request *request, struct host *host, const json_t *messages)
{
    struct server *server = request->server;
    struct posted posted = {.refused = json_array(), .dropped = json_array()};
    const int64_t now_ms = clock_ms();
    enum MHD_Result result;
    json_t *message;
    size_t i;

    json_array_foreach(messages, i, message)
        board_post(server->board, host, message, now_ms, &posted, resume_host, NULL);
    if (posted.is_for_all)
        wake_soon(server);
    if (json_array_size(posted.refused) || json_array_size(posted.dropped))
        say(BT_LOGGING_LEVEL_INFO, "%s: %zu messages refused, %zu beyond the cap", host->name,
            json_array_size(posted.refused), json_array_size(posted.dropped));
    result = answer_posted(request, &posted);
    json_decref(posted.refused);
    json_decref(posted.dropped);
    return result;
}

static enum MHD_Result take_messages(struct request *request)
{
    struct server *server = request->server;
    enum MHD_Result result = MHD_NO;
    struct host *host;
    json_error_t where;
    json_t *messages;

    if (request->is_too_long)
        return deny(server, request->connection, MHD_HTTP_CONTENT_TOO_LARGE,
                    "expected a body of at most 1 MiB");
    if (request->is_too_much)
        return deny(server, request->connection, MHD_HTTP_SERVICE_UNAVAILABLE,
                    "too much is posted at once: try again");
    host = asking_host(server, request->connection, &result);
    if (!host)
        return result;
    messages =
        json_loadb(request->body.data ? request->body.data : "", request->body.length, 0, &where);
    if (!json_is_array(messages)) {
        result = deny(server, request->connection, MHD_HTTP_BAD_REQUEST,
                      messages ? "expected a JSON array of messages" : "expected JSON");
        json_decref(messages);
        return result;
    }
    result = post_all(request, host, messages);
    json_decref(messages);
    return result;
}

/* ---- the other pages ------------------------------------------------------------------------- */

static json_t *host_json(const struct host *host)
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

    for (size_t i = 0; i < BOARD_BUCKETS; i++) {
        for (const struct host *host = board->hosts[i]; host; host = host->next) {
            if (host_is_shown(host))
                (void)json_array_append_new(hosts, host_json(host));
        }
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
                "there are /v1/messages, /v1/hosts, /metrics and / here");
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

/* Of what is denied, the body is not waited for. */
static enum MHD_Result begin_request(struct server *server, struct MHD_Connection *connection,
                                     const char *url, bool is_post, void **place)
{
    const char *denied;
    struct request *request;

    server->counts.requests++;
    if (!is_post && strcmp(url, "/") == 0)
        return give_health(connection);
    denied = access_denied(server->access, connection);
    if (denied)
        return deny(server, connection, MHD_HTTP_UNAUTHORIZED, denied);
    (void)MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)IDLE_S);
    if (is_post && is_too_long(connection))
        return deny(server, connection, MHD_HTTP_CONTENT_TOO_LARGE,
                    "expected a body of at most 1 MiB");
    request = calloc(1, sizeof(*request));
    if (!request)
        return MHD_NO;
    request->server = server;
    request->connection = connection;
    request->is_post = is_post;
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
        take_body(request, data, *size);
        *size = 0;
        return MHD_YES;
    }
    if (strcmp(url, "/v1/messages") == 0)
        return is_post ? take_messages(request) : give_messages(request);
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
    stop_waiting(request);
    request->server->upload_bytes -= request->body.capacity;
    buffer_free(&request->body);
    free(request);
    *place = NULL;
}

/* ---- in the loop ----------------------------------------------------------------------------- */

static void run(void *context)
{
    struct server *server = context;
    MHD_UNSIGNED_LONG_LONG timeout_ms;

    timer_clear(server->loop, &server->run);
    server->has_resumed = false;
    (void)MHD_run(server->daemon);
    if (server->has_resumed)
        timer_set(server->loop, &server->run, 0);
    else if (MHD_get_timeout(server->daemon, &timeout_ms) == MHD_YES)
        timer_set(server->loop, &server->run, (int64_t)timeout_ms);
}

static void ready(void *context, short events)
{
    (void)events;
    run(context);
}

/* libmicrohttpd does not look at suspended connections: whose other end has gone is seen here. */
static void look_for_gone(struct server *server)
{
    struct request *request = server->waiting, *next;
    size_t count = 0;

    if (server->waiting_count > server->fds_room) {
        struct pollfd *fds =
            reallocarray(server->fds, server->waiting_count * 2, sizeof(*server->fds));

        if (!fds)
            return;
        server->fds = fds;
        server->fds_room = server->waiting_count * 2;
    }
    for (; request; request = request->next) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

        server->fds[count++] = (struct pollfd){info ? info->connect_fd : -1, POLLRDHUP, 0};
    }
    if (poll(server->fds, count, 0) <= 0)
        return;
    request = server->waiting;
    for (size_t i = 0; i < count; i++, request = next) {
        next = request->next;
        if (server->fds[i].revents)
            resume(request, NULL);
    }
}

static void answer_late(struct server *server, int64_t now_ms)
{
    struct request *request = server->waiting, *next;
    const bool is_news = server->told_version != server->board->hosts_version;

    server->told_version = server->board->hosts_version;
    for (; request; request = next) {
        next = request->next;
        if (is_news || now_ms >= request->until_ms)
            resume(request, NULL);
    }
}

static void tick(void *context)
{
    struct server *server = context;

    timer_set(server->loop, &server->tick, TICK_MS);
    look_for_gone(server);
    board_tick(server->board, clock_ms());
    answer_late(server, clock_ms());
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
    say(BT_LOGGING_LEVEL_INFO, "%s", text);
}

static struct MHD_Daemon *start_daemon(struct server *server, int fd)
{
    const struct access *access = server->access;
    const struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, access->cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, access->key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t) "NORMAL:-VERS-TLS1.0:-VERS-TLS1.1"},
        {access->trust ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0, access->trust},
        {MHD_OPTION_END, 0, NULL}};
    const struct MHD_OptionItem *more = access->is_tls ? tls : &tls[4];
    const unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
                           (access->is_tls ? MHD_USE_TLS : 0U);

    return MHD_start_daemon(
        flags, 0, NULL, NULL, handle, server, MHD_OPTION_EXTERNAL_LOGGER, log_message, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, completed, NULL,
        MHD_OPTION_CONNECTION_LIMIT, connection_limit(), MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)STRANGER_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEAD_BYTES,
        MHD_OPTION_ARRAY, more, MHD_OPTION_END);
}

struct server *server_open(struct loop *loop, int fd, struct board *board, struct access *access,
                           server_page_fn *page, void *context, struct error *error)
{
    struct server *server = calloc(1, sizeof(*server));
    const union MHD_DaemonInfo *info;

    if (!server) {
        error_set(error, "out of memory");
        return NULL;
    }
    *server = (struct server){.loop = loop,
                              .board = board,
                              .access = access,
                              .page = page,
                              .page_context = context,
                              .run = {.due = run, .context = server},
                              .tick = {.due = tick, .context = server},
                              .wake = {.due = wake_all, .context = server}};
    server->daemon = start_daemon(server, fd);
    info = server->daemon ? MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    if (!info) {
        error_set(error, "cannot start the HTTP server%s",
                  access->is_tls ? ": is hub-key-file the key of hub-cert-file?" : "");
        free(server);
        return NULL;
    }
    server->epoll = (struct watched){info->epoll_fd, POLLIN, ready, server, NULL};
    loop_watch(loop, &server->epoll);
    tick(server);
    run(server);
    return server;
}

void server_close(struct server *server)
{
    if (!server)
        return;
    while (server->waiting)
        resume(server->waiting, NULL);
    (void)MHD_run(server->daemon);
    loop_unwatch(server->loop, &server->epoll);
    MHD_stop_daemon(server->daemon);
    timer_clear(server->loop, &server->run);
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
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

    return info ? info->num_connections : 0;
}
