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
#include "page.h"
#include "server.h"
#include "tools/base/notify.h"
#include "tools/base/say.h"
#include "tools/config/config.h"
#include "tools/config/frame.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
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
    error_set(error,
              "hub-listen \"%s\": whoever reaches it could ask all hosts for traces, in any "
              "host's name: give it hub-tokens-file, lines \"HOST TOKEN\" (openssl rand -hex 32), "
              "or hub-ca-file for certificates; or, where you trust all who reach it, say "
              "expose-hub=yes",
              where);
    return false;
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
        say(BK6001, "without hub-cert-file it is plain HTTP: all on the way can read it%s",
            hub->access.tokens.count ? ", the tokens too" : "");
    fd = listen_open(&address, "hub-listen", where, error);
    if (fd >= 0) {
        /* who finds no place in the queue tries again after a second */
        (void)listen(fd, SOMAXCONN);
        listen_url(&address, fd, hub->access.is_tls ? "https" : "http", hub->url);
    }
    return fd;
}

/* ---- the service ----------------------------------------------------------------------------- */

static json_t *hub_status(void *context)
{
    struct hub *hub = context;

    return hub_json(&hub->board, hub->server, hub->url);
}

static char *page(void *context)
{
    struct hub *hub = context;

    return hub_page(&hub->board, hub->server);
}

static bool open_all(struct hub *hub, struct error *error)
{
    int fd;

    if (!frame_open(&hub->frame, error) || !access_open(&hub->access, hub->frame.config, error))
        return false;
    fd = listen_there(hub, error);
    if (fd < 0)
        return false;
    hub->server = server_open(hub->frame.loop, fd, &hub->board, &hub->access, page, hub, error);
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
