/*
 * Gaps in the sequence numbers that each recording thread gives its events.
 *
 * They show losses that nobody else counts, such as those of a killed process's last sub-buffer or
 * of a viewer that was away; those that LTTng has counted show here a second time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_SEQUENCE_H
#define BLKIN_CORE_SEQUENCE_H

#include <stdint.h>

struct sequence_table;

/* Returns NULL when out of memory. */
struct sequence_table *sequence_table_new(void);
void sequence_table_free(struct sequence_table *table);

/*
 * Notes an event of a thread. Returns how many events of that thread are missing before it: 0 for
 * the first one that is seen, and for numbers that do not go up (a hostile or a broken trace).
 * They were recorded since *since_ns, the time of the event before, which is set only then.
 */
uint64_t sequence_note(struct sequence_table *table, uint64_t thread, uint64_t sequence,
                       int64_t time_ns, int64_t *since_ns);

#endif
