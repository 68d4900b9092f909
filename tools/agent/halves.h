/*
 * Halves of requests between programs that send each other no ids
 * (babeltrace-plugin/stages/join.h): a list of them, and the text of a half in a message of the
 * cluster.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HALVES_H
#define BLKIN_TOOLS_HALVES_H

#include "babeltrace-plugin/stages/join.h"
#include "trace_id.h"

#include <jansson.h>

struct halves {
    struct join_half *list;
    size_t count, room;
};

void halves_free(struct halves *halves);

/* Appends a copy. Returns false when out of memory. */
bool halves_add(struct halves *halves, const struct join_half *half);

/* Is the half of the trace? */
bool half_is_of(const struct join_half *half, struct trace_id id);

/* Returns the half as a text: "c" or "s" and nine numbers of 16 hex digits. They are key, network,
 * bytes of request and answer, both halves of the trace's id, the span's id, begin and end in ns
 * since 1970. */
json_t *half_json(const struct join_half *half);
bool half_read(const json_t *text, struct join_half *half); /* false: it has another form */

/* ---- halves that are known for a while ------------------------------------------------------- */

#define HALF_SET_MAX 65536

struct known_half {
    struct join_half half; /* its link: by the key */
    int64_t until_ms;
};

struct half_set {
    struct table halves;
};

bool half_set_init(struct half_set *set); /* false: out of memory */
void half_set_free(struct half_set *set);

/* Returns false if the half is there already, or if there is no room for it. */
bool half_set_add(struct half_set *set, const struct join_half *half, int64_t until_ms);

void half_set_forget(struct half_set *set, int64_t now_ms);

/* Returns a stage that has decided with all halves, for join_stage_place(); NULL: out of memory. */
struct stage *half_set_decide(const struct half_set *set, int64_t skew_ns);

#endif
