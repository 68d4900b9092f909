/*
 * What the files of asking share: asking.c asks, answers and judges, asking_joins.c asks for joins.
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
    struct cluster *cluster; /* NULL: alone */
    struct ledger *ledger;
    struct joins *joins;
    /* The number of the last one. The first one's is the time: in a container the next process may
     * have the same pid, and is not to take answers to this one for its own. */
    unsigned long requests;
    struct request *earlier; /* of traces that have begun earlier than was known; NULL: none */
    bool asks_again;         /* for what was open when the agent ended, */
    bool has_saved_others;   /* the file is not empty: */
    char others_file[4096];
};

void asking_set_id(struct asking *asking, struct request *request);

/* All but what is to be done here. halves: of the request's one trace, taken; or NULL. */
void asking_ask_others(struct asking *asking, struct request *request, const char *name,
                       int64_t linger_ms, json_t *halves);

/* Returns NULL when out of memory. */
struct joins *asking_open_joins(struct asking *asking);

#endif
