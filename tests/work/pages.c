/*
 * pages SECONDS: the page of three hosts that are made up, with all groups that there are, after so
 * many seconds.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/hosts/host_board.h"
#include "tools/host/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void sample_group(struct host_board *board, const char *host, enum host_kind kind,
                         const char *instance, int64_t time_ns, uint64_t second)
{
    const struct host_definition *definition = host_definition(kind);
    struct sample_metric metrics[HOST_METRICS_MAX];
    uint64_t values[HOST_METRICS_MAX];
    const struct sample sample = {
        .host = text_of(host),
        .group = text_of(definition->name),
        .instance = text_of(instance),
        .time_ns = time_ns,
        .period_ms = 1000,
        .count = definition->count,
        .metrics = metrics,
        .values = values,
        .present = UINT64_MAX,
    };

    for (size_t i = 0; i < definition->count; i++) {
        const struct host_metric *metric = &definition->metrics[i];
        const uint64_t step = strcmp(metric->unit, "ns") == 0 ? 100000000 : 10;

        metrics[i] = (struct sample_metric){text_of(metric->name), text_of(metric->unit),
                                            metric->is_counter};
        values[i] = metric->is_counter ? second * step * (i + 1) : 1000 - i;
    }
    host_board_take(board, &sample);
}

int main(int argc, char *argv[])
{
    static const char *const hosts[] = {"web-1", "osd-1", "osd-2"};
    static const char *const instances[HOST_KINDS] = {[HOST_DISK] = "vda",
                                                      [HOST_NETWORK] = "eth0",
                                                      [HOST_PROCESS] = "redis-server[123]",
                                                      [HOST_CGROUP] = "system.slice/x.service"};
    const uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 60;
    const int64_t now_ns = (int64_t)time(NULL) * 1000000000;
    struct error error;
    struct host_board *board = host_board_new(true, "all=*;osd=osd-*", &error);
    char *page;

    for (uint64_t i = 0; i <= 60; i++) {
        for (int k = 0; k < 3 * HOST_KINDS; k++) {
            const enum host_kind kind = (enum host_kind)(k % HOST_KINDS);

            sample_group(board, hosts[k / HOST_KINDS], kind, instances[kind] ? instances[kind] : "",
                         now_ns - (int64_t)(60 - i) * 1000000000, seconds + i);
        }
    }
    page = host_board_page(board);
    if (!page)
        return 1;
    fputs(page, stdout);
    free(page);
    host_board_free(board);
    return 0;
}
