/*
 * Shared by wants.c and wants_joins.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WANTS_PARTS_H
#define BLKIN_TOOLS_WANTS_PARTS_H

#include "wants.h"
#include "joins.h"
#include "judge.h"
#include "tools/cluster/cluster.h"

struct wants {
    struct agent *agent;
    struct cluster *cluster; /* NULL: this host has no cluster */
    struct judge *judge;
    struct joins *joins;
    /* The number of the last request, part of its id. Numbers begin with the time in ms: the next
     * process, which may have the same pid in a container, must not take this process's answers. */
    unsigned long requests;
    struct request *earlier; /* collects traces that began before the searched time, by asker */
    bool asks_again;         /* an earlier process may have left open traces */
    bool has_saved_others;   /* others_file is not empty */
    char others_file[4096];
};

void wants_set_id(struct wants *wants, struct request *request);

/* Sends the request to the other hosts, and enters it in the judge's list. The caller has to fetch
 * the spans of this host. halves: of the request's only trace, or NULL. Takes the halves. */
void wants_ask_others(struct wants *wants, struct request *request, const char *name,
                      int64_t linger_ms, json_t *halves);

/* Returns NULL when out of memory. */
struct joins *wants_open_joins(struct wants *wants);

#endif
