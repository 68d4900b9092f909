/*
 * A request to fetch traces. An alarm of this host, `blkin keep` or another host makes requests.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_REQUEST_H
#define BLKIN_TOOLS_REQUEST_H

#include "askers.h"
#include "trace_id.h"

#define WHY_MAX 200 /* the most bytes of a reason */

struct wanted {
    struct trace_id id;
    int64_t begin_ns; /* of the trace, since 1970, by the clock of the request's host; 0: unknown */
    unsigned tries;   /* earlier requests that did not reach back to the begin of the trace */
    char why[WHY_MAX + 1];
};

struct request {
    char id[192];          /* HOST:PID:N */
    char host[256];        /* the host that made the request */
    int64_t at_ns;         /* when that host made the request: since 1970, by its clock */
    int64_t last_ms;       /* > 0: a window: all traces of the last last_ms before the request */
    char service[256];     /* of a window: only list the traces of this service; "": send all */
    char why[WHY_MAX + 1]; /* the reason of a window; "": a person made the request */
    size_t count, room;
    struct wanted *traces;
    /* the state on this host */
    struct asker *asker;  /* held; NULL: other hosts, and persons */
    bool is_look;         /* a window: only list its halves (joins.h) */
    bool is_late;         /* for late spans, after the first answer: see late_spans.h */
    size_t left_out;      /* traces beyond the limit */
    unsigned failures;    /* failed scans for the request, in a row */
    int64_t due_ms;       /* the earliest time of the scan */
    int64_t came_mono_ns; /* when the request was made: CLOCK_MONOTONIC of this host */
    struct request *next; /* in a list of requests */
};

/* Returns NULL when out of memory. */
struct request *request_new(const char *id, const char *host);
void requests_free(struct request *list);
/* Returns the request of this asker in the list, or adds one. NULL: out of memory. */
struct request *requests_of(struct request **list, struct asker *asker, const char *host);

/* Adds a trace, unless the request has it already. Cuts `why` to WHY_MAX. Returns false when out of
 * memory. */
bool request_add(struct request *request, struct trace_id id, int64_t begin_ns, const char *why);
/* Sets the reason of a window, as one line, cut to WHY_MAX. */
void request_set_why(struct request *request, const char *why);
/* Returns true if the request only lists traces or halves, so that no span is sent. */
static inline bool request_is_list(const struct request *request)
{
    return request->service[0] || request->is_look;
}

bool request_has(const struct request *request, struct trace_id id);

/* Returns the begin of the trace by CLOCK_MONOTONIC of this host; INT64_MIN: not known. Computes it
 * from the age of the trace at the request, as clocks of two hosts cannot be compared. */
int64_t request_begin(const struct request *request, const struct wanted *wanted);

/* Returns the number of traces that the requests name. */
size_t requests_traces(const struct request *list);

/* A window, by CLOCK_MONOTONIC. */
struct request_window {
    int64_t from_ns, until_ns;
};
/* request_window() returns the window of one request, requests_window() the window that contains
 * all windows of a list. */
struct request_window request_window(const struct request *request);
struct request_window requests_window(const struct request *list);

/* Write and read the message "keep" (tools/cluster/cluster.h). NULL: out of memory, or a message of
 * another form. Reads at most max traces. *left: the number of traces beyond that. */
json_t *request_json(const struct request *request);
struct request *request_read(const json_t *message, size_t max, size_t *left);

#endif
