/*
 * What `blkin rotate` has done since its state folder was made.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ROTATE_TOTALS_H
#define BLKIN_TOOLS_ROTATE_TOTALS_H

#include "tools/base/totals.h"

struct rotate_totals {
    struct totals readers;
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
    int64_t closed_ns; /* when the last chunk with events was closed */
};

extern const struct totals_table rotate_table;

/* A file that is not there gives zeros; a damaged one too, and false. */
bool rotate_totals_load(struct rotate_totals *totals, const char *path);
/* Given to the saver: saver_then() tells when it is on disk. */
void rotate_totals_save(const struct rotate_totals *totals, const char *path);

#endif
