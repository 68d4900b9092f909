/*
 * Checks of what `blkin record` tells of itself: how long its ring lasts, the hub, and what was
 * dropped.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WELL_S 10 /* for a hub's way, and a person who types */

/* From a slow span's end to the copy of the rings. */
static int64_t needed_s(const struct doctor *doctor)
{
    static const char *const parts[] = {"alarm-poll-ms", "linger-ms", "fetch-interval-ms"};
    int64_t ms = 1000;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        ms += config_integer(doctor->config, parts[i]);
    return (ms + 999) / 1000;
}

/* As measured: the size of the rings that programs have, and what they write. */
static void check_ring(const struct doctor *doctor, const json_t *status)
{
    const json_t *rings = json_object_get(status, "rings");
    const int64_t holds_s = number_in(rings, "holds_s");
    const int64_t wanted_s = config_integer(doctor->config, "seconds");
    const int64_t well_s = wanted_s ? wanted_s : WELL_S;

    if (number_in(rings, "refused"))
        saw(doctor, LEVEL_NOTE, "ring.refused",
            "programs were given no rings %" PRId64 " times: ring-users, rings-max-bytes, or there "
            "is no memory",
            number_in(rings, "refused"));
    if (holds_s == 0) {
        saw(doctor, LEVEL_OK, "ring.seconds", "nothing was recorded of late, so the rings last");
        return;
    }
    if (holds_s >= well_s) {
        saw(doctor, LEVEL_OK, "ring.seconds", "the rings hold %" PRId64 " s, at the rate of now",
            holds_s);
        return;
    }
    saw(doctor, holds_s < needed_s(doctor) ? LEVEL_BAD : LEVEL_NOTE, "ring.seconds",
        "the rings hold only %" PRId64 " s, at the rate of now (%" PRId64
        " KiB/s): a slow span is fetched %" PRId64 " s after its end",
        holds_s, number_in(rings, "bytes_per_s") / 1024, needed_s(doctor));
    mend(doctor, "a larger ring-bytes in blkin.conf, or seconds = %d, then blkin reload", WELL_S);
}

static void check_hub(const struct doctor *doctor, const json_t *status)
{
    const json_t *exchange = json_object_get(status, "exchange");
    const char *url = json_string_value(json_object_get(exchange, "url"));
    const char *state = json_string_value(json_object_get(exchange, "state"));
    const char *error = json_string_value(json_object_get(exchange, "error"));

    if (!url || !state)
        return;
    if (strcmp(state, "connected") == 0) {
        saw(doctor, LEVEL_OK, "hub.answers", "%s answers; recorders there: %zu", url,
            json_array_size(json_object_get(exchange, "hosts")));
        return;
    }
    saw(doctor, LEVEL_BAD, "hub.answers", "%s is away: %s: other hosts are not asked", url,
        error && *error ? error : "no answer yet");
    mend(doctor, "systemctl start blkin-hub on that host; hub in blkin.conf, from %s",
         config_origin(doctor->config, "hub"));
}

static void check_dropped(const struct doctor *doctor, const json_t *status)
{
    static const struct count_name counts[] = {
        {"alarms_lost", "alarms overwritten"},
        {"alarms_newer", "alarms of a newer version: upgrade blkin here"},
        {"alarms_held_back", "held back by programs (max=)"},
        {"alarms_dropped", "beyond fetch-traces"},
        {"traces_dropped", "of others beyond it"},
        {"traces_incomplete", "traces incomplete"},
        {"traces_undelivered", "traces not delivered"},
    };
    const json_t *totals = json_object_get(status, "totals");
    char said[400] = "";

    list_counts(said, sizeof(said), totals, counts, sizeof(counts) / sizeof(counts[0]));
    if (!*said) {
        saw(doctor, LEVEL_OK, "service.loss", "no alarm was dropped, no trace incomplete");
        return;
    }
    saw(doctor, LEVEL_NOTE, "service.loss", "of all runs: %s", said);
    mend(doctor, "what to do about each is in doc/recorder.md, \"What is lost when\"");
}

void check_recorder(const struct doctor *doctor, const json_t *status)
{
    check_ring(doctor, status);
    check_hub(doctor, status);
    check_dropped(doctor, status);
}
