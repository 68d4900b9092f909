/*
 * What `blkin hub` tells of itself.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "page.h"

#include "tools/base/say.h"

#include <inttypes.h>
#include <stddef.h>
#include <unistd.h>

struct metric {
    const char *name, *help;
    size_t offset; /* in struct host_counts */
};

/* In the order of the struct. */
static const struct metric metrics[] = {
    {"posted", "Messages that the host has posted; the sum of the next four.",
     offsetof(struct host_counts, posted)},
    {"accepted", "Posted messages that others are given.", offsetof(struct host_counts, accepted)},
    {"doubles", "Posted messages that were there already.", offsetof(struct host_counts, doubles)},
    {"refused", "Posted messages of a wrong form.", offsetof(struct host_counts, refused)},
    {"capped", "Posted messages of which hub-traces-per-s let no trace pass.",
     offsetof(struct host_counts, capped)},
    {"dropped_traces", "Traces that the host has asked for beyond hub-traces-per-s.",
     offsetof(struct host_counts, dropped_traces)},
    {"delivered", "Messages that the host was given.", offsetof(struct host_counts, delivered)},
    {"missed", "Messages that were gone before the host came for them.",
     offsetof(struct host_counts, missed)},
};

#define METRICS (sizeof(metrics) / sizeof(metrics[0]))

static uint64_t hub_page_count_of(const struct host_counts *counts, size_t i)
{
    return *(const uint64_t *)((const char *)counts + metrics[i].offset);
}

/* ---- status ---------------------------------------------------------------------------------- */

static json_t *counts_json(const struct host_counts *counts)
{
    json_t *object = json_object();

    for (size_t i = 0; i < METRICS; i++)
        (void)json_object_set_new(object, metrics[i].name,
                                  json_integer((json_int_t)hub_page_count_of(counts, i)));
    return object;
}

static json_t *hub_page_host_json(const struct host *host)
{
    json_t *object = counts_json(&host->counts);

    (void)json_object_set_new(object, "state", json_string(host->is_there ? "there" : "away"));
    (void)json_object_set_new(object, "since", json_time(host->since_ns));
    return object;
}

json_t *hub_json(const struct board *board, const struct server *server, const char *url)
{
    const struct server_counts *counts = server_counts(server);
    json_t *hosts = json_object();
    const struct host *host;

    table_for_each(host, &board->hosts, in_table)
    {
        if (host_is_shown(host))
            (void)json_object_set_new(hosts, host->name, hub_page_host_json(host));
    }
    return json_pack(
        "{ss, ss, sI, ss, ss, ss, sI, s{sI, sI, sI}, sI, sI, sI, sI, sI, so, so, so}", "mode",
        "hub", "version", BLKIN_RELEASE, "pid", (json_int_t)getpid(), "state", "serving", "url",
        url, "boot", board->boot, "traces_per_s", (json_int_t)board->cap.traces_per_s,
        "messages_held", "count", (json_int_t)(board->next - board->oldest), "bytes",
        (json_int_t)board->bytes, "last", (json_int_t)board->next - 1, "connections",
        (json_int_t)server_connections(server), "unauthorized", (json_int_t)counts->unauthorized,
        "malformed", (json_int_t)counts->malformed, "limited", (json_int_t)counts->limited,
        "hung_up", (json_int_t)counts->hung_up, "hosts", hosts, "forgotten",
        counts_json(&board->gone), "messages", say_last());
}

/* ---- Prometheus ------------------------------------------------------------------------------ */

static void print_head(struct printer *printer, const char *name, const char *kind,
                       const char *help)
{
    print(printer, "# HELP blkin_hub_%s %s\n# TYPE blkin_hub_%s %s\n", name, help, name, kind);
}

static void print_one(struct printer *printer, const char *name, const char *kind, const char *help,
                      uint64_t value)
{
    print_head(printer, name, kind, help);
    print(printer, "blkin_hub_%s %" PRIu64 "\n", name, value);
}

static void print_metric(struct printer *printer, const struct board *board, size_t i)
{
    const struct host *host;
    char name[64];

    (void)snprintf(name, sizeof(name), "host_%s_total", metrics[i].name);
    print_head(printer, name, "counter", metrics[i].help);
    table_for_each(host, &board->hosts, in_table)
    {
        if (host_is_shown(host))
            print(printer, "blkin_hub_%s{host=\"%s\"} %" PRIu64 "\n", name, host->name,
                  hub_page_count_of(&host->counts, i));
    }
}

char *hub_page(const struct board *board, const struct server *server)
{
    const struct server_counts *counts = server_counts(server);
    struct printer printer = {.has_failed = false};

    print_one(&printer, "hosts", "gauge", "Hosts whose recorder is there.", board->there_count);
    print_one(&printer, "connections", "gauge", "Open connections.", server_connections(server));
    print_one(&printer, "held_messages", "gauge", "Messages of the last minute.",
              board->next - board->oldest);
    print_one(&printer, "held_bytes", "gauge", "Memory that they take.", board->bytes);
    print_one(&printer, "messages_total", "counter", "Messages that were accepted.",
              board->next - 1);
    print_one(&printer, "requests_total", "counter", "Requests.", counts->requests);
    print_one(&printer, "unauthorized_total", "counter",
              "Requests without the right token or certificate.", counts->unauthorized);
    print_one(&printer, "malformed_total", "counter", "Requests that were wrong otherwise.",
              counts->malformed);
    print_one(&printer, "limited_total", "counter", "Posts of hosts that post too much.",
              counts->limited);
    print_one(&printer, "hung_up_total", "counter", "Connections that were too many, or too slow.",
              counts->hung_up);
    for (size_t i = 0; i < METRICS; i++)
        print_metric(&printer, board, i);
    return print_end(&printer);
}
