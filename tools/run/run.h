/*
 * blkin run: runs a program with libblkin-preload.so.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RUN_H
#define BLKIN_TOOLS_RUN_H

/* argv[0] is how messages begin. Returns the exit status if the program was not run. */
int run_command(int argc, char *argv[]);

#endif
