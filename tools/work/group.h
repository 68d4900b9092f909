/*
 * A worker as a member of its consumer group: partitions of the topic come and go, and the worker
 * reads their messages.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_GROUP_H
#define BLKIN_TOOLS_WORK_GROUP_H

#include "input.h"
#include "transaction.h"

struct group;

/* Speaks to nobody yet. Returns NULL with error set. */
struct group *group_open(const struct work_settings *settings, struct work_stage *stage,
                         struct error *error);
/* NULL is allowed. */
void group_close(struct group *group);

const struct input *group_input(const struct group *group);

/* From now on the group gives it partitions. Returns false with error set. */
bool group_join(struct group *group, struct transactions *transactions, struct error *error);

/* Reads the messages that are there; lets the time pass of logs that have ended. */
void group_read(struct group *group);

/* Commits what was counted with the places of all partitions. Returns false after ending_fail(). */
bool group_commit(struct group *group);

/*
 * A last commit, then leaves the group, which commits what its partitions have. Returns false if
 * that failed, or if the group has not yet told what is its own: end the process then.
 */
bool group_leave(struct group *group);

/* The time that it has waited for messages since the last call. */
int64_t group_idle_ns(struct group *group);

#endif
