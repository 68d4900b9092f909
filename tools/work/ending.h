/*
 * Why a worker ends: a signal asked for it, or something is not certain any more. A worker that has
 * failed commits nothing more, and the next one goes on from the last commit. There is one worker
 * in a process.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_ENDING_H
#define BLKIN_TOOLS_WORK_ENDING_H

#include <stdbool.h>

/* From now on SIGTERM and SIGINT ask the worker to end. */
void ending_take_signals(void);

bool ending_is_asked(void);

/* Logs the first failure. */
__attribute__((format(printf, 1, 2))) void ending_fail(const char *format, ...);

bool ending_has_failed(void);

/* Nothing failed before the worker was asked to end: the group may change while a worker leaves. */
bool ending_is_well(void);

#endif
