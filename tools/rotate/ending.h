/*
 * Ends the sessions that record below a folder: `blkin rotate --end`.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ROTATE_ENDING_H
#define BLKIN_TOOLS_ROTATE_ENDING_H

#include "tools/base/child.h"

extern const struct job ending_job;

struct ending {
    struct loop *loop;
    const char *output;
    /* its own */
    struct task task;
    bool waits, has_ended, has_failed;
};

/* With what their buffers hold; if that does not come in time, without. */
void ending_start(struct ending *ending);

#endif
