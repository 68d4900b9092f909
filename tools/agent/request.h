/*
 * A request: keep these traces. By an alarm of this host, by `blkin keep`, or by another host.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_REQUEST_H
#define BLKIN_TOOLS_REQUEST_H

#include "trace_id.h"

#define WHY_MAX 200 /* bytes */

struct wanted {
    struct trace_id id;
    /* Since 1970, by the clock of the request's host: as far as is known, the trace began then; 0:
     * not known */
    int64_t begin_ns;
    unsigned tries; /* it was wanted before, but it had begun earlier than was known */
    char why[WHY_MAX + 1];
};

struct request {
    char id[192];          /* HOST:PID:N */
    char host[256];        /* whose it is */
    int64_t at_ns;         /* since 1970, by the clock of that host */
    int64_t last_ms;       /* > 0: all that the last so many ms had, or of it */
    char service[256];     /* the traces of this service */
    char why[WHY_MAX + 1]; /* of all that the last had; "": somebody asked by hand */
    size_t count, room;
    struct wanted *traces;
    /* as it came here */
    bool is_look;         /* lists halves (joins.h) of the last so many ms; sends nothing */
    bool is_late;         /* for spans of SDKs that came after the answer: see later.h */
    size_t left_out;      /* traces that were too many */
    unsigned failures;    /* snapshots for it, one after the other */
    int64_t due_ms;       /* not to be fetched before */
    int64_t came_mono_ns; /* when it was asked, CLOCK_MONOTONIC of this host */
    struct request *next; /* of a list of them */
};

/* Returns NULL when out of memory. */
struct request *request_new(const char *id, const char *host);
void requests_free(struct request *list);

/* Adds one; of one that is there already nothing changes. why is cut. Returns false when out of
 * memory. */
bool request_add(struct request *request, struct trace_id id, int64_t begin_ns, const char *why);
/* Why all that the last so many ms had is wanted: as one line, cut. */
void request_set_why(struct request *request, const char *why);
/* Does the request only list what the rings have? Then nothing is sent. */
static inline bool request_is_list(const struct request *request)
{
    return request->service[0] || request->is_look;
}

bool request_has(const struct request *request, struct trace_id id);

/* When the trace began, as far as is known, by CLOCK_MONOTONIC of this host; INT64_MIN: not known.
 * No clocks of two hosts are compared. */
int64_t request_begin(const struct request *request, const struct wanted *wanted);

/* Of all of them, without those of times. */
size_t requests_traces(const struct request *list);

/* All that the last so many ms had: of one request, and from the first to the last of a list. By
 * CLOCK_MONOTONIC. */
struct request_window {
    int64_t from_ns, until_ns;
};
struct request_window request_window(const struct request *request);
struct request_window requests_window(const struct request *list);

/* As the message "keep" (tools/cluster/cluster.h), and back. NULL: out of memory, or no such
 * message: at most max traces are taken, *left: so many were not. */
json_t *request_json(const struct request *request);
struct request *request_read(const json_t *message, size_t max, size_t *left);

#endif
