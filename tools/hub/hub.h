/*
 * blkin hub: where the recorders of several hosts meet.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HUB_H
#define BLKIN_TOOLS_HUB_H

/* argv[0] is how messages begin. Returns the exit status. */
int hub_command(int argc, char *argv[]);

#endif
