/*
 * blkin hub: its parts put together in one loop.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "hub.h"

#include "access.h"
#include "babeltrace-plugin/base/listen.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "board.h"
#include "server.h"
#include "tools/base/notify.h"
#include "tools/base/say.h"
#include "tools/base/totals.h"
#include "tools/config/config.h"
#include "tools/config/frame.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char usage[] =
#include "tools/hub/usage.txt.inc"
    ;

struct hub {
    struct frame frame;
    struct board board;
    struct access access;
    struct server *server;
    char url[LISTEN_URL_MAX];
};

/* ---- where it listens ------------------------------------------------------------------------ */

static bool is_loopback(const char *address)
{
    struct in6_addr six;
    struct in_addr four;

    if (inet_pton(AF_INET6, address, &six) == 1)
        return IN6_IS_ADDR_LOOPBACK(&six);
    return inet_pton(AF_INET, address, &four) == 1 && ntohl(four.s_addr) >> 24 == 127;
}

/* On loopback, too: every user of the host is there. */
static bool check_exposure(const struct hub *hub, const char *where, struct error *error)
{
    if (access_is_guarded(&hub->access) || config_boolean(hub->frame.config, "expose-hub"))
        return true;
    return error_set(
        error,
        "hub-listen \"%s\": anyone who reaches it could ask all hosts for traces, in the name of "
        "any host: set hub-tokens-file (lines \"HOST TOKEN\"; openssl rand -hex 32) or hub-ca-file "
        "(certificates); if you trust everyone who can reach it, set expose-hub=yes",
        where);
}

static int listen_there(struct hub *hub, struct error *error)
{
    const char *where = config_text(hub->frame.config, "hub-listen");
    struct listen_address address;
    bool is_local;
    int fd;

    if (!listen_parse(&address, "hub-listen", where, error))
        return -1;
    is_local = is_loopback(address.host);
    if (!check_exposure(hub, where, error))
        return -1;
    if (!is_local && !hub->access.is_tls)
        say(BK6001,
            "without hub-cert-file the hub uses plain HTTP: everyone on the network path can read "
            "the messages%s",
            hub->access.tokens.count ? " and the tokens" : "");
    fd = listen_open(&address, "hub-listen", where, error);
    if (fd >= 0) {
        /* who finds no place in the queue tries again after a second */
        (void)listen(fd, SOMAXCONN);
        listen_url(&address, fd, hub->access.is_tls ? "https" : "http", hub->url);
    }
    return fd;
}

/* ---- what it tells of itself ----------------------------------------------------------------- */

/* In the order of the struct. */
static const struct total host_metrics[] = {
    {"posted", offsetof(struct host_counts, posted),
     "Messages that the host has posted; the sum of the next four."},
    {"accepted", offsetof(struct host_counts, accepted), "Posted messages that go to other hosts."},
    {"doubles", offsetof(struct host_counts, doubles), "Posted messages that the hub already had."},
    {"refused", offsetof(struct host_counts, refused), "Posted messages of a wrong form."},
    {"capped", offsetof(struct host_counts, capped),
     "Posted messages for which hub-traces-per-s allowed no trace."},
    {"dropped_traces", offsetof(struct host_counts, dropped_traces),
     "Traces that the host has asked for beyond hub-traces-per-s."},
    {"delivered", offsetof(struct host_counts, delivered),
     "Messages that were delivered to the host."},
    {"missed", offsetof(struct host_counts, missed),
     "Messages that were gone before the host fetched them."},
};

static const struct totals_table host_table = {"hub_host", host_metrics,
                                               sizeof(host_metrics) / sizeof(host_metrics[0])};

static json_t *hub_host_json(const struct host *host)
{
    json_t *object = totals_own_json(&host_table, &host->counts);

    (void)json_object_set_new(object, "state", json_string(host->is_there ? "there" : "away"));
    (void)json_object_set_new(object, "since", json_time(host->since_ns));
    return object;
}

static json_t *hub_status(void *context)
{
    const struct hub *hub = context;
    const struct board *board = &hub->board;
    const struct server_counts *counts = server_counts(hub->server);
    json_t *hosts = json_object();
    const struct host *host;

    table_for_each(host, &board->hosts, in_table)
    {
        if (host_is_shown(host))
            (void)json_object_set_new(hosts, host->name, hub_host_json(host));
    }
    return json_pack("{ss, ss, ss, sI, s{sI, sI, sI}, sI, sI, sI, sI, sI, so, so}", "state",
                     "serving", "url", hub->url, "boot", board->boot, "traces_per_s",
                     (json_int_t)board->cap.traces_per_s, "messages_held", "count",
                     (json_int_t)(board->next - board->oldest), "bytes", (json_int_t)board->bytes,
                     "last", (json_int_t)board->next - 1, "connections",
                     (json_int_t)server_connections(hub->server), "unauthorized",
                     (json_int_t)counts->unauthorized, "malformed", (json_int_t)counts->malformed,
                     "limited", (json_int_t)counts->limited, "hung_up", (json_int_t)counts->hung_up,
                     "hosts", hosts, "forgotten", totals_own_json(&host_table, &board->gone));
}

/* One of each host. */
static void print_of_hosts(struct printer *printer, const struct board *board,
                           const struct total *metric)
{
    const struct host *host;

    print(printer, "# HELP blkin_hub_host_%s_total %s\n", metric->name, metric->help);
    print(printer, "# TYPE blkin_hub_host_%s_total counter\n", metric->name);
    table_for_each(host, &board->hosts, in_table)
    {
        if (host_is_shown(host))
            print(printer, "blkin_hub_host_%s_total{host=\"%s\"} %" PRIu64 "\n", metric->name,
                  host->name, total_value(metric, &host->counts));
    }
}

/* What /metrics shows. */
static char *hub_page(void *context)
{
    const struct hub *hub = context;
    const struct board *board = &hub->board;
    const struct server_counts *counts = server_counts(hub->server);
    struct printer printer = {.has_failed = false};

    print_metric(&printer, "blkin_hub_hosts", "gauge", "Hosts whose recorder is there.",
                 board->there_count);
    print_metric(&printer, "blkin_hub_connections", "gauge", "Open connections.",
                 server_connections(hub->server));
    print_metric(&printer, "blkin_hub_held_messages", "gauge", "Messages of the last minute.",
                 board->next - board->oldest);
    print_metric(&printer, "blkin_hub_held_bytes", "gauge",
                 "Memory taken by the messages of the last minute.", board->bytes);
    print_metric(&printer, "blkin_hub_messages_total", "counter", "Messages that were accepted.",
                 board->next - 1);
    print_metric(&printer, "blkin_hub_requests_total", "counter", "Requests.", counts->requests);
    print_metric(&printer, "blkin_hub_unauthorized_total", "counter",
                 "Requests without the right token or certificate.", counts->unauthorized);
    print_metric(&printer, "blkin_hub_malformed_total", "counter",
                 "Requests that were wrong in another way.", counts->malformed);
    print_metric(&printer, "blkin_hub_limited_total", "counter",
                 "Posts refused because the host posts too much.", counts->limited);
    print_metric(&printer, "blkin_hub_hung_up_total", "counter",
                 "Connections that were too many, or too slow.", counts->hung_up);
    for (size_t i = 0; i < host_table.count; i++)
        print_of_hosts(&printer, board, &host_table.own[i]);
    return print_end(&printer);
}

/* ---- the service ----------------------------------------------------------------------------- */

static bool open_all(struct hub *hub, struct error *error)
{
    int fd;

    if (!frame_open(&hub->frame, error) || !access_open(&hub->access, hub->frame.config, error))
        return false;
    fd = listen_there(hub, error);
    if (fd < 0)
        return false;
    hub->server = server_open(hub->frame.loop, fd, &hub->board, &hub->access, hub_page, hub, error);
    if (!hub->server)
        close(fd);
    return hub->server != NULL;
}

static bool serve(struct hub *hub)
{
    const bool token = hub->access.tokens.count, certificate = hub->access.wants_certificate;

    say(BK6002, "serves at %s; recorders must show %s%s%s", hub->url,
        certificate ? "a certificate" : "", certificate && token ? " and " : "",
        token         ? "their host's token"
        : certificate ? ""
                      : "nothing");
    notify("READY=1\nSTATUS=serves at %s", hub->url);
    return frame_run(&hub->frame);
}

int hub_command(int argc, char *argv[])
{
    static const struct frame_calls calls = {
        .name = "hub", .title = "blkin hub", .status = hub_status};
    const struct config_request request = {"hub", usage, NULL};
    static struct hub hub;
    struct error error = {"out of memory"};
    bool is_right = false;
    int status;

    if (!frame_read(&hub.frame, &calls, &hub, &request, argc, argv, &status))
        return status;
    if (board_open(&hub.board, config_integer(hub.frame.config, "hub-traces-per-s"), clock_ms()) &&
        open_all(&hub, &error))
        is_right = serve(&hub);
    else
        say(BK1010, "%s", error.text);
    server_close(hub.server);
    board_close(&hub.board);
    access_close(&hub.access);
    frame_close(&hub.frame);
    return is_right ? 0 : 1;
}
