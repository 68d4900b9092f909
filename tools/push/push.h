/*
 * blkin config push: the configuration of services of many hosts, in a topic of Kafka.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CONFIG_PUSH_H
#define BLKIN_TOOLS_CONFIG_PUSH_H

/* argv[0] is how messages begin. Returns the exit status. */
int config_push(int argc, char *argv[], const char *usage);

#endif
