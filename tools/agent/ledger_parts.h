/*
 * What the files of the ledger share: ledger.c keeps and judges, ledger_json.c shows to persons.
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
    int64_t reach_ms;     /* it has looked for what was written so long before it was asked, or
                             later; 0: for all */
    char error[192];      /* "": none */
};

struct trace {
    const struct entry *entry;
    struct table_link in_table; /* of all entries' */
    struct wanted wanted;
    struct ids have, want;
    json_t *hosts; /* the names of those that have some of it; NULL: none */
    uint64_t spans;
    int64_t begin_ns;     /* of the first one; 0: not known */
    int64_t held_from_ns; /* of a source that only some traces have, */
    size_t held_by;       /* on this host */
    bool is_cut;          /* not all ids are known */
    bool was_earlier;     /* it is asked for once more */
    bool is_judged;       /* or somebody else does */
};

struct entry {
    struct request head; /* without traces */
    char name[192];      /* "": an alarm's */
    struct host *hosts;
    size_t host_count;
    struct trace **traces; /* they do not move */
    size_t trace_count, trace_room;
    size_t waiting; /* hosts */
    int64_t timeout_ms;
    int64_t deadline_ms; /* 0: we have not answered ourselves yet, */
    int64_t limit_ms;    /* and must until then; 0: not known yet */
    char doubt[128];     /* see ledger_doubt() */
    uint64_t more;       /* traces that were sent, and that no answer lists */
    bool is_done;
    struct entry *next;
};

struct ledger {
    struct ledger_callbacks on;
    struct entry *entries; /* the newest first */
    size_t count;          /* of them, as of the last judging, and those that came since */
    struct table traces;   /* of all entries, by the lower half of the id */
};

#endif
