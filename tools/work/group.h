/*
 * A worker as a member of its consumer group: the group assigns and revokes partitions of the
 * topic, and the worker reads their messages.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_GROUP_H
#define BLKIN_TOOLS_WORK_GROUP_H

#include "input.h"
#include "transaction.h"

struct group;

/* Does not connect yet. Returns NULL with error set. */
struct group *group_open(const struct work_settings *settings, struct work_stage *stage,
                         struct error *error);
/* NULL is allowed. */
void group_close(struct group *group);

const struct input *group_input(const struct group *group);

/* Joins the group, which then assigns partitions. Returns false with error set. */
bool group_join(struct group *group, struct transactions *transactions, struct error *error);

/* Reads the waiting messages. Advances the time of partitions whose log has ended. */
void group_read(struct group *group);

/* Commits the counts with the places of all partitions. Returns false after ending_fail(). */
bool group_commit(struct group *group);

/* Commits a last time and leaves the group. Returns false after ending_fail(), or if the group has
 * never assigned partitions: the caller then ends the process without group_close(). */
bool group_leave(struct group *group);

/* Returns the time that the worker has waited for messages since the last call. */
int64_t group_idle_ns(struct group *group);

#endif
