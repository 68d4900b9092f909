/*
 * What `blkin keep` found, as a table or as JSON.
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
    size_t count;               /* 0: what the last milliseconds had */
    int64_t last_ms;
    const char *service; /* NULL: of all */
    int64_t asked_ns;    /* since 1970 */
};

/*
 * answer: of the recorder to "kept ID":
 *
 *   {"id", "done": bool, "traces": [{"id", "spans", "missing": n, "hosts": [...]}],
 *    "hosts": [{"host", "state": "answered|waiting|away", "spans", "held_from", "error"}]}
 *
 * held_from: "2026-11-21T11:33:27.981Z", or null: nothing is held. error may be missing.
 *
 * Names in it are of other hosts, and any text. Both return whether all that was asked for was
 * found, and whole.
 */
bool report_table(const struct keep_question *question, json_t *answer);
bool report_json(const struct keep_question *question, json_t *answer);

#endif
