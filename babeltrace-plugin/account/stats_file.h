/*
 * The account as a JSON file that is replaced as a whole: who reads it sees an old or a new one,
 * never a part of one. It is not synced to disk: after a crash of the machine it may be empty.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_STATS_FILE_H
#define BLKIN_ACCOUNT_STATS_FILE_H

#include "../error.h"
#include "counters.h"

/* The file's text. Returns NULL when out of memory; free() it. */
char *stats_text(const struct counts *counts, const struct run_info *run);

/*
 * May there be a statistics file? Not in place of something else: a device, or a file that is not
 * an earlier statistics file. Returns false with error set.
 */
bool stats_file_check(const char *path, struct error *error);

/* Returns false with error set; the old file, if any, is still there then. */
bool stats_file_write(const char *path, const struct counts *counts, const struct run_info *run,
                      struct error *error);

#endif
