/*
 * Shared by the files of the ledger: ledger.c stores and judges, ledger_json.c makes JSON.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_LEDGER_PARTS_H
#define BLKIN_TOOLS_LEDGER_PARTS_H

#include "babeltrace-plugin/base/table.h"
#include "ledger.h"

enum host_state { HOST_WAITING, HOST_ANSWERED, HOST_AWAY };

struct host {
    char name[256];
    enum host_state state;
    uint64_t spans;
    int64_t held_from_ns; /* 0: not known */
    int64_t reach_ms;     /* age of the oldest searched record when the host got the request;
                             0: the host has searched all records */
    char error[192];      /* "": none */
};

struct ledger_trace {
    const struct entry *entry;
    struct table_link in_table; /* in the ledger's table */
    struct wanted wanted;
    struct ids have, want;
    json_t *hosts; /* the names of the hosts with spans of the trace; NULL: none */
    uint64_t spans;
    int64_t begin_ns;     /* begin of the first span; 0: not known */
    int64_t held_from_ns; /* the latest such time that a host has told for this trace alone */
    size_t held_by;       /* the index of that host */
    bool is_cut;          /* not all ids are known */
    bool was_earlier;     /* the trace was requested once more */
    bool is_judged;       /* or left to another request */
};

struct entry {
    struct request head; /* the request, without its traces */
    char name[192];      /* the name that a person polls; "": an alarm */
    struct host *hosts;
    size_t host_count;
    struct ledger_trace **traces; /* each in a block of its own, as the table links it */
    size_t trace_count, trace_room;
    size_t waiting; /* hosts in HOST_WAITING */
    int64_t timeout_ms;
    int64_t deadline_ms; /* for other hosts; 0: this host has not answered yet */
    int64_t limit_ms;    /* for this host's own answer; 0: not set yet */
    char doubt[128];     /* see ledger_doubt() */
    uint64_t more;       /* sent traces that no answer lists */
    bool is_done;
    struct entry *next;
};

struct ledger {
    struct ledger_callbacks on;
    struct entry *entries; /* the newest first */
    size_t count;          /* entries, without those that the last ledger_judge() has removed */
    struct table traces;   /* the traces of all entries, by the lower half of the id */
};

#endif
