/*
 * Hosts that only send and receive messages: clusters (cluster.h) in one loop. Lines of the
 * standard input are orders. The standard output has a line for each received message.
 *
 *     peer [--count=N] [--answer] [--quiet] --name=NAME --cluster=URL ...
 *
 * --count: the names are NAME-1, NAME-2, ...; --answer: each peer answers wants. Input:
 *
 *     want N [BYTES]      each peer sends N wants of at least BYTES bytes
 *     load RATE [TRACES]  the peers in turn send RATE wants a second, each for TRACES traces
 *     json                prints J HOST and cluster_json() of each peer
 *     figures             prints F NAME {"wants": sent, "answers": got,
 *                         "ms": [answers after 0 ms, 1 ms, ...]}
 *
 * Output, flushed after each line; with --quiet, only J, F and O:
 *
 *     P HOST ID           the peer has sent a want of this id
 *     R HOST ID US        the peer got a want, US us after "at"
 *     O HOST ID           the peer got a want of a host that has used up its share
 *     A HOST ID FROM US   the peer got an answer, US us after its want
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "service/in_loop.h"
#include "tools/cluster/cluster.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct peer {
    char name[300];
    struct cluster *cluster;
    int64_t number;
    int64_t asked_ns[4096]; /* the time of request N, at N % 4096 */
};

static struct peer *peers;
static const char *peer_name = "peer";
static int count = 1;
static bool answers, is_quiet;
static struct {
    struct timer timer;
    int rate, traces; /* 0: no load */
    int64_t begin_ns, sent;
} load = {.traces = 1};
static uint64_t wants, answers_after[60000]; /* ms */
static struct watched input;
static char lines[1 << 21];
static size_t filled;

/* ---- sending --------------------------------------------------------------------------------- */

static void send_want(struct peer *peer, size_t bytes, int traces)
{
    const int64_t now_ns = wall_clock_ns();
    char id[400], trace[33];
    char *pad = calloc(1, bytes + 1);
    json_t *list = json_array(), *message;

    memset(pad, 'x', bytes);
    wants++;
    peer->number++;
    peer->asked_ns[peer->number % 4096] = now_ns;
    snprintf(id, sizeof(id), "%s:%d:%" PRId64, peer->name, (int)getpid(), peer->number);
    for (int i = 0; i < traces; i++) {
        snprintf(trace, sizeof(trace), "%08x%08x%08x%08x", (unsigned)getpid(),
                 (unsigned)(peer - peers), (unsigned)peer->number, (unsigned)i);
        json_array_append_new(list, json_pack("{ss, ss}", "id", trace, "why", "test"));
    }
    message = json_pack("{ss, ss, ss, sI, ss, so}", "type", "keep", "id", id, "host", peer->name,
                        "at", (json_int_t)now_ns, "pad", pad, "traces", list);
    if (!is_quiet)
        printf("P %s %s\n", peer->name, id);
    cluster_send(peer->cluster, message);
    json_decref(message);
    free(pad);
}

static void send_answer(struct peer *peer, const json_t *request)
{
    json_t *message = json_pack(
        "{ss, sO, ss, sO, sI, s[]}", "type", "found", "id", json_object_get(request, "id"), "host",
        peer->name, "to", json_object_get(request, "host"), "held_from", (json_int_t)1, "traces");

    cluster_send(peer->cluster, message);
    json_decref(message);
}

static void send_load(void *context)
{
    const int64_t due = (wall_clock_ns() - load.begin_ns) * load.rate / 1000000000;

    (void)context;
    for (; load.sent < due; load.sent++)
        send_want(&peers[load.sent % count], 0, load.traces);
    if (load.rate)
        timer_set(loop, &load.timer, load.rate < 500 ? 1000 / load.rate : 1);
}

/* ---- receiving ------------------------------------------------------------------------------- */

static const char *text(const json_t *message, const char *member)
{
    return json_string_value(json_object_get(message, member));
}

static void got_answer(struct peer *peer, const json_t *message)
{
    const char *id = text(message, "id"), *number = strrchr(id, ':');
    const int64_t us =
        (wall_clock_ns() - peer->asked_ns[number ? atoi(number + 1) % 4096 : 0]) / 1000;
    const size_t max = sizeof(answers_after) / sizeof(answers_after[0]) - 1;

    answers_after[(size_t)us / 1000 < max ? (size_t)us / 1000 : max]++;
    if (!is_quiet)
        printf("A %s %s %s %" PRId64 "\n", peer->name, id, text(message, "host"), us);
}

static void got(void *context, const json_t *message, bool over)
{
    struct peer *peer = context;
    const char *type = text(message, "type"), *id = text(message, "id");

    if (strcmp(type, "keep") != 0) {
        got_answer(peer, message);
        return;
    }
    if (over)
        printf("O %s %s\n", peer->name, id);
    else if (!is_quiet)
        printf("R %s %s %lld\n", peer->name, id,
               ((long long)wall_clock_ns() - json_integer_value(json_object_get(message, "at"))) /
                   1000);
    if (answers && !over)
        send_answer(peer, message);
}

static void got_config(void *context, const char *config)
{
    (void)context;
    (void)config;
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void print_figures(const char *name)
{
    size_t longest = sizeof(answers_after) / sizeof(answers_after[0]);
    uint64_t all = 0;

    while (longest && answers_after[longest - 1] == 0)
        longest--;
    for (size_t i = 0; i < longest; i++)
        all += answers_after[i];
    printf("F %s {\"wants\":%" PRIu64 ",\"answers\":%" PRIu64 ",\"ms\":[", name, wants, all);
    for (size_t i = 0; i < longest; i++)
        printf("%s%" PRIu64, i ? "," : "", answers_after[i]);
    printf("]}\n");
}

static void obey(const char *line)
{
    int number = 0, other = 0;

    if (sscanf(line, "want %d %d", &number, &other) >= 1) {
        for (int i = 0; i < count * number; i++)
            send_want(&peers[i % count], (size_t)other, 1);
    } else if (sscanf(line, "load %d %d", &load.rate, &load.traces) >= 1) {
        load.begin_ns = wall_clock_ns();
        load.sent = 0;
        send_load(NULL);
    } else if (strcmp(line, "figures") == 0) {
        print_figures(peer_name);
    } else if (strcmp(line, "json") == 0) {
        for (int i = 0; i < count; i++) {
            json_t *json = cluster_json(peers[i].cluster);
            char *dump = json_dumps(json, JSON_COMPACT);

            printf("J %s %s\n", peers[i].name, dump);
            free(dump);
            json_decref(json);
        }
    }
}

static void read_orders(void *context)
{
    const ssize_t n = read(0, lines + filled, sizeof(lines) - 1 - filled);
    char *begin = lines, *end;

    (void)context;
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        loop_stop(loop);
        return;
    }
    filled += n > 0 ? (size_t)n : 0;
    lines[filled] = '\0';
    while ((end = strchr(begin, '\n'))) {
        *end = '\0';
        obey(begin);
        begin = end + 1;
    }
    filled -= (size_t)(begin - lines);
    memmove(lines, begin, filled);
}

static int open_peers(const struct config *config, const char *name)
{
    struct error error;
    char file[4096];

    peers = calloc((size_t)count, sizeof(*peers));
    for (int i = 0; i < count; i++) {
        const struct cluster_callbacks callbacks = {got, got_config, &peers[i]};

        if (count == 1)
            snprintf(peers[i].name, sizeof(peers[i].name), "%s", name);
        else
            snprintf(peers[i].name, sizeof(peers[i].name), "%.250s-%d", name, i + 1);
        snprintf(file, sizeof(file), "%s/%.255s.hosts", config_text(config, "state-dir"),
                 peers[i].name);
        peers[i].cluster = cluster_open(loop, config, peers[i].name, file, &callbacks, &error);
        if (!peers[i].cluster) {
            fprintf(stderr, "peer: %s\n", error.text);
            return 1;
        }
    }
    return 0;
}

int main(int argc, char *argv[])
{
    const char *count_text = "1";
    const struct config_flag flags[] = {{"name", NULL, &peer_name},
                                        {"count", NULL, &count_text},
                                        {"answer", &answers, NULL},
                                        {"quiet", &is_quiet, NULL},
                                        {NULL, NULL, NULL}};
    const struct config_request request = {
        .section = "agent", .usage = "usage: peer\n", .flags = flags};
    int status;
    struct config *config = config_read(&request, argc, argv, &status);

    if (!config)
        return status;
    say_open("peer", "info");
    setvbuf(stdout, NULL, _IOLBF, 0);
    count = atoi(count_text);
    loop = loop_new(&signals);
    if (!saver_open(loop))
        return 1;
    status = open_peers(config, peer_name);
    if (status == 0) {
        (void)fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
        input = (struct watched){0, POLLIN, read_orders, NULL, NULL, 0};
        loop_watch(loop, &input);
        load.timer = (struct timer){.due = send_load};
        (void)loop_run(loop);
        timer_clear(loop, &load.timer);
    }
    for (int i = 0; i < count; i++)
        cluster_close(peers[i].cluster);
    (void)saver_end();
    free(peers);
    loop_free(loop);
    config_free(config);
    return status;
}
