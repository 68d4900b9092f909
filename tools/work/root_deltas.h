/*
 * The root's reader of the topic of deltas. The reader reads all partitions, without a consumer
 * group, and sums the deltas. For a restart, the root saves the sums and the offsets in one file,
 * which it replaces atomically. So the sums contain each delta once, and counters never fall,
 * however short the topic's retention is.
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
    int64_t offsets[TOPIC_PARTITIONS_MAX]; /* the next offsets to read; -1: unknown */
    struct kafka_url url;                  /* of the topic */
    bool is_changed;                       /* since the last save */
};

/* Begins with empty sums. Returns false with error set. */
bool root_deltas_open(struct root_deltas *deltas, const struct config *config, struct error *error);
void root_deltas_close(struct root_deltas *deltas);

/* Loads the saved state, from which root_deltas_read() continues. Renames an unusable state, such
 * as that of another topic, to PATH.old; the whole topic is then read. Returns false when out of
 * memory. */
bool root_deltas_load(struct root_deltas *deltas, const char *path);

/* Returns the text of the state file for saver_write(). NULL: out of memory. */
char *root_deltas_state(const struct root_deltas *deltas, int64_t now_ns);

/* Opens the topic: from then on, topic_read(deltas->topic) adds deltas newer than since_ns (0:
 * all), until memory is short. Returns false with error set. */
bool root_deltas_read(struct root_deltas *deltas, int64_t since_ns, struct error *error);

#endif
