/*
 * blkin config: checks and shows the configuration.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CONFIG_COMMAND_H
#define BLKIN_TOOLS_CONFIG_COMMAND_H

/* argv[0]: the prefix of messages. Returns the exit status. */
int config_command(int argc, char *argv[]);

#endif
