/*
 * blkin agent: the flight recorder of a host. LTTng keeps the last seconds of all spans in memory;
 * when a span was slow, or failed, its trace is fetched from there, and sent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_AGENT_SERVICE_H
#define BLKIN_TOOLS_AGENT_SERVICE_H

/* argv[0] is how messages begin; returns the exit status. */
int agent_command(int argc, char *argv[]);

#endif
