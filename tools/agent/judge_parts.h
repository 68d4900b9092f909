/*
 * Shared by judge.c and judge_report.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_JUDGE_PARTS_H
#define BLKIN_TOOLS_JUDGE_PARTS_H

#include "babeltrace-plugin/base/table.h"
#include "judge.h"

enum host_state { HOST_WAITING, HOST_ANSWERED, HOST_AWAY };

struct host {
    char name[256];
    enum host_state state;
    uint64_t spans;
    int64_t held_from_ns; /* the host has all records from this time on; 0: not known */
    int64_t way_ns;       /* the longest time that the request may have been on its way there */
    int64_t reach_ms;     /* the host searched only the records of this time before the request;
                             0: all records */
    char error[192];      /* "": none */
};

struct judge_trace {
    const struct entry *entry;
    struct table_link in_table; /* of the judge */
    struct wanted wanted;
    struct trace_spans found;
    json_t *hosts;        /* the names of the hosts with spans of the trace; NULL: none */
    int64_t held_from_ns; /* the largest of the hosts with spans: see judge_held_from() */
    size_t held_by;       /* the index of the host with held_from_ns */
    bool is_asked_again;  /* the callback earlier() was called for the trace */
    bool is_judged;       /* judged, or left to another request */
};

struct entry {
    struct request head; /* the request, without its traces */
    char name[192];      /* the name of a person's request; "": a request for alarms */
    struct host *hosts;
    size_t host_count, host_room;
    struct judge_trace **traces; /* allocated one by one, as the table links them */
    size_t trace_count, trace_room;
    size_t waiting; /* hosts that have not answered before the deadline */
    int64_t timeout_ms;
    int64_t deadline_ms; /* of other hosts' answers; 0: this host has not answered yet */
    int64_t limit_ms;    /* of this host's own answer; 0: not set yet */
    int64_t stall_ms;    /* this process stood still for so long since the request */
    char doubt[128];     /* see judge_doubt() */
    uint64_t more;       /* number of found traces that are not in `traces` */
    bool is_done;
    struct entry *next;
};

struct judge {
    struct judge_callbacks on;
    struct entry *entries; /* the newest first */
    size_t count;          /* number of entries */
    struct table traces;   /* the traces of all entries, by the lower half of the id */
};

#endif
