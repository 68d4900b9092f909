/* Checks the relay daemon: its address, its sessions, and their readers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "babeltrace-plugin/base/file.h"

#include "tools/base/process.h"
#include "tools/reader/graph.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct relay_address {
    char host[256];
    char port[16];
};

/* Sets the address of the relay daemon. Returns whether the daemon is the service's own: relayd =
 * own, not HOST[:PORT]. */
static bool relay_address_of(const struct doctor *doctor, struct relay_address *relay)
{
    const char *relayd = config_text(doctor->config, "relayd");
    const bool is_own = strcmp(relayd, "own") == 0;
    const char *colon = strrchr(relayd, ':');

    if (is_own) {
        (void)snprintf(relay->host, sizeof(relay->host), "%s",
                       config_text(doctor->config, "relayd-address"));
        (void)snprintf(relay->port, sizeof(relay->port), "%d",
                       (int)config_integer(doctor->config, "relayd-live-port"));
        return true;
    }
    (void)snprintf(relay->host, sizeof(relay->host), "%.*s",
                   colon ? (int)(colon - relayd) : (int)strlen(relayd), relayd);
    (void)snprintf(relay->port, sizeof(relay->port), "%s", colon ? colon + 1 : "5344");
    return false;
}

/* ---- the address ----------------------------------------------------------------------------- */

static bool is_loopback(const char *address)
{
    /* /proc/net/tcp has the machine's byte order; ::1 and ::ffff:127.x.y.z are in /proc/net/tcp6 */
    return (strlen(address) == 8 && strncmp(address + 6, "7F", 2) == 0) ||
           strcmp(address, "00000000000000000000000001000000") == 0 ||
           (strlen(address) == 32 && strncmp(address, "0000000000000000FFFF0000", 24) == 0 &&
            strncmp(address + 30, "7F", 2) == 0);
}

#define PORTS 6

/* Adds the listening sockets with these ports to *count. Sets *exposed to a port that is not on
 * loopback. path: /proc/net/tcp or tcp6 */
static void count_listeners(const char *path, const unsigned ports[PORTS], unsigned *count,
                            unsigned *exposed)
{
    GUARD_FILE FILE *file = fopen(path, "re");
    char line[512], address[33];
    unsigned port, state;

    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, " %*u: %32[0-9A-F]:%X %*[0-9A-F]:%*X %X", address, &port, &state) != 3 ||
            state != 0x0a)
            continue;
        for (int i = 0; i < PORTS; i++) {
            *count += port == ports[i];
            if (port == ports[i] && !is_loopback(address))
                *exposed = port;
        }
    }
}

static void note_relayd(void *context, struct process *process)
{
    *(unsigned *)context += strcmp(process->name, "lttng-relayd") == 0;
}

/* Checks also a relay daemon that was started by hand, at LTTng's default ports. */
void check_relayd_address(const struct doctor *doctor)
{
    const unsigned ports[PORTS] = {(unsigned)config_integer(doctor->config, "relayd-control-port"),
                                   (unsigned)config_integer(doctor->config, "relayd-data-port"),
                                   (unsigned)config_integer(doctor->config, "relayd-live-port"),
                                   5342,
                                   5343,
                                   5344};
    unsigned count = 0, exposed = 0;

    process_each(note_relayd, &count);
    if (count == 0)
        return;
    count = 0;
    count_listeners("/proc/net/tcp", ports, &count, &exposed);
    count_listeners("/proc/net/tcp6", ports, &count, &exposed);
    if (exposed)
        saw(config_boolean(doctor->config, "expose-relayd") ? LEVEL_NOTE : LEVEL_BAD,
            "relayd.address",
            "other hosts can reach port %u of the relay daemon: they can read traces and write "
            "files here, and the viewers' port of lttng-tools 2.13 has known security holes" MEND
            "lttng-relayd -C tcp://127.0.0.1:%u -D tcp://127.0.0.1:%u -L "
            "tcp://127.0.0.1:%u, or blkin live with a relay daemon of its own",
            exposed, ports[0], ports[1], ports[2]);
    else if (count > 0)
        saw(LEVEL_OK, "relayd.address", "the relay daemon listens on loopback only");
}

/* ---- the ports ------------------------------------------------------------------------------- */

static bool connects(const struct relay_address *relay, char *why, size_t size)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const int code = getaddrinfo(relay->host, relay->port, &hints, &found);
    GUARD_FD int fd = -1;
    bool is_there = false;

    if (code != 0) {
        (void)snprintf(why, size, "%s", gai_strerror(code));
        return false;
    }
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    is_there = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0;
    if (!is_there)
        (void)snprintf(why, size, "%s", strerror(errno));
    freeaddrinfo(found);
    return is_there;
}

/* ---- sessions and viewers -------------------------------------------------------------------- */

static void check_viewer(const struct doctor *doctor, int64_t viewers, const char *name)
{
    if (viewers > 0 && doctor->facts->service_is_hidden)
        saw(LEVEL_OK, "relayd.viewer", "\"%s\" is being read", name);
    else if (viewers == 0 && !doctor->facts->service_runs)
        saw(LEVEL_BAD, "relayd.viewer",
            "nobody reads \"%s\" from the relay daemon" MEND "systemctl start blkin-live", name);
    else if (viewers == 0)
        saw(LEVEL_BAD, "relayd.viewer",
            "blkin live runs, but does not read \"%s\"" MEND
            "journalctl -u blkin-live; is the session among those that `follow` names?",
            name);
    else if (!doctor->facts->service_runs)
        saw(LEVEL_NOTE, "relayd.viewer",
            "a viewer other than blkin live reads \"%s\": a session can have only one" MEND
            "end that babeltrace2, then systemctl start blkin-live",
            name);
    else
        saw(LEVEL_OK, "relayd.viewer", "\"%s\" is being read", name);
}

static bool ask_for_sessions(const struct relay_address *relay, struct listing *listing)
{
    char url[300];

    (void)snprintf(url, sizeof(url), "net://%s:%s", relay->host, relay->port);
    *listing = (struct listing){.count = 0};
    return listing_ask(url, listing);
}

/* Runs after the checks of everything that a viewer needs. */
void check_relayd_session(const struct doctor *doctor)
{
    const char *name = doctor->facts->session_name;
    static struct listing listing;
    const struct listed_session *ours = NULL;
    struct relay_address relay;

    (void)relay_address_of(doctor, &relay);
    if (!doctor->facts->relayd_answers || !ask_for_sessions(&relay, &listing))
        return;
    for (int i = 0; i < listing.count; i++) {
        if (strcmp(listing.sessions[i].name, name) == 0)
            ours = &listing.sessions[i];
    }
    if (!ours) {
        saw(LEVEL_BAD, "relayd.session",
            "the relay daemon has %d sessions, but not \"%s\": that session is older than this "
            "relay daemon, or sends its data to another one" MEND
            "lttng destroy %s; blkin live creates it again",
            listing.count, name, name);
        return;
    }
    saw(LEVEL_OK, "relayd.session", "the relay daemon has \"%s\" of host %s; streams: %" PRId64,
        name, ours->host, ours->streams);
    check_viewer(doctor, ours->viewers, name);
}

static void check_answer(const struct doctor *doctor, const struct relay_address *relay)
{
    static struct listing listing;

    doctor->facts->relayd_answers = ask_for_sessions(relay, &listing);
    if (doctor->facts->relayd_answers)
        saw(LEVEL_OK, "relayd.answers", "the relay daemon answers; live sessions: %d",
            listing.count);
    else
        saw(LEVEL_BAD, "relayd.answers",
            "%s:%s accepts connections, but does not list live sessions" MEND
            "is that a relay daemon's port for viewers? relayd and relayd-live-port in "
            "blkin.conf",
            relay->host, relay->port);
}

static void look_at_relayd(const struct doctor *doctor)
{
    const int64_t control = config_integer(doctor->config, "relayd-control-port");
    struct relay_address relay;
    const bool is_own = relay_address_of(doctor, &relay);
    char why[128];

    if (!connects(&relay, why, sizeof(why))) {
        saw(LEVEL_BAD, "relayd.listens", "no relay daemon at %s:%s: %s" MEND "%s", relay.host,
            relay.port, why,
            is_own ? "systemctl restart blkin-live, which has its own"
                   : "start it there, or set relayd = own in blkin.conf");
        return;
    }
    saw(LEVEL_OK, "relayd.listens", "a relay daemon listens at %s:%s", relay.host, relay.port);
    if (is_own && doctor->facts->relayd_port && doctor->facts->relayd_port != (unsigned)control)
        saw(LEVEL_BAD, "relayd.port",
            "the session sends its data to port %u, but the relay daemon of blkin live has %d" MEND
            "lttng destroy %s; blkin live creates it again",
            doctor->facts->relayd_port, (int)control, doctor->facts->session_name);
    check_answer(doctor, &relay);
}

void check_relayd(const struct doctor *doctor)
{
    doctor->facts->relayd_hangs = true; /* stays true if the time limit kills this process */
    look_at_relayd(doctor);
    doctor->facts->relayd_hangs = false;
}
