/*
 * blkin stat: statistics per service and span name.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_STAT_COMMAND_H
#define BLKIN_TOOLS_STAT_COMMAND_H

/* argv[0]: the prefix of messages. Returns the exit status. */
int stat_command(int argc, char *argv[]);

#endif
