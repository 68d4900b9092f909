/*
 * The account as a JSON file that is replaced as a whole: who reads it sees an old or a new one,
 * never a part of one. It is not synced to disk: after a crash of the machine it may be empty.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_STATS_FILE_H
#define BLKIN_ACCOUNT_STATS_FILE_H

#include "babeltrace-plugin/base/error.h"
#include "counters.h"

#include <jansson.h>

/* {"events": ..., ...}. NULL: out of memory. */
json_t *counts_json(const struct counts *counts);

/* The file's text. Returns NULL when out of memory; free() it. */
char *stats_text(const struct counts *counts, const struct run_info *run);

struct stats_file {
    char *path;
    int fd; /* of the file as it is now, locked: a second sink finds it taken; -1: there is none yet
             */
};

/*
 * Takes the place, if there may be a statistics file: not where another sink has one, nor in place
 * of something else: a device, or a file that is not an earlier statistics file. Writes nothing.
 * Returns false with error set.
 */
bool stats_file_open(struct stats_file *file, const char *path, struct error *error);

/* Returns false with error set; the old file, if any, is still there then. */
bool stats_file_write(struct stats_file *file, const struct counts *counts,
                      const struct run_info *run, struct error *error);

/* The same with a text of stats_text(), maybe in another thread; NULL: there was no memory. */
bool stats_file_put(struct stats_file *file, const char *text, struct error *error);

/* Leaves the place; the file stays. Nothing happens to one that is {NULL, -1}. */
void stats_file_close(struct stats_file *file);

#endif
