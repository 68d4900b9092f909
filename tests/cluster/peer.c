/*
 * Agents as far as others see them: clusters (cluster.h) in one loop, told by lines on the standard
 * input what to send, which say on the standard output what they got.
 *
 *     peer [--count=N] [--every=MS] [--answer] --name=NAME --cluster=URL ...
 *
 * With a count there are NAME-1, NAME-2, ...; --every: each sends a want in so many ms.
 *   want N [BYTES]       each sends N wants, of at least that size
 *   one                  the next one of them sends a want
 *   every MS             as --every; 0: no more
 *   json                 J HOST and cluster_json() of each
 * Lines that come back, flushed one by one:
 *   P HOST ID            it has sent a want of this id
 *   R HOST ID US         it got one, so long after "at"
 *   O HOST ID            it got one of a host that has used up its share
 *   A HOST ID FROM US    it got an answer, so long after it has asked
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
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
    int64_t asked_ns[4096]; /* of request N at N % 4096 */
};

static struct loop *loop;
static struct peer *peers;
static int count = 1;
static bool answers;
static int64_t every_ms;
static struct timer timer;
static struct watched input;
static char lines[1 << 21];
static size_t filled;

static void stop(void *context)
{
    (void)context;
    loop_stop(loop);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void send_want(struct peer *peer, size_t bytes)
{
    const int64_t now_ns = wall_clock_ns();
    char id[400], trace[33];
    char *pad = calloc(1, bytes + 1);
    json_t *message;

    memset(pad, 'x', bytes);
    peer->number++;
    peer->asked_ns[peer->number % 4096] = now_ns;
    snprintf(id, sizeof(id), "%s:%d:%" PRId64, peer->name, (int)getpid(), peer->number);
    snprintf(trace, sizeof(trace), "%08x%08x%016" PRIx64, (unsigned)getpid(),
             (unsigned)(peer - peers), (uint64_t)peer->number);
    message =
        json_pack("{ss, ss, ss, sI, ss, s[{ss, ss}]}", "type", "keep", "id", id, "host", peer->name,
                  "at", (json_int_t)now_ns, "pad", pad, "traces", "id", trace, "why", "test");
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

static void send_again(void *context)
{
    (void)context;
    if (every_ms)
        timer_set(loop, &timer, every_ms);
    for (int i = 0; every_ms && i < count; i++)
        send_want(&peers[i], 0);
}

/* ---- receiving ------------------------------------------------------------------------------- */

static const char *text(const json_t *message, const char *member)
{
    return json_string_value(json_object_get(message, member));
}

static void got(void *context, const json_t *message, bool over)
{
    struct peer *peer = context;
    const char *type = text(message, "type"), *id = text(message, "id");

    if (over) {
        printf("O %s %s\n", peer->name, id);
    } else if (strcmp(type, "keep") == 0) {
        printf("R %s %s %lld\n", peer->name, id,
               ((long long)wall_clock_ns() - json_integer_value(json_object_get(message, "at"))) /
                   1000);
        if (answers)
            send_answer(peer, message);
    } else {
        const char *number = strrchr(id, ':');

        printf("A %s %s %s %lld\n", peer->name, id, text(message, "host"),
               ((long long)wall_clock_ns() - peer->asked_ns[number ? atoi(number + 1) % 4096 : 0]) /
                   1000);
    }
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void obey(const char *line)
{
    int times = 0, bytes = 0;

    if (sscanf(line, "want %d %d", &times, &bytes) >= 1) {
        for (int i = 0; i < count * times; i++)
            send_want(&peers[i % count], (size_t)bytes);
    } else if (strcmp(line, "one") == 0) {
        static int next;

        send_want(&peers[next++ % count], 0);
    } else if (sscanf(line, "every %d", &times) == 1) {
        every_ms = times;
        send_again(NULL);
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

static void read_orders(void *context, short events)
{
    const ssize_t n = read(0, lines + filled, sizeof(lines) - 1 - filled);
    char *begin = lines, *end;

    (void)context;
    (void)events;
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
        const struct cluster_callbacks callbacks = {got, &peers[i]};

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
    const struct loop_signals signals = {stop, stop, NULL};
    const char *name = "peer", *count_text = "1", *every_text = "0";
    bool ignored;
    const struct config_flag flags[] = {{"name", &ignored, &name},
                                        {"count", &ignored, &count_text},
                                        {"every", &ignored, &every_text},
                                        {"answer", &answers, NULL},
                                        {NULL, NULL, NULL}};
    const struct config_request request = {"agent", "usage: peer\n", flags};
    int status;
    struct config *config = config_read(&request, argc, argv, &status);

    if (!config)
        return status;
    say_open("peer", "info");
    setvbuf(stdout, NULL, _IOLBF, 0);
    count = atoi(count_text);
    every_ms = atoi(every_text);
    loop = loop_new(&signals);
    if (!saver_open(loop))
        return 1;
    status = open_peers(config, name);
    if (status == 0) {
        (void)fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
        input = (struct watched){0, POLLIN, read_orders, NULL, NULL};
        loop_watch(loop, &input);
        timer = (struct timer){.due = send_again};
        send_again(NULL);
        (void)loop_run(loop);
        timer_clear(loop, &timer);
    }
    for (int i = 0; i < count; i++)
        cluster_close(peers[i].cluster);
    (void)saver_end();
    free(peers);
    loop_free(loop);
    config_free(config);
    return status;
}
