/* A worker's place in the log of a partition, and the text of it in a commit.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_PLACE_H
#define BLKIN_TOOLS_WORK_PLACE_H

#include "babeltrace-plugin/base/text.h"

#include <stdint.h>

/* The place that a worker commits. */
struct place {
    int64_t watermark; /* the first message of the oldest open trace, or the next one */
    int64_t read_back; /* <= watermark: the begin of the messages with decided traces */
    int64_t read_to;   /* >= watermark: the next message */
    int64_t time_ms;   /* the log's time before read_to; 0: unknown */
};

#define PLACE_TEXT_MAX 96

/* Convert all but the watermark to and from a commit's metadata. A malformed text, or one that does
 * not fit the watermark, means that nothing is read back. */
void place_write(const struct place *place, char text[PLACE_TEXT_MAX]);
struct place place_read(int64_t watermark, struct text text);

/* Returns the place for a log that begins at `low` and lost its messages from `cut` on. The worker
 * has read everything before the cut, so no span counts twice. */
struct place place_cut(const struct place *place, int64_t low, int64_t cut);

#endif
