/*
 * Stands for an agent that only sends and receives messages (cluster.h). Lines of the standard
 * input tell what to send. The standard output has a line for each received message.
 *
 *     peer [--answer] --name=NAME --cluster=URL ...
 *
 * Input:
 *
 *     want N [BYTES]  sends N wants of at least BYTES bytes
 *     load RATE       sends RATE wants a second from now on
 *     json            prints J and cluster_json()
 *
 * Output, flushed after each line:
 *
 *     P ID       the peer has sent a want of this id
 *     R ID       the peer got a want
 *     O ID       the peer got a want of a host that has used up its share
 *     A ID FROM  the peer got an answer
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

static struct loop *loop;
static const char *peer_name = "peer";
static struct cluster *cluster;
static int64_t number; /* of the last want */
static bool answers;
static struct {
    struct timer timer;
    int rate; /* 0: no load */
    int64_t begin_ns, sent;
} load;
static struct watched input;
static char lines[1 << 21];
static size_t filled;

static void stop(void *context)
{
    (void)context;
    loop_stop(loop);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void send_want(size_t bytes)
{
    char id[400], trace[33];
    char *pad = calloc(1, bytes + 1);
    json_t *message;

    memset(pad, 'x', bytes);
    number++;
    snprintf(id, sizeof(id), "%s:%d:%" PRId64, peer_name, (int)getpid(), number);
    snprintf(trace, sizeof(trace), "%016x%016x", (unsigned)getpid(), (unsigned)number);
    message = json_pack("{ss, ss, ss, sI, ss, s[{ss, ss}]}", "type", "keep", "id", id, "host",
                        peer_name, "at", (json_int_t)wall_clock_ns(), "pad", pad, "traces", "id",
                        trace, "why", "test");
    printf("P %s\n", id);
    cluster_send(cluster, message);
    json_decref(message);
    free(pad);
}

static void send_answer(const json_t *request)
{
    json_t *message = json_pack(
        "{ss, sO, ss, sO, sI, s[]}", "type", "found", "id", json_object_get(request, "id"), "host",
        peer_name, "to", json_object_get(request, "host"), "held_from", (json_int_t)1, "traces");

    cluster_send(cluster, message);
    json_decref(message);
}

static void send_load(void *context)
{
    const int64_t due = (wall_clock_ns() - load.begin_ns) * load.rate / 1000000000;

    (void)context;
    for (; load.sent < due; load.sent++)
        send_want(0);
    if (load.rate)
        timer_set(loop, &load.timer, load.rate < 500 ? 1000 / load.rate : 1);
}

/* ---- receiving ------------------------------------------------------------------------------- */

static const char *text(const json_t *message, const char *member)
{
    return json_string_value(json_object_get(message, member));
}

static void got(void *context, const json_t *message, bool over)
{
    const char *type = text(message, "type"), *id = text(message, "id");

    (void)context;
    if (strcmp(type, "keep") != 0) {
        printf("A %s %s\n", id, text(message, "host"));
        return;
    }
    printf("%c %s\n", over ? 'O' : 'R', id);
    if (answers && !over)
        send_answer(message);
}

static void got_config(void *context, const char *config)
{
    (void)context;
    (void)config;
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void obey(const char *line)
{
    int wants = 0, bytes = 0;

    if (sscanf(line, "want %d %d", &wants, &bytes) >= 1) {
        for (int i = 0; i < wants; i++)
            send_want((size_t)bytes);
    } else if (sscanf(line, "load %d", &load.rate) == 1) {
        load.begin_ns = wall_clock_ns();
        load.sent = 0;
        send_load(NULL);
    } else if (strcmp(line, "json") == 0) {
        json_t *json = cluster_json(cluster);
        char *dump = json_dumps(json, JSON_COMPACT);

        printf("J %s\n", dump);
        free(dump);
        json_decref(json);
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

int main(int argc, char *argv[])
{
    const struct loop_signals signals = {stop, stop, NULL};
    const struct cluster_callbacks callbacks = {got, got_config, NULL};
    const struct config_flag flags[] = {
        {"name", NULL, &peer_name}, {"answer", &answers, NULL}, {NULL, NULL, NULL}};
    const struct config_request request = {
        .section = "agent", .usage = "usage: peer\n", .flags = flags};
    struct error error;
    char file[4096];
    int status;
    struct config *config = config_read(&request, argc, argv, &status);

    if (!config)
        return status;
    say_open("peer", "info");
    setvbuf(stdout, NULL, _IOLBF, 0);
    loop = loop_new(&signals);
    if (!saver_open(loop))
        return 1;
    (void)snprintf(file, sizeof(file), "%s/%.255s.hosts", config_text(config, "state-dir"),
                   peer_name);
    cluster = cluster_open(loop, config, peer_name, file, &callbacks, &error);
    if (!cluster) {
        fprintf(stderr, "peer: %s\n", error.text);
        status = 1;
    } else {
        (void)fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
        input = (struct watched){0, POLLIN, read_orders, NULL, NULL, 0};
        loop_watch(loop, &input);
        load.timer = (struct timer){.due = send_load};
        (void)loop_run(loop);
        timer_clear(loop, &load.timer);
    }
    cluster_close(cluster);
    (void)saver_end();
    loop_free(loop);
    config_free(config);
    return status;
}
