/*
 * blkin work --root: adds up what all workers have counted, and shows it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_ROOT_H
#define BLKIN_TOOLS_WORK_ROOT_H

/* The name of its control socket: RUNTIME-DIR/work-root.sock. */
#define ROOT_SERVICE "work-root"

/* argv[0] is how messages begin; --root is among the rest. Returns the exit status. */
int root_command(int argc, char *argv[]);

#endif
