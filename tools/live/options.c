/*
 * The configuration of `blkin live`, as its parts want it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "options.h"

#include "tools/base/folders.h"
#include "tools/base/say.h"
#include "tools/reader/reader.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- relay daemon ---------------------------------------------------------------------------- */

static bool is_loopback(const char *host)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct sockaddr_in address;

    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return false;
    memcpy(&address, found->ai_addr, sizeof(address));
    freeaddrinfo(found);
    return ntohl(address.sin_addr.s_addr) >> 24 == 127;
}

static bool check_address(const struct config *config, const char *address, struct error *error)
{
    if (strchr(address, ':') || !*address) {
        error_set(error,
                  "%s: relayd-address \"%s\": expected an IPv4 address or a host's name: "
                  "babeltrace2 reads live sessions over IPv4 only",
                  config_origin(config, "relayd-address"), address);
        return false;
    }
    if (is_loopback(address) || config_boolean(config, "expose-relayd"))
        return true;
    error_set(
        error,
        "%s: relayd-address \"%s\" is not on loopback: lttng-relayd has neither passwords nor "
        "TLS, and in LTTng 2.13 known holes; whoever reaches it can read all traces and write "
        "files. Tunnel to 127.0.0.1 (ssh, WireGuard); or, on a network that you trust, say "
        "expose-relayd=yes",
        config_origin(config, "relayd-address"), address);
    return false;
}

static bool parse_relayd(const char *text, struct relay_options *options, struct error *error)
{
    const char *colon = strrchr(text, ':');
    const size_t length = colon ? (size_t)(colon - text) : strlen(text);
    char *end;

    options->live_port = 5344;
    if (colon) {
        const long port = strtol(colon + 1, &end, 10);

        options->live_port = *end || end == colon + 1 || port < 1 || port > 65535 ? 0 : (int)port;
    }
    if (length == 0 || length >= sizeof(options->host) || memchr(text, ':', length) ||
        options->live_port == 0) {
        error_set(error,
                  "relayd \"%s\": expected \"own\" or HOST[:PORT], the port for live viewers",
                  text);
        return false;
    }
    memcpy(options->host, text, length);
    options->host[length] = '\0';
    return true;
}

bool options_of_relay(const struct config *config, struct relay_options *options,
                      struct error *error)
{
    const char *address = config_text(config, "relayd-address");

    *options = (struct relay_options){
        .is_own = strcmp(config_text(config, "relayd"), "own") == 0,
        .control_port = (int)config_integer(config, "relayd-control-port"),
        .data_port = (int)config_integer(config, "relayd-data-port"),
        .live_port = (int)config_integer(config, "relayd-live-port"),
    };
    if (!options->is_own)
        return parse_relayd(config_text(config, "relayd"), options, error);
    if (!check_address(config, address, error))
        return false;
    (void)snprintf(options->host, sizeof(options->host), "%s", address);
    (void)snprintf(options->output, sizeof(options->output), "%s/relayd",
                   config_text(config, "state-dir"));
    return folder_own(config_text(config, "state-dir"), "state-dir", error) &&
           folder_own(options->output, "state-dir", error);
}

/* ---- session --------------------------------------------------------------------------------- */

/* What the relay daemon keeps on disk for a reader that is slow: of each CPU and user. Once it is
 * full the oldest is overwritten, which the sink counts. */
#define KEPT_FILE_BYTES (UINT64_C(32) << 20)
#define KEPT_FILES      4

bool options_of_session(const struct config *config, const struct relay_options *relay,
                        struct session_spec *spec, struct error *error)
{
    struct relay_options at = *relay;
    const char *name = config_text(config, "session");

    *spec = (struct session_spec){
        .mode = SESSION_LIVE,
        .subbuf_bytes = (uint64_t)config_integer(config, "subbuf-bytes"),
        .subbuf_count = (uint64_t)config_integer(config, "subbuf-count"),
        .live_timer_us = (uint64_t)config_integer(config, "live-timer-us"),
        .trace_file_bytes = KEPT_FILE_BYTES,
        .trace_file_count = KEPT_FILES,
    };
    while (spec->trace_file_bytes < spec->subbuf_bytes)
        spec->trace_file_bytes *= 2;
    if (!*name || strchr(name, '/') || strlen(name) > 200) {
        error_set(error, "%s: session \"%s\": expected 1 to 200 characters, without /",
                  config_origin(config, "session"), name);
        return false;
    }
    (void)snprintf(spec->name, sizeof(spec->name), "%s", name);
    session_set_events(spec, config_text(config, "events"), config_boolean(config, "host"));
    (void)snprintf(spec->filter, sizeof(spec->filter), "%s", config_text(config, "filter"));
    if (strcmp(at.host, "0.0.0.0") == 0)
        (void)snprintf(at.host, sizeof(at.host), "127.0.0.1");
    relay_url(&at, spec->relay_url, sizeof(spec->relay_url));
    return true;
}

/* ---- readers --------------------------------------------------------------------------------- */

bool options_of_readers(const struct config *config, const struct relay_options *relay,
                        struct readers_options *options, struct error *error)
{
    struct relay_options at = *relay;

    *options = (struct readers_options){
        .is_own_relay = relay->is_own,
        .params = reader_params(config),
        .retry_us = (long)config_integer(config, "retry-us"),
        .flush_timeout_ms = config_integer(config, "flush-timeout-ms"),
        /* the line of progress is ours, too */
        .level = say_level() == BT_LOGGING_LEVEL_INFO ? BT_LOGGING_LEVEL_WARNING : say_level(),
    };
    if (!options->params) {
        error_set(error, "out of memory");
        return false;
    }
    if (strcmp(at.host, "0.0.0.0") == 0)
        (void)snprintf(at.host, sizeof(at.host), "127.0.0.1");
    relay_live_url(&at, options->live_url, sizeof(options->live_url));
    (void)snprintf(options->folder, sizeof(options->folder), "%s",
                   config_text(config, "runtime-dir"));
    (void)snprintf(options->follow, sizeof(options->follow), "%s", config_text(config, "follow"));
    return true;
}
