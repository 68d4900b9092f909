/*
 * blkin work: a worker, the root, or advice.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_COMMAND_H
#define BLKIN_TOOLS_WORK_COMMAND_H

/* argv[0] is how messages begin. Returns the exit status. */
int work_command(int argc, char *argv[]);

#endif
