/*
 * blkin show: prints a trace.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SHOW_H
#define BLKIN_TOOLS_SHOW_H

/* argv[0] is how messages begin. Returns the exit status. */
int show(int argc, char *argv[]);

#endif
