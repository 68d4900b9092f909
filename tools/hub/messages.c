/*
 * /v1/messages: what recorders get, wait for, and post.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "server_parts.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/printer.h"
#include "tools/base/say.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define UPLOADS_MAX  (64U << 20) /* bytes of all bodies that are on their way */
#define ANSWER_BYTES (256U << 10)
#define WAIT_MAX_MS  25000
#define POST_BYTES   (8 << 20)   /* that a host may post at once, */
#define POST_RATE    (512 << 10) /* and each second */
#define POST_ADD     1024        /* what a post takes beside its bytes */
#define POSTED_ADD   4096        /* and each message: all others are to read it */
#define POSTED_MAX   4096        /* messages of one post: each may have its line in the answer */
#define WOKEN_PER_MS 50          /* who waits: for each ms that has passed since the last time */
#define PARTS_MAX    100000      /* of its JSON: 1 MiB of empty arrays would take 100 MiB */

/* ---- those who wait for messages: their connections are suspended ---------------------------- */

void waiting_end(struct request *request)
{
    if (!request->host)
        return;
    request->host->waiting = NULL;
    request->host = NULL;
    cds_list_del(&request->in_waiting);
    request->server->waiting_count--;
}

void waiting_resume(struct request *request)
{
    struct server *server = request->server;

    waiting_end(request);
    MHD_resume_connection(request->connection);
    http_run_soon(&server->http);
}

void waiting_wake(struct server *server)
{
    struct request *request, *next;

    server->woken_ms = clock_ms();
    cds_list_for_each_entry_safe(request, next, &server->waiting, in_waiting)
    {
        if (board_has_news(server->board, request->host))
            waiting_resume(request);
    }
}

/* With many hosts not at once: posts that come in a row are given to them together. */
static void waiting_wake_soon(struct server *server)
{
    const int64_t due_ms = server->woken_ms + (int64_t)server->waiting_count / WOKEN_PER_MS;
    const int64_t now_ms = clock_ms();

    if (now_ms >= due_ms)
        waiting_wake(server);
    else
        timer_set(server->loop, &server->wake, due_ms - now_ms);
}

/* Suspends it, until there are messages for the host. */
static void waiting_begin(struct request *request, struct host *host)
{
    struct server *server = request->server;

    request->host = host;
    host->waiting = request;
    cds_list_add(&request->in_waiting, &server->waiting);
    server->waiting_count++;
    MHD_suspend_connection(request->connection);
}

static int fd_of(const struct request *request)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info ? info->connect_fd : -1;
}

/* Has its other end gone? */
static bool waiting_is_gone(const struct request *request)
{
    struct pollfd fd = {fd_of(request), POLLRDHUP, 0};

    return poll(&fd, 1, 0) > 0;
}

void waiting_look_for_gone(struct server *server)
{
    struct request *request, *next;
    size_t count = 0;

    if (!ARRAY_FITS(server->fds, server->fds_room, server->waiting_count))
        return;
    cds_list_for_each_entry(request, &server->waiting, in_waiting) server->fds[count++] =
        (struct pollfd){fd_of(request), POLLRDHUP, 0};
    if (poll(server->fds, count, 0) <= 0)
        return;
    count = 0;
    cds_list_for_each_entry_safe(request, next, &server->waiting, in_waiting)
    {
        if (server->fds[count++].revents)
            waiting_resume(request);
    }
}

void waiting_answer_late(struct server *server, int64_t now_ms)
{
    struct request *request, *next;
    const bool is_news = server->told_version != server->board->hosts_version;

    server->told_version = server->board->hosts_version;
    cds_list_for_each_entry_safe(request, next, &server->waiting, in_waiting)
    {
        if (is_news || now_ms >= request->until_ms)
            waiting_resume(request);
    }
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

const char *messages_host_name(struct MHD_Connection *connection)
{
    return argument(connection, "host");
}

struct host *messages_host(struct server *server, struct MHD_Connection *connection,
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
                       "the hub has no room for more hosts");
    return host;
}

/* ---- GET /v1/messages ------------------------------------------------------------------------ */

static void print_hosts(struct printer *printer, const struct board *board)
{
    const struct host *host;
    const char *comma = "";

    print_string(printer, ",\"hosts\":[");
    table_for_each(host, &board->hosts, in_table)
    {
        if (!host->is_there)
            continue;
        print(printer, "%s\"%s\"", comma, host->name); /* a name has nothing to escape */
        comma = ",";
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
    has = board_print(board, host, ANSWER_BYTES, clock_ms(), &printer);
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
    "another recorder of this name is connected to the hub: give each one its own host name";

enum MHD_Result messages_give(struct request *request)
{
    struct server *server = request->server;
    enum MHD_Result result = MHD_NO;
    struct host *host;
    const char *agent = argument(request->connection, "agent");
    const uint64_t wait_ms = number(request->connection, "wait", 0);
    const bool has_waited = request->until_ms != 0;

    host = messages_host(server, request->connection, &result);
    if (!host)
        return result;
    if (!has_waited) {
        struct request *other = host->waiting;

        /* another process of this name; or it was this one, or one that has gone since */
        if (other && strcmp(host->agent, agent) != 0 && !waiting_is_gone(other))
            return deny(server, request->connection, MHD_HTTP_CONFLICT, same_name);
        if (other)
            waiting_resume(other);
        (void)snprintf(host->agent, sizeof(host->agent), "%s", agent);
        board_comes(server->board, host, clock_ms());
        request->until_ms = clock_ms() + (int64_t)(wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS);
    }
    take_position(request, host);
    if (!has_waited && wait_ms && knows_hosts(request) && !board_has_news(server->board, host)) {
        waiting_begin(request, host);
        return MHD_YES;
    }
    return answer_news(request, host);
}

/* ---- POST /v1/messages ----------------------------------------------------------------------- */

void messages_take_body(struct request *request, const char *data, size_t size)
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

static void resume_host(void *context, struct host *host)
{
    (void)context;
    if (host->waiting)
        waiting_resume(host->waiting);
}

static enum MHD_Result post_all(struct request *request, struct host *host, const json_t *messages)
{
    struct server *server = request->server;
    struct posted posted = {.refused = json_array(), .dropped = json_array()};
    const int64_t now_ms = clock_ms();
    enum MHD_Result result;
    json_t *message;
    size_t i;

    host->allowance -= (int64_t)json_array_size(messages) * POSTED_ADD;
    json_array_foreach(messages, i, message)
        board_post(server->board, host, message, now_ms, &posted, resume_host, NULL);
    if (posted.is_for_all)
        waiting_wake_soon(server);
    if (json_array_size(posted.refused) || json_array_size(posted.dropped))
        say(BK6003, "%s: %zu messages refused, %zu beyond the cap", host->name,
            json_array_size(posted.refused), json_array_size(posted.dropped));
    result = answer_posted(request, &posted);
    json_decref(posted.refused);
    json_decref(posted.dropped);
    return result;
}

/* A post may take more than is left of the allowance, and the next one waits for that. */
bool messages_may_post(struct host *host)
{
    const int64_t now_ms = clock_ms();

    host->allowance = host->allowed_ms
                          ? host->allowance + (now_ms - host->allowed_ms) * POST_RATE / 1000
                          : POST_BYTES;
    if (host->allowance > POST_BYTES)
        host->allowance = POST_BYTES;
    host->allowed_ms = now_ms;
    return host->allowance > 0;
}

static bool has_too_many_parts(const struct buffer *body)
{
    size_t parts = 0;

    for (size_t i = 0; i < body->length; i++)
        parts += body->data[i] == ',' || body->data[i] == '[' || body->data[i] == '{';
    return parts > PARTS_MAX;
}

enum MHD_Result messages_take(struct request *request)
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
                    "too many posts at once: try again");
    host = messages_host(server, request->connection, &result);
    if (!host)
        return result;
    host->allowance -= (int64_t)request->body.length + POST_ADD;
    if (has_too_many_parts(&request->body))
        return deny(server, request->connection, MHD_HTTP_CONTENT_TOO_LARGE,
                    "expected at most 100000 values");
    messages =
        json_loadb(request->body.data ? request->body.data : "", request->body.length, 0, &where);
    if (!json_is_array(messages)) {
        result = deny(server, request->connection, MHD_HTTP_BAD_REQUEST,
                      messages ? "expected a JSON array of messages" : "expected JSON");
        json_decref(messages);
        return result;
    }
    if (json_array_size(messages) > POSTED_MAX)
        result = deny(server, request->connection, MHD_HTTP_CONTENT_TOO_LARGE,
                      "expected at most 4096 messages");
    else
        result = post_all(request, host, messages);
    json_decref(messages);
    return result;
}
