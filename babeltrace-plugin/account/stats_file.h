/*
 * The counters as a JSON file that is replaced as a whole: readers see the old or the new file. The
 * file is not synced to disk: after a crash of the machine it may be empty.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_STATS_FILE_H
#define BLKIN_ACCOUNT_STATS_FILE_H

#include "babeltrace-plugin/base/error.h"
#include "counters.h"

#include <jansson.h>

/* Returns {"events": ..., ...}. NULL: out of memory. */
json_t *counts_json(const struct counts *counts);

/* Returns the file's text, for free(); NULL when out of memory. */
char *stats_text(const struct counts *counts, const struct run_info *run);

struct stats_file {
    char *path;
    int fd; /* of the current file, locked against a second sink; -1: no file yet */
};

/* Claims the path, and writes nothing. Returns false with error set if the path is another sink's
 * statistics file, or is neither a statistics file nor an empty file. */
bool stats_file_open(struct stats_file *file, const char *path, struct error *error);

/* Returns false with error set: then the old file stays. */
bool stats_file_write(struct stats_file *file, const struct counts *counts,
                      const struct run_info *run, struct error *error);

/* Same with a text of stats_text(); NULL: out of memory there. context: the struct stats_file.
 * May run in another thread. */
bool stats_file_put(void *context, const char *text, struct error *error);

/* Releases the path; the file stays. {NULL, -1} is allowed. */
void stats_file_close(struct stats_file *file);

#endif
