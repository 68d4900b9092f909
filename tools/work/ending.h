/*
 * The end of a worker: by a signal, or by a failure. A worker that has failed commits nothing more,
 * and the next worker continues from the last commit. A process has one worker.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_ENDING_H
#define BLKIN_TOOLS_WORK_ENDING_H

#include <stdbool.h>

/* Makes SIGTERM and SIGINT ask the worker to end. */
void ending_take_signals(void);

bool ending_is_asked(void);

/* Logs the first failure. */
__attribute__((format(printf, 1, 2))) void ending_fail(const char *format, ...);

bool ending_has_failed(void);

/* Returns false if the worker failed before it was asked to end. Later failures do not count: the
 * group may change while the worker leaves. */
bool ending_is_well(void);

#endif
