/*
 * Prints the traces that `blkin keep` found, as a table or as JSON.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_KEEP_REPORT_H
#define BLKIN_TOOLS_KEEP_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEEP_IDS_MAX 100

struct keep_question {
    char ids[KEEP_IDS_MAX][33]; /* 16 or 32 digits */
    size_t count;               /* 0: the question is about the last last_ms milliseconds */
    int64_t last_ms;
    const char *service; /* NULL: all services */
    int64_t asked_ns;    /* since 1970 */
};

/*
 * answer: the recorder's answer to the request "kept ID":
 *
 *   {"id", "done": bool, "traces": [{"id", "spans", "missing": n, "hosts": [...]}],
 *    "hosts": [{"host", "state": "answered|waiting|away", "spans", "held_from", "error"}]}
 *
 * held_from: "2026-11-21T11:33:27.981Z", or null if the rings are empty. error may be missing.
 * Names come from other hosts, and may be any text.
 *
 * Both functions return whether all wanted traces were found, and are complete.
 */
bool report_table(const struct keep_question *question, json_t *answer);
bool report_json(const struct keep_question *question, json_t *answer);

#endif
