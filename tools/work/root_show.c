/*
 * What the root shows.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "root_show.h"

#include "tools/base/say.h"
#include "tools/base/show_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define ONCE_LIMIT_MS 30000 /* without anything new */

/* ---- as JSON --------------------------------------------------------------------------------- */

static json_t *root_workers_json(const struct merged *merged)
{
    const int64_t now_ns = wall_clock_ns();
    json_t *list = json_array();

    for (size_t i = 0; i < merged->worker_count; i++) {
        const struct merged_worker *worker = &merged->workers[i];
        const struct work_counts *counts = &worker->counts;
        const bool is_there = worker_is_there(worker, now_ns);

        (void)json_array_append_new(
            list,
            json_pack(
                "{ss, ss, so, so, so, sI, sI, sI}", "worker", worker->instance, "state",
                is_there ? "there" : "away", "heard", json_time(worker->heard_ns), "busy_percent",
                is_there ? json_real(round(counts->busy * 1000) / 10) : json_null(), "behind_s",
                is_there ? json_real(round(counts->behind_s * 10) / 10) : json_null(), "counted",
                (json_int_t)counts->spans_counted, "late", (json_int_t)counts->spans_late, "kept",
                (json_int_t)counts->spans_kept));
    }
    return list;
}

json_t *root_summary_json(const struct root_deltas *deltas)
{
    const struct merged *merged = deltas->merged;

    return json_pack("{ss, so, so, sI, sI, sI, sI, sI, so}", "topic", deltas->url.shown, "from",
                     json_time(merged->from_ns), "to", json_time(merged->to_ns), "rows",
                     (json_int_t)statistics_rows(merged->statistics), "edges",
                     (json_int_t)statistics_edges(merged->statistics), "deltas",
                     (json_int_t)merged->messages, "refused", (json_int_t)merged->refused, "gaps",
                     (json_int_t)merged->gaps, "workers", root_workers_json(merged));
}

json_t *root_figures_json(const struct merged *merged)
{
    const int64_t now_ns = wall_clock_ns();
    json_t *list = json_array();

    for (size_t i = 0; i < merged->worker_count; i++) {
        const struct merged_worker *worker = &merged->workers[i];

        (void)json_array_append_new(
            list, json_pack("{ss, sb, sf, sf}", "instance", worker->instance, "is_there",
                            worker_is_there(worker, now_ns), "busy_ratio", worker->counts.busy,
                            "behind_seconds", worker->counts.behind_s));
    }
    return json_pack("{so}", "workers", list);
}

/* ---- once ------------------------------------------------------------------------------------ */

static bool root_print(const struct root_deltas *deltas, bool is_json)
{
    char *document = is_json ? merged_document(deltas->merged, wall_clock_ns()) : NULL;
    json_t *summary = is_json ? NULL : root_summary_json(deltas);

    if (document)
        (void)fputs(document, stdout);
    else if (summary)
        show_json(summary);
    free(document);
    json_decref(summary);
    return (document || summary) && fflush(stdout) == 0 && !ferror(stdout);
}

int root_once(struct root_deltas *deltas, int64_t since_ns, bool is_json)
{
    struct error error = {"cannot write"};
    const bool is_right = root_deltas_read(deltas, since_ns, &error) &&
                          topic_read_all(deltas->topic, ONCE_LIMIT_MS, NULL, &error) &&
                          root_print(deltas, is_json);

    if (!is_right)
        say(BK7043, "%s", error.text);
    return is_right ? 0 : 1;
}
