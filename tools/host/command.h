/*
 * blkin host: what the host does, listed, printed or recorded.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOST_COMMAND_H
#define BLKIN_TOOLS_HOST_COMMAND_H

/* argv[0] is how messages begin. Returns the exit status. */
int host_command(int argc, char *argv[]);

#endif
