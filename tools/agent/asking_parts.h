/*
 * Shared by the files of asking: asking.c asks, answers and judges, asking_joins.c asks for joins.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ASKING_PARTS_H
#define BLKIN_TOOLS_ASKING_PARTS_H

#include "asking.h"
#include "joins.h"
#include "ledger.h"
#include "tools/cluster/cluster.h"

struct asking {
    struct agent *agent;
    struct cluster *cluster; /* NULL: this host has no cluster */
    struct ledger *ledger;
    struct joins *joins;
    /* The number of the last request. The first number is the time in ms: in a container, the next
     * process may have the same pid, and must ignore answers to this process. */
    unsigned long requests;
    struct request *earlier; /* for traces that began before the time that was read, by asker */
    bool asks_again;         /* an earlier process has left open traces */
    bool has_saved_others;   /* others_file is not empty */
    char others_file[4096];
};

void asking_set_id(struct asking *asking, struct request *request);

/* Sends the request to the other hosts and enters it in the ledger. The caller fetches the spans of
 * this host. halves: those of the request's only trace, or NULL; this function releases them. */
void asking_ask_others(struct asking *asking, struct request *request, const char *name,
                       int64_t linger_ms, json_t *halves);

/* Returns NULL when out of memory. */
struct joins *asking_open_joins(struct asking *asking);

#endif
