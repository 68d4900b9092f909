/*
 * What `blkin rotate` has done since its state folder was made: kept in a file, so that its account
 * goes on over restarts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ROTATE_TOTALS_H
#define BLKIN_TOOLS_ROTATE_TOTALS_H

#include "account/counters.h"
#include "error.h"

#include <jansson.h>

struct totals {
    struct counts sinks;       /* of all that have ended */
    uint64_t chunks_converted; /* each deleted after that */
    uint64_t bytes_converted;
    uint64_t chunks_dropped; /* for want of room on disk */
    uint64_t bytes_dropped;
    uint64_t files_damaged;
    uint64_t bytes_damaged;
    uint64_t sessions; /* made */
    uint64_t rotations_stuck;
    uint64_t children_failed;
    char current[320]; /* PLACE/CHUNK, as far as the sink knows under way; "": none */
    bool has_open;     /* events or spans that the sink has not sent: they wait for more */
    int64_t trace_ns;  /* how far the trace was read, */
    int64_t closed_ns; /* and when the chunk was closed that was read last */
    char last_run[64]; /* of a sink that is in these sums: it is never added twice */
};

/* The names and values of those of our own. */
struct total {
    const char *name;
    size_t offset;
    const char *help;
};
extern const struct total totals_own[];
extern const size_t totals_own_count;
uint64_t total_value(const struct totals *totals, size_t i);

/* A file that is not there gives zeros; a damaged one too, and false. */
bool totals_load(struct totals *totals, const char *path);
/* The old file or the new one is there at any time. Returns false with error set. */
bool totals_save(const struct totals *totals, const char *path, struct error *error);

/* The sink that has written this statistics file has ended: its account is added, if it was not
 * yet. Returns how many spans it has delivered. */
uint64_t totals_add_run(struct totals *totals, const char *stats_file);

#endif
