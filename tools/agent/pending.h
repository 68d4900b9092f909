/*
 * The pending set: requests that wait for a scan.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_PENDING_H
#define BLKIN_TOOLS_PENDING_H

#include "request.h"

struct pending {
    struct request *list;  /* in order of arrival */
    struct request *taken; /* requests of the current scan; the callers of pending_take() set it */
    size_t traces;         /* number of traces of the list */
    size_t max;            /* the most traces */
};

/* Returns the number of traces that may be added. A reload may have lowered the limit below the
 * number of traces; then the result is 0. */
size_t pending_room(const struct pending *pending);

/*
 * Takes the request. Leaves out its traces beyond max, and returns their number. Adds a request
 * without traces, too, so that it gets an answer.
 */
size_t pending_add(struct pending *pending, struct request *request);

/* Returns true if a request of that host wants the trace. host NULL: of any host. */
bool pending_has(const struct pending *pending, struct trace_id id, const char *host);

/* Returns the time when the first request is due; INT64_MAX: there is none. is_last: of the
 * requests for windows; false: of the requests that name traces. */
int64_t pending_due_ms(const struct pending *pending, bool is_last);
/* Returns the number of requests for windows. */
size_t pending_last_count(const struct pending *pending);

/* Returns true if a look waits (joins.h). Requests that name traces may depend on its result. */
bool pending_has_look(const struct pending *pending);

/* Takes the due requests for one scan. is_last false: all requests that name traces. is_last true:
 * the first request for a window, and all requests whose windows overlap. The caller frees the
 * list. NULL: no request is due. */
struct request *pending_take(struct pending *pending, int64_t now_ms, bool is_last);

/* Makes all requests due now. */
void pending_hurry(struct pending *pending, int64_t now_ms);

#endif
