/*
 * What the root keeps over a restart: all that was added up, and up to where the topic was read.
 * Both are in one file, which is replaced as a whole: so each delta is in it once, or is still to
 * be read; and counters never fall, however little the topic keeps.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_ROOT_STATE_H
#define BLKIN_TOOLS_WORK_ROOT_STATE_H

#include "tools/kafka/topic.h"
#include "tools/merged/merged.h"

enum root_state { STATE_READ, STATE_NONE, STATE_DAMAGED, STATE_OF_ANOTHER, STATE_NO_MEMORY };

/*
 * Fills merged, which is empty, and offsets: what to read next, -1 where it is not known. topic:
 * its name with its brokers; a state of another one is not used. What cannot be used sets error,
 * and merged is to be made anew.
 */
enum root_state root_state_load(const char *path, const char *topic, struct merged *merged,
                                int64_t offsets[TOPIC_PARTITIONS_MAX], struct error *error);

/* The file's text, to be written as a whole (saver.h). NULL: out of memory. */
char *root_state_text(const char *topic, const struct merged *merged,
                      const int64_t offsets[TOPIC_PARTITIONS_MAX], int64_t now_ns);

#endif
