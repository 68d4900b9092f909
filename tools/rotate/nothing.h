/*
 * A trace without events.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ROTATE_NOTHING_H
#define BLKIN_TOOLS_ROTATE_NOTHING_H

#include <stdbool.h>
#include <stdint.h>

/* In place of what the folder holds. It was recorded until end_ns; 0: it stands for one that is
 * gone. */
bool nothing_make(const char *folder, int64_t end_ns);

#endif
