/*
 * The time of a spool, which tells the age of records. The wall clock cannot: after a boot it may
 * be wrong until NTP sets it, and then all records would be too old at once.
 *
 * A spool's time runs with the time since boot, which no step of the wall clock changes. The file
 * "lock" holds the offset between the two, and the id of the boot for which the offset holds. After
 * another boot, the spool's time continues at its newest record. So the time that the host was off
 * does not count, as nothing can tell it from a step of the clock. Without records, the spool's
 * time begins with the wall clock.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_SPOOL_TIME_H
#define BLKIN_OUTPUT_SPOOL_TIME_H

#include <stdint.h>

int64_t boot_time_ms(void);

/* The time of the spool is boot_time_ms() plus this. fd: of the file "lock"; newest_ms: when the
 * newest record was written, 0: there is none. */
int64_t spool_time_offset_ms(int fd, int64_t newest_ms);

#endif
