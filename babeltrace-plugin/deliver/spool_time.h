/*
 * How old what is in a spool is. The wall clock does not tell: a host that has just booted may have
 * any time until NTP has set it, and then all would be too old at once.
 *
 * A spool has a time of its own. It goes on with the time since boot, of which no clock's step is
 * a part; the file "lock" has the offset between the two, and the boot that it is of. In a new boot
 * it goes on at the newest record that is there: how long the host was off cannot be told from a
 * step, so that does not count. Without a record it begins with the wall clock.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_SPOOL_TIME_H
#define BLKIN_OUTPUT_SPOOL_TIME_H

#include <stdint.h>

int64_t boot_time_ms(void);

/* To be added to boot_time_ms(); fd is the lock's. newest_ms is of what was found, 0: nothing. */
int64_t spool_time_offset_ms(int fd, int64_t newest_ms);

#endif
