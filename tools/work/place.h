/*
 * Where a worker stands in the log of a partition, and how that is written in a commit.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_PLACE_H
#define BLKIN_TOOLS_WORK_PLACE_H

#include "babeltrace-plugin/base/text.h"

#include <stdint.h>

/* Where a worker stands; what it commits. */
struct place {
    int64_t watermark; /* the first message of the oldest open trace, or the next one */
    int64_t read_back; /* <= watermark: what is to be read for the traces that are decided */
    int64_t read_to;   /* >= watermark: the next message */
    int64_t time_ms;   /* the log's time of the messages before read_to; 0: not known */
};

#define PLACE_TEXT_MAX 96

/* All but the watermark, as the metadata of a commit; and back: what is no such text, or does not
 * fit the watermark, is taken for nothing to be read back. */
void place_write(const struct place *place, char text[PLACE_TEXT_MAX]);
struct place place_read(int64_t watermark, struct text text);

/* Where to go on in a log that begins at `low` and lost what comes from `cut` on. What is before
 * the cut was read, so nothing is counted twice. */
struct place place_cut(const struct place *place, int64_t low, int64_t cut);

#endif
