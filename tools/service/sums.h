/*
 * The account of a service, summed over the sinks that its children run, by the table of counters:
 * each writes a statistics file, and the sums of those that have ended are kept in a file of our
 * own.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SUMS_H
#define BLKIN_TOOLS_SUMS_H

#include "account/counters.h"
#include "error.h"

#include <jansson.h>

/* One statistics file. */
struct sums_run {
    struct counts counts;
    char id[64]; /* of the run: process and start */
    bool has_ended;
};

/* Returns false if there is none, or none that can be understood. */
bool sums_read_run(const char *path, struct sums_run *run);

/*
 * What a run that is over has added: its gauges are gone with it. Of one that was killed the spans
 * that waited are no more, and come again: both sums hold without them.
 */
void sums_end_run(struct counts *counts);

/* sums += counts, with the gauges of counts added too. */
void sums_add(struct counts *sums, const struct counts *counts);

/* The sums of earlier runs, and the id of the last that is in them: it is never added twice. */
struct sums {
    struct counts counts;
    char last[64];
};

/* A file that is missing or damaged gives zeros; the second is said by returning false. */
bool sums_load(struct sums *sums, const char *path);
/* Replaces the file as a whole. */
bool sums_save(const struct sums *sums, const char *path, struct error *error);

/* A run that is over is added, once, and saved. Returns false with error set. */
bool sums_fold(struct sums *sums, const struct sums_run *run, const char *path,
               struct error *error);

/* {"events": 1, ...}: new; NULL: out of memory. */
json_t *sums_json(const struct counts *counts);

#endif
