/*
 * Requests that wait for a scan.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SCAN_QUEUE_H
#define BLKIN_TOOLS_SCAN_QUEUE_H

#include "request.h"

struct scan_queue {
    struct request *list; /* in order of arrival */
    struct request
        *taken;    /* requests of the current scan; the callers of scan_queue_take() set it */
    size_t traces; /* number of traces of the list */
    size_t max;    /* the most traces of each asker; other hosts and persons are one asker */
    size_t more_for_others; /* other hosts and persons may have this many more than max */
    int64_t rest_ms;        /* as in struct asker: of other hosts and persons */
};

/* Returns the number of traces that the asker may add. A reload may have lowered the limit below
 * the number of traces; then the result is 0. */
size_t scan_queue_room(const struct scan_queue *scan_queue, const struct asker *asker);

/*
 * Takes the request. Leaves out its traces beyond max, and returns their number. Adds a request
 * without traces, too, so that it gets an answer.
 */
size_t scan_queue_add(struct scan_queue *scan_queue, struct request *request);

/* Returns true if a request wants the trace. */
bool scan_queue_has(const struct scan_queue *scan_queue, struct trace_id id);

/* Returns the time when the first request is due; INT64_MAX: there is none. is_last: of the
 * requests for windows; false: of the requests that name traces. */
int64_t scan_queue_due_ms(const struct scan_queue *scan_queue, bool is_last);
/* Returns the number of requests for windows. */
size_t scan_queue_last_count(const struct scan_queue *scan_queue);

/* Returns true if a look waits (joins.h). Requests that name traces may depend on its result. */
bool scan_queue_has_look(const struct scan_queue *scan_queue);

/* No scan for traces of this asker begins before that time. asker NULL: other hosts and persons. */
void scan_queue_rest(struct scan_queue *scan_queue, struct asker *asker, int64_t until_ms);

/* Takes the due requests for one scan. is_last false: all requests that name traces, of the asker
 * that is due first. So traces of one asker do not wait for a scan of another asker's traces.
 * is_last true: the first due request for a window, and the requests of the same kind, asker and
 * service whose windows overlap. The caller frees the list. NULL: no request is due. */
struct request *scan_queue_take(struct scan_queue *scan_queue, int64_t now_ms, bool is_last);

/* Makes all requests due now, and ends the pauses of their askers. */
void scan_queue_hurry(struct scan_queue *scan_queue, int64_t now_ms);

#endif
