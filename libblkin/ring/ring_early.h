/*
 * Early records: made while the process has no memory, and waits for the agent's answer. A busy
 * agent may answer seconds after a server has started. The records wait in this process, and go
 * into the rings when the process gets them. A record that has no room here, or whose answer does
 * not come, is lost: the next memory counts it.
 *
 * All functions are async-signal-safe. Only the thread that looks for rings opens and closes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RING_EARLY_H
#define BLKIN_RING_EARLY_H

#include "ring_map.h"

#include <stdbool.h>

/* Returns true if early records are taken. */
bool ring_early_is_open(void);

/* Called when the agent was asked and has not answered, and the process has no memory. */
void ring_early_open(void);

/* Takes a record for ring_write(). Returns false if none are taken: the process may have got a
 * memory meanwhile. */
bool ring_early_add(enum ring_which which, uint64_t kind, const void *payload, size_t length);

/* Counts a record that was not made because the process has no memory. */
void ring_early_lose(void);

/* Takes no more records. Writes those that it has into the memory. NULL: there is no answer, the
 * records are lost. Called at each look: while another thread is adding a record, nothing is
 * written until the next look. */
void ring_early_close(const struct ring_map *map);

/* Called when the process has become another user. Drops the records: another user may read the
 * next memory. */
void ring_early_leave_user(void);

/* Drops all records. Called in a child of fork(2), which has one thread, and at the end. */
void ring_early_forget(void);

#endif
