/*
 * The cap on what all recorders together ask each other for: hub-traces-per-s. The hub holds it; in
 * a topic nobody does, so each recorder applies it to all that it reads, which is the same, in the
 * same order, for all of them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CAP_H
#define BLKIN_TOOLS_CAP_H

#include "seen.h"

#include <jansson.h>
#include <stdint.h>

struct cap {
    int64_t traces_per_s;
    double allowance;   /* traces that may be asked for now */
    int64_t allowed_ms; /* as of then */
    struct seen asked;  /* traces: to ask for one again costs nothing */
};

void cap_open(struct cap *cap, int64_t traces_per_s, int64_t now_ms);
void cap_close(struct cap *cap);

/*
 * What it lets pass of a message "keep" (exchange.h): the message itself, another one with fewer
 * traces, or NULL; the reference is the caller's. *dropped: NULL, or a new array of the ids that do
 * not pass, which is empty where a request for all of the last seconds does not.
 */
json_t *cap_part(struct cap *cap, const json_t *message, int64_t now_ms, json_t **dropped);

#endif
