/* SPDX-License-Identifier: BSD-2-Clause */
#include "relay.h"

#include "babeltrace-plugin/base/backoff.h"
#include "babeltrace-plugin/base/file.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/folders.h"
#include "tools/base/say.h"

#include <arpa/inet.h>
#include <errno.h>
#include <glob.h>
#include <libgen.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LISTENS_MS           50   /* the period of checks whether our own daemon listens */
#define STARTED_MS           5000 /* the limit until our own daemon listens */
#define LIST_MS              1000 /* the period of listings */
#define LIST_SOON_MS         250 /* the same if there is no session, after a failure, or if is_urgent */
#define LIST_LIMIT_MS        3000 /* the limit for a listing */
#define RELAY_RESTART_MS     250  /* doubles with each failure */
#define RELAY_RESTART_MAX_MS 30000
#define END_MS               5000 /* after SIGTERM; then the daemon gets SIGKILL */

static void relay_start(void *context);

/* ---- addresses ------------------------------------------------------------------------------- */

void relay_url(const struct relay_options *options, char *url, size_t size)
{
    (void)snprintf(url, size, "net://%s:%d:%d", options->host, options->control_port,
                   options->data_port);
}

void relay_live_url(const struct relay_options *options, char *url, size_t size)
{
    (void)snprintf(url, size, "net://%s:%d", options->host, options->live_port);
}

struct relay_options relay_reached(const struct relay_options *options)
{
    struct relay_options at = *options;

    if (strcmp(at.host, "0.0.0.0") == 0)
        (void)snprintf(at.host, sizeof(at.host), "127.0.0.1");
    return at;
}

/* ---- the configuration ----------------------------------------------------------------------- */

/* Sets the numeric address in options. Looks up the name once, at the start, as the loop must not
 * wait for a name server. babeltrace2's viewer has IPv4 only. Returns false if the name has no IPv4
 * address. */
static bool relay_resolve(const char *host, struct in_addr *address, struct relay_options *options)
{
    const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct sockaddr_in first;

    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return false;
    memcpy(&first, found->ai_addr, sizeof(first));
    *address = first.sin_addr;
    freeaddrinfo(found);
    (void)inet_ntop(AF_INET, address, options->host, sizeof(options->host));
    return true;
}

static bool relay_take_address(const struct config *config, struct relay_options *options,
                               struct error *error)
{
    const char *name = config_text(config, "relayd-address");
    struct in_addr address;
    bool is_loopback;

    if (strchr(name, ':') || !*name)
        return error_set(error,
                         "%s: relayd-address \"%s\": expected an IPv4 address or a host's name: "
                         "babeltrace2 reads live sessions over IPv4 only",
                         config_origin(config, "relayd-address"), name);
    if (!relay_resolve(name, &address, options))
        return error_set(error, "%s: relayd-address \"%s\": no IPv4 address has this name",
                         config_origin(config, "relayd-address"), name);
    is_loopback = ntohl(address.s_addr) >> 24 == 127;
    if (is_loopback || config_boolean(config, "expose-relayd"))
        return true;
    return error_set(error,
                     "%s: relayd-address \"%s\" is not on loopback: lttng-relayd has no passwords "
                     "and no TLS, and version 2.13 has known security holes; anyone who reaches it "
                     "can read all traces and write files. Use a tunnel to 127.0.0.1 (ssh, "
                     "WireGuard); or, on a network that you trust, set expose-relayd=yes",
                     config_origin(config, "relayd-address"), name);
}

static bool parse_relayd(const char *text, struct relay_options *options, struct error *error)
{
    const char *colon = strrchr(text, ':');
    const size_t length = colon ? (size_t)(colon - text) : strlen(text);
    struct in_addr address;
    char *end;

    options->live_port = 5344;
    if (colon) {
        const long port = strtol(colon + 1, &end, 10);

        options->live_port = *end || end == colon + 1 || port < 1 || port > 65535 ? 0 : (int)port;
    }
    if (length == 0 || length >= sizeof(options->host) || memchr(text, ':', length) ||
        options->live_port == 0)
        return error_set(
            error, "relayd \"%s\": expected \"own\" or HOST[:PORT], the port for live viewers",
            text);
    memcpy(options->host, text, length);
    options->host[length] = '\0';
    /* LTTng has the number, too: session_difference() compares them */
    return relay_resolve(options->host, &address, options) ||
           error_set(error, "relayd \"%s\": no IPv4 address has this name", text);
}

bool relay_read_options(const struct config *config, struct relay_options *options,
                        struct error *error)
{
    *options = (struct relay_options){
        .is_own = strcmp(config_text(config, "relayd"), "own") == 0,
        .control_port = (int)config_integer(config, "relayd-control-port"),
        .data_port = (int)config_integer(config, "relayd-data-port"),
        .live_port = (int)config_integer(config, "relayd-live-port"),
    };
    if (!options->is_own)
        return parse_relayd(config_text(config, "relayd"), options, error);
    if (!relay_take_address(config, options, error))
        return false;
    (void)snprintf(options->output, sizeof(options->output), "%s/relayd",
                   config_text(config, "state-dir"));
    return folder_make_private(config_text(config, "state-dir"), error) &&
           folder_make_private(options->output, error);
}

/* ---- files of ended sessions --------------------------------------------------------------- */

#define D            "[0-9]"
#define DATE_PATTERN "-" D D D D D D D D "-" D D D D D D /* "-20261121-113252" */
#define DATE_LENGTH  (sizeof("-20261121-113252") - 1)

/* Finds FOLDER/HOST/SESSION-DATE-TIME. The caller calls globfree(). */
static void sweep_find(const char *folder, glob_t *found)
{
    char pattern[2 * 4096 + sizeof("/*/?*" DATE_PATTERN)], *at = pattern;

    for (; *folder && at < pattern + 2 * 4096 - 1; *at++ = *folder++) {
        if (strchr("*?[\\", *folder))
            *at++ = '\\';
    }
    (void)strcpy(at, "/*/?*" DATE_PATTERN);
    *found = (glob_t){.gl_pathc = 0};
    (void)glob(pattern, 0, NULL, found);
}

void relay_sweep_all(const char *folder)
{
    glob_t found;

    sweep_find(folder, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (tree_changed_at(found.gl_pathv[i])) /* 0: a link */
            tree_remove(found.gl_pathv[i]);
        (void)rmdir(dirname(found.gl_pathv[i])); /* the host's folder, if it is empty now */
    }
    globfree(&found);
}

/* Returns whether the folder has changed lately, is a link, or is the latest folder of a live
 * session. */
static bool is_in_use(const struct sweep *sweep, const glob_t *found, size_t i)
{
    const char *path = found->gl_pathv[i];
    const size_t length = strlen(path) - DATE_LENGTH;
    const time_t changed = tree_changed_at(path);
    char text[8192], *name;

    if (!changed || time(NULL) - changed < SWEEP_AGE_S) /* 0: a link */
        return true;
    if ((size_t)snprintf(text, sizeof(text), "%.*s", (int)length, path) >= sizeof(text))
        return true;
    name = strrchr(text, '/');
    *name++ = '\0';
    if (!listing_has(&sweep->live, strrchr(text, '/') + 1, name))
        return false;
    for (size_t other = 0; other < found->gl_pathc; other++) {
        if (other != i && strlen(found->gl_pathv[other]) == length + DATE_LENGTH &&
            strncmp(found->gl_pathv[other], path, length) == 0 &&
            tree_changed_at(found->gl_pathv[other]) > changed)
            return false;
    }
    return true;
}

static void sweep_run(void *context)
{
    const struct sweep *sweep = context;
    glob_t found;

    sweep_find(sweep->folder, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        if (!is_in_use(sweep, &found, i))
            tree_remove(found.gl_pathv[i]);
    }
    globfree(&found);
}

static void sweep_done(void *context)
{
    (void)context;
}

void relay_sweep(struct sweep *sweep, struct loop *loop, const char *folder,
                 const struct listing *live)
{
    if (sweep->job.is_running)
        return;
    *sweep = (struct sweep){.job = {.run = sweep_run, .done = sweep_done, .context = sweep},
                            .folder = folder,
                            .live = *live};
    (void)thread_job_start(loop, &sweep->job);
}

/* ---- our own daemon: its ports --------------------------------------------------------------- */

static struct sockaddr_in relay_address(const struct relay_options *options, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

    (void)inet_pton(AF_INET, options->host, &address.sin_addr);
    return address;
}

/* Returns 0 if a program could listen on the port, or the errno. */
static int try_port(const struct relay_options *options, int port)
{
    const struct sockaddr_in address = relay_address(options, port);
    const int one = 1;
    GUARD_FD const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 1) != 0)
        return errno;
    return 0;
}

static bool check_ports(const struct relay_options *options, struct error *error)
{
    const struct {
        const char *key;
        int port;
    } ports[] = {{"relayd-control-port", options->control_port},
                 {"relayd-data-port", options->data_port},
                 {"relayd-live-port", options->live_port}};

    for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
        const int cause = try_port(options, ports[i].port);

        if (cause == 0)
            continue;
        return error_set(error, "%s %d: cannot listen at %s: %s%s", ports[i].key, ports[i].port,
                         options->host, strerror(cause),
                         cause == EADDRINUSE ? ": if another relay daemon has the port, end it, "
                                               "use it (relayd=HOST:PORT), or set other ports"
                                             : "");
    }
    return true;
}

/* ---- our own daemon: start and end ----------------------------------------------------------- */

static int relay_run(const void *order, size_t size)
{
    const struct relay_options *o = order;
    char control[320], data[320], live[320];
    char output[sizeof(o->output)];
    char *arguments[] = {"lttng-relayd", "-C", control, "-D", data, "-L", live, "-o", output, NULL};

    (void)size;
    relay_sweep_all(o->output); /* no session streams yet */
    (void)snprintf(control, sizeof(control), "tcp://%s:%d", o->host, o->control_port);
    (void)snprintf(data, sizeof(data), "tcp://%s:%d", o->host, o->data_port);
    (void)snprintf(live, sizeof(live), "tcp://%s:%d", o->host, o->live_port);
    (void)snprintf(output, sizeof(output), "%s", o->output);
    (void)umask(077);
    (void)execvp(arguments[0], arguments);
    return errno == ENOENT ? 127 : 126;
}

const struct job relay_job = {.name = "live-relayd", .run = relay_run};

/* Returns whether the daemon listens on the port. The port is on this host, so connect(2) returns
 * at once. */
static bool is_listening(const struct relay_options *options, int port)
{
    const struct timeval limit = {0, 20000};
    const struct sockaddr_in address = relay_address(options, port);
    GUARD_FD const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0 &&
           connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
}

static void relay_set_state(struct relay *relay, enum relay_state state)
{
    relay->state = state;
    relay->since_ns = wall_clock_ns();
}

static void relay_come_up(struct relay *relay)
{
    relay_set_state(relay, RELAY_UP);
    relay->failures = 0;
    relay->on.up(relay->on.context);
}

static void relay_go_down(struct relay *relay)
{
    /* a foreign daemon may be down from the start */
    const bool is_news = relay->options.is_own ? relay->state == RELAY_UP : relay->failures++ == 0;

    relay_set_state(relay, RELAY_DOWN);
    relay->listing.count = 0;
    relay->has_listed = false;
    if (is_news)
        relay->on.down(relay->on.context);
}

static void relay_list(void *context);

static void relay_list_in(struct relay *relay, int64_t ms)
{
    relay->timer.due = relay_list;
    timer_set(relay->loop, &relay->timer, ms);
}

static void relay_check_listening(void *context)
{
    struct relay *relay = context;
    const struct relay_options *options = &relay->options;

    if (is_listening(options, options->live_port) && is_listening(options, options->control_port) &&
        is_listening(options, options->data_port)) {
        relay_come_up(relay);
        relay_list_in(relay, 0);
    } else if (clock_ms() - relay->started_ms > STARTED_MS) {
        say(BK2014, "lttng-relayd does not listen after %d s: it is killed", STARTED_MS / 1000);
        (void)kill(relay->child.pid, SIGKILL);
    } else {
        timer_set(relay->loop, &relay->timer, LISTENS_MS);
    }
}

static void relay_restart_later(struct relay *relay)
{
    relay->timer.due = relay_start;
    timer_set(relay->loop, &relay->timer,
              backoff_ms(++relay->failures, RELAY_RESTART_MS, RELAY_RESTART_MAX_MS));
}

static void relayd_ended(void *context, int status)
{
    struct relay *relay = context;
    struct error error;

    output_lines_close(&relay->lines);
    timer_clear(relay->loop, &relay->timer);
    if (relay->is_ending) {
        relay->ended(relay->on.context);
        return;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        error_set(&error, "lttng-relayd is not installed, or not on PATH: its package is "
                          "lttng-tools");
        relay->on.failed(relay->on.context, &error);
        return;
    }
    if (WIFEXITED(status))
        say(BK2015, "lttng-relayd has ended with status %d: it is started again",
            WEXITSTATUS(status));
    else
        say(BK2016, "lttng-relayd was killed by signal %d: it is started again", WTERMSIG(status));
    relay_go_down(relay);
    relay_restart_later(relay);
}

static void relay_start(void *context)
{
    struct relay *relay = context;
    const struct child_order order = {.job = &relay_job,
                                      .bytes = &relay->options,
                                      .size = sizeof(relay->options),
                                      .lines = &relay->lines};
    struct error error;

    if (!check_ports(&relay->options, &error)) {
        if (relay->starts == 0)
            relay->on.failed(relay->on.context, &error);
        else
            relay_restart_later(relay);
        return;
    }
    if (!child_start(relay->loop, &relay->child, &order)) {
        relay_restart_later(relay);
        return;
    }
    relay->starts++;
    relay->started_ms = clock_ms();
    relay_set_state(relay, RELAY_STARTING);
    relay->timer.due = relay_check_listening;
    timer_set(relay->loop, &relay->timer, 10);
}

/* ---- the daemon's sessions ------------------------------------------------------------------- */

static void on_listed(void *context, const void *result)
{
    struct relay *relay = context;

    relay->is_listing = false;
    if (relay->is_ending || (relay->options.is_own && relay->state != RELAY_UP))
        return;
    if (!result) {
        if (!relay->options.is_own)
            relay_go_down(relay);
        relay_list_in(relay, LIST_SOON_MS);
        return;
    }
    relay->listing = *(const struct listing *)result;
    if (relay->listing.has_more && !relay->has_listed)
        say(BK2017, "the relay daemon has more than %d sessions: the others are ignored",
            LISTED_MAX);
    relay->has_listed = true;
    if (relay->state != RELAY_UP)
        relay_come_up(relay);
    relay->on.listed(relay->on.context, &relay->listing);
    relay_list_in(relay, relay->listing.count && !relay->is_urgent ? LIST_MS : LIST_SOON_MS);
}

static void relay_list(void *context)
{
    struct relay *relay = context;
    char url[320];

    if (relay->is_listing)
        return;
    relay_live_url(&relay->options, url, sizeof(url));
    relay->task.done = on_listed;
    relay->task.context = relay;
    relay->is_listing =
        task_start(relay->loop, &relay->task, &listing_job, url, strlen(url) + 1, LIST_LIMIT_MS);
    if (!relay->is_listing)
        relay_list_in(relay, LIST_MS);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

void relay_begin(struct relay *relay, struct loop *loop, const struct relay_options *options,
                 const struct relay_callbacks *callbacks)
{
    *relay = (struct relay){.loop = loop, .options = *options, .on = *callbacks};
    relay->child = (struct child){.ended = relayd_ended, .context = relay};
    relay->timer.context = relay;
    relay->lines.input.fd = -1;
    (void)snprintf(relay->lines.source, sizeof(relay->lines.source), "lttng-relayd");
    relay_set_state(relay, RELAY_DOWN);
    if (options->is_own)
        relay_start(relay);
    else
        relay_list(relay);
}

static void kill_relayd(void *context)
{
    struct relay *relay = context;

    (void)kill(relay->child.pid, SIGKILL);
}

void relay_end(struct relay *relay, void (*ended)(void *context))
{
    relay->is_ending = true;
    relay->ended = ended;
    timer_clear(relay->loop, &relay->timer);
    if (!relay->child.pid) {
        ended(relay->on.context);
        return;
    }
    (void)kill(relay->child.pid, SIGTERM);
    relay->timer.due = kill_relayd;
    timer_set(relay->loop, &relay->timer, END_MS);
}

json_t *relay_json(const struct relay *relay)
{
    static const char *const states[] = {"down", "starting", "up"};
    char url[320];

    relay_live_url(&relay->options, url, sizeof(url));
    return json_pack("{ss, ss, so, sb, sI, sI}", "url", url, "state", states[relay->state], "since",
                     json_time(relay->since_ns), "own", relay->options.is_own, "pid",
                     (json_int_t)relay->child.pid, "starts", (json_int_t)relay->starts);
}
