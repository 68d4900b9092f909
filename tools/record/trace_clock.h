/*
 * The trace's clock, as its metadata tells.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_TRACE_CLOCK_H
#define BLKIN_TOOLS_TRACE_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the text of CTF 1.8 metadata, in packets or not: the clock's time 0, in ns since 1970. Returns
 * false if it does not tell, or if the clock does not count ns. */
bool trace_clock_of(const char *bytes, size_t size, int64_t *offset_ns);

/*
 * The least one of all metadata files below the folder: those of different users may differ. An
 * event that was recorded until a time of the clock is then before this time by all of them.
 */
bool trace_clock_below(const char *folder, int64_t *offset_ns);

#endif
