/*
 * blkin host: lists the instances and the metrics of this host.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_COMMAND_H
#define BLKIN_SAMPLER_COMMAND_H

/* argv[0]: the prefix of messages. Returns the exit status. */
int host_command(int argc, char *argv[]);

#endif
