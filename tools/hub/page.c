/*
 * What `blkin hub` tells of itself.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "page.h"

#include "tools/base/say.h"
#include "tools/base/totals.h"

#include <inttypes.h>
#include <stddef.h>

/* In the order of the struct. */
static const struct total host_metrics[] = {
    {"posted", offsetof(struct host_counts, posted),
     "Messages that the host has posted; the sum of the next four."},
    {"accepted", offsetof(struct host_counts, accepted), "Posted messages that go to others."},
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

/* ---- status ---------------------------------------------------------------------------------- */

static json_t *hub_page_host_json(const struct host *host)
{
    json_t *object = totals_own_json(&host_table, &host->counts);

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
    return json_pack("{ss, ss, ss, sI, s{sI, sI, sI}, sI, sI, sI, sI, sI, so, so}", "state",
                     "serving", "url", url, "boot", board->boot, "traces_per_s",
                     (json_int_t)board->cap.traces_per_s, "messages_held", "count",
                     (json_int_t)(board->next - board->oldest), "bytes", (json_int_t)board->bytes,
                     "last", (json_int_t)board->next - 1, "connections",
                     (json_int_t)server_connections(server), "unauthorized",
                     (json_int_t)counts->unauthorized, "malformed", (json_int_t)counts->malformed,
                     "limited", (json_int_t)counts->limited, "hung_up", (json_int_t)counts->hung_up,
                     "hosts", hosts, "forgotten", totals_own_json(&host_table, &board->gone));
}

/* ---- Prometheus ------------------------------------------------------------------------------ */

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

char *hub_page(const struct board *board, const struct server *server)
{
    const struct server_counts *counts = server_counts(server);
    struct printer printer = {.has_failed = false};

    print_metric(&printer, "blkin_hub_hosts", "gauge", "Hosts whose recorder is there.",
                 board->there_count);
    print_metric(&printer, "blkin_hub_connections", "gauge", "Open connections.",
                 server_connections(server));
    print_metric(&printer, "blkin_hub_held_messages", "gauge", "Messages of the last minute.",
                 board->next - board->oldest);
    print_metric(&printer, "blkin_hub_held_bytes", "gauge", "Memory that they take.", board->bytes);
    print_metric(&printer, "blkin_hub_messages_total", "counter", "Messages that were accepted.",
                 board->next - 1);
    print_metric(&printer, "blkin_hub_requests_total", "counter", "Requests.", counts->requests);
    print_metric(&printer, "blkin_hub_unauthorized_total", "counter",
                 "Requests without the right token or certificate.", counts->unauthorized);
    print_metric(&printer, "blkin_hub_malformed_total", "counter",
                 "Requests that were wrong otherwise.", counts->malformed);
    print_metric(&printer, "blkin_hub_limited_total", "counter",
                 "Posts of hosts that post too much.", counts->limited);
    print_metric(&printer, "blkin_hub_hung_up_total", "counter",
                 "Connections that were too many, or too slow.", counts->hung_up);
    for (size_t i = 0; i < host_table.count; i++)
        print_of_hosts(&printer, board, &host_table.own[i]);
    return print_end(&printer);
}
