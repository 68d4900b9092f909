/*
 * The pending set: requests that wait for a snapshot.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_PENDING_H
#define BLKIN_TOOLS_PENDING_H

#include "request.h"

struct pending {
    struct request *list;  /* in order of arrival */
    struct request *taken; /* requests of the current scan; the callers of pending_take() set it */
    size_t traces;         /* of all of them */
    size_t max;            /* the most traces of each asker; other hosts and persons are one */
    int64_t rest_ms;       /* as struct asker has it: of other hosts and persons */
};

/* The number of traces that the asker may add. 0 also if a reload has set a lower limit than there
 * are. */
size_t pending_room(const struct pending *pending, const struct asker *asker);

/*
 * Takes the request. Returns the number of its traces beyond max, which are left out. A request
 * without traces is added, too, so that it gets an answer.
 */
size_t pending_add(struct pending *pending, struct request *request);

/* True if a request of this host wants the trace. host NULL: of any host. */
bool pending_has(const struct pending *pending, struct trace_id id, const char *host);

/* The time when the first request is due; INT64_MAX: none. is_last: of requests for all traces of a
 * time, or of the others. */
int64_t pending_due_ms(const struct pending *pending, bool is_last);
/* The number of requests for all traces of a time. */
size_t pending_last_count(const struct pending *pending);

/* True if a look waits (joins.h). Requests by name may wait for a look. */
bool pending_has_look(const struct pending *pending);

/* No scan for traces of this asker begins before that time. */
void pending_rest(struct pending *pending, struct asker *asker, int64_t until_ms);

/* Takes the due requests for one scan. is_last false: all of the asker that is due first, which
 * name traces: traces of one asker do not wait for a scan of another's. is_last true: the first one
 * for all traces of a time, with those that overlap it. The caller frees the list. NULL: no request
 * is due. */
struct request *pending_take(struct pending *pending, int64_t now_ms, bool is_last);

/* Makes all requests due now. */
void pending_hurry(struct pending *pending, int64_t now_ms);

#endif
