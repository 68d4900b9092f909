/*
 * Statistics on demand.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "live_statistics.h"

#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/model/calls.h"
#include "babeltrace-plugin/model/open_traces.h"
#include "statistics_document.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* a child comes before its parent, except for delays in other processes' buffers */
#define LIVE_QUIET_MS        2000
#define TRACES_BYTES         ((size_t)64 << 20)
#define LIVE_TRACE_SPANS_MAX 10000
#define LIVE_NAMES_MAX       65536
#define LIVE_NAMES_BYTES     ((size_t)16 << 20)
#define HISTOGRAM_BYTES      ((size_t)64 << 20)

struct live_statistics {
    int64_t begin_ns; /* since 1970 */
    int64_t now_ms;
    struct names *names;
    struct statistics *statistics;
    struct open_traces *traces;
    bool is_starved;
};

static void live_statistics_close(void *context, const struct closed_trace *closed)
{
    struct live_statistics *live = context;

    if (!closed->is_linked || !statistics_add_rest(live->statistics, closed->model))
        live->is_starved = true;
}

struct live_statistics *live_statistics_new(void)
{
    struct live_statistics *live = calloc(1, sizeof(*live));

    if (!live)
        return NULL;
    live->begin_ns = wall_clock_ns();
    live->now_ms = clock_ms();
    live->names = names_new(LIVE_NAMES_MAX, LIVE_NAMES_BYTES);
    live->statistics = live->names ? statistics_new(live->names) : NULL;
    live->traces = open_traces_new(&(struct open_traces_options){.quiet = LIVE_QUIET_MS,
                                                                 .max_bytes = TRACES_BYTES,
                                                                 .max_spans = LIVE_TRACE_SPANS_MAX,
                                                                 .close = live_statistics_close,
                                                                 .context = live});
    if (live->statistics && live->traces)
        return live;
    live_statistics_free(live);
    return NULL;
}

void live_statistics_free(struct live_statistics *live)
{
    if (!live)
        return;
    open_traces_free(live->traces);
    statistics_free(live->statistics);
    names_free(live->names);
    free(live);
}

void live_statistics_add(struct live_statistics *live, const struct span *span)
{
    const struct trace_span added = trace_span_of(span, live->names);

    if (!statistics_add_span(live->statistics, &added) ||
        !open_traces_add(live->traces, span->trace_id_high, span->trace_id, &added, 0,
                         live->now_ms))
        live->is_starved = true;
}

bool live_statistics_advance(struct live_statistics *live, int64_t now_ms)
{
    live->now_ms = now_ms;
    open_traces_advance(live->traces, now_ms);
    return !live->is_starved && statistics_bytes(live->statistics) < HISTOGRAM_BYTES;
}

void live_statistics_close_traces(struct live_statistics *live)
{
    (void)open_traces_close_some(live->traces, UINT64_MAX);
}

char *live_statistics_text(const struct live_statistics *live)
{
    const struct open_traces_counts traces = open_traces_counts(live->traces);
    const int64_t now_ns = wall_clock_ns();
    struct printer printer = {.has_failed = false};
    char from[DATE_MAX] = "", to[DATE_MAX] = "";

    (void)date_write(live->begin_ns, from);
    (void)date_write(now_ns, to);
    print(&printer,
          "{\"blkin\":\"statistics\",\"version\":\"" BLKIN_RELEASE "\",\"source\":\"%ld-%" PRId64
          "\",\"from\":\"%s\",\"to\":\"%s\"",
          (long)getpid(), live->begin_ns, from, to);
    print(&printer, ",\"seconds\":%.3f,\"scale\":%d", (double)(now_ns - live->begin_ns) / 1e9,
          HISTOGRAM_SCALE);
    statistics_print_count(&printer, ",\"traces\":", traces.complete);
    statistics_print_count(&printer, ",\"traces_early\":", traces.early);
    statistics_print_count(&printer, ",\"traces_open\":", traces.open);
    statistics_print(&printer, live->statistics);
    print_string(&printer, "}\n");
    return print_end(&printer);
}
