/*
 * The topic of deltas, as the root reads it: all of it, in no group, added up as it comes. And what
 * the root keeps over a restart: all that was added up, and up to where the topic was read. Both
 * are in one file, which is replaced as a whole: so each delta is in it once, or is still to be
 * read; and counters never fall, however little the topic keeps.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_ROOT_DELTAS_H
#define BLKIN_TOOLS_WORK_ROOT_DELTAS_H

#include "tools/config/config.h"
#include "tools/kafka/topic.h"
#include "tools/merged/merged.h"

struct root_deltas {
    const struct config *config;
    struct merged *merged;
    struct topic *topic;
    int64_t offsets[TOPIC_PARTITIONS_MAX]; /* what to read next; -1: not known */
    struct kafka_url url;                  /* of the topic */
    bool is_changed;                       /* since the state was written */
};

/* Nothing is added up yet, and nothing read. Returns false with error set. */
bool root_deltas_open(struct root_deltas *deltas, const struct config *config, struct error *error);
void root_deltas_close(struct root_deltas *deltas);

/* Goes on where the state of an earlier run ends. A state that cannot be used, such as that of
 * another topic, is renamed to PATH.old, and all that the topic has is read again. Returns false
 * when out of memory. */
bool root_deltas_load(struct root_deltas *deltas, const char *path);

/* The file's text, to be written as a whole (saver.h). NULL: out of memory. */
char *root_deltas_state(const struct root_deltas *deltas, int64_t now_ns);

/* From now on topic_read(deltas->topic) adds up: what is newer than since_ns, where it is not 0. It
 * returns false when out of memory. Returns false with error set. */
bool root_deltas_read(struct root_deltas *deltas, int64_t since_ns, struct error *error);

#endif
