/*
 * The pending set: requests that wait for a snapshot.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_PENDING_H
#define BLKIN_TOOLS_PENDING_H

#include "request.h"

struct pending {
    struct request *list;  /* as they came */
    struct request *taken; /* whose snapshot is under way; for those who take them */
    size_t traces;         /* of all of them */
    size_t max;            /* the most traces */
};

/* For so many traces; a reload may have made the most less than there are. */
size_t pending_room(const struct pending *pending);

/*
 * Takes the request. What is beyond max of its traces is left out: returns how many. One without
 * any trace is there nevertheless, so that it is answered.
 */
size_t pending_add(struct pending *pending, struct request *request);

/* Is the trace wanted by a request of this host, or of any (NULL)? */
bool pending_has(const struct pending *pending, struct trace_id id, const char *host);

/* When the first one is due, of those that want all of a time or of the others; INT64_MAX: there is
 * none. */
int64_t pending_due_ms(const struct pending *pending, bool is_last);
/* Those that want all of a time. */
size_t pending_last_count(const struct pending *pending);

/* Does a look wait (joins.h)? What is wanted by name may wait for it. */
bool pending_has_look(const struct pending *pending);

/* All that are due: either such that name traces, or the first of those that want all of a time
 * with those whose times overlap: one snapshot is for all of them. A list, the caller's; NULL: none
 * is. */
struct request *pending_take(struct pending *pending, int64_t now_ms, bool is_last);

/* From now on no request waits. */
void pending_hurry(struct pending *pending, int64_t now_ms);

#endif
