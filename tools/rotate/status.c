/*
 * What `blkin rotate` tells of itself.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "status.h"

#include "babeltrace-plugin/account/prometheus.h"
#include "babeltrace-plugin/base/http_url.h"
#include "babeltrace-plugin/base/printer.h"
#include "tools/base/metrics.h"
#include "tools/base/reader_account.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const states[] = {
    [KEEP_RECORDS] = "recording",
    [KEEP_NO_DAEMON] = "no session daemon",
    [KEEP_NO_CONSUMER] = "no consumer daemon",
    [KEEP_FAILED] = "no session",
};

static int64_t oldest_age_s(const struct store *store)
{
    const int64_t age_s =
        store->count ? (wall_clock_ns() - store->chunks[0].closed_ns) / 1000000000 : 0;

    return age_s > 0 ? age_s : 0;
}

/* What is lost is a problem, also while LTTng records. */
static const char *problem_of(const struct rotate_status *status, bool records)
{
    if (!records)
        return status->report->error.text;
    return status->dropped_ns ? "the oldest chunks were deleted unread for want of disk: see "
                                "chunks_dropped, and give the folder output more room"
                              : NULL;
}

static json_t *endpoint_json(const char *endpoint)
{
    char *shown = endpoint_shown(endpoint ? endpoint : "");
    json_t *text = shown ? json_string(shown) : NULL;

    free(shown);
    return text;
}

static json_t *chunks_json(const struct rotate_status *status)
{
    const struct store *store = status->store;

    return json_pack("{ss, sI, sI, sI, sI, ss, sI}", "output", store->output, "waiting",
                     (json_int_t)store->count, "bytes", (json_int_t)store->bytes, "oldest_age_s",
                     (json_int_t)oldest_age_s(store), "dropped_at_ns",
                     (json_int_t)status->dropped_ns, "converting", status->current, "saving_ms",
                     (json_int_t)saver_busy_ms());
}

static json_t *lttng_json(const struct keep_report *report)
{
    return json_pack("{sI, sI}", "discarded_events", (json_int_t)report->discarded_events,
                     "lost_packets", (json_int_t)report->lost_packets);
}

json_t *status_json(const struct rotate_status *status)
{
    const struct keep_report *report = status->report;
    const bool records = status->has_looked && report->state == KEEP_RECORDS;

    return json_pack("{ss, ss, ss*, so, so, so, so, so, so}", "state",
                     status->has_looked ? states[report->state] : "starting", "session",
                     records ? report->session : "", "problem", problem_of(status, records),
                     "endpoint", endpoint_json(status->endpoint), "chunks", chunks_json(status),
                     "totals", totals_own_json(&rotate_table, status->totals), "lttng",
                     lttng_json(report), "host_metrics", host_child_json(status->host), "counters",
                     counts_json(&status->counts));
}

static void print_own(struct printer *printer, const struct rotate_status *status)
{
    const bool records = status->has_looked && status->report->state == KEEP_RECORDS;

    print_metric(printer, "blkin_rotate_recording", "gauge", "1: a session of LTTng records.",
                 records);
    print_metric(printer, "blkin_rotate_chunks_waiting", "gauge",
                 "Closed chunks that are not converted yet.", status->store->count);
    print_metric(printer, "blkin_rotate_bytes_waiting", "gauge", "Bytes of them.",
                 status->store->bytes);
    print_metric(printer, "blkin_rotate_oldest_age_seconds", "gauge",
                 "Since the oldest of them was closed.", (uint64_t)oldest_age_s(status->store));
    totals_own_print(printer, &rotate_table, status->totals);
}

char *status_page(const struct rotate_status *status)
{
    struct printer printer = {.has_failed = false};

    print_own(&printer, status);
    return metrics_page(&status->counts, status->endpoint, print_end(&printer));
}

void status_print(const struct rotate_totals *totals)
{
    totals_say(&totals->readers, &rotate_table, totals, "chunks_converted");
}
