/*
 * blkin work --advise: how many workers there should be.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_ADVISE_H
#define BLKIN_TOOLS_WORK_ADVISE_H

/* argv[0] is how messages begin; --advise is among the rest. Returns the exit status. */
int advise_command(int argc, char *argv[]);

#endif
