/*
 * blkin host: lists what there is to sample.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_COMMAND_H
#define BLKIN_SAMPLER_COMMAND_H

/* argv[0] is how messages begin. Returns the exit status. */
int host_command(int argc, char *argv[]);

#endif
