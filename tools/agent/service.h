/*
 * Command "blkin agent": sends the slow and failed traces of a host, or all spans (send = all).
 * Programs write all spans to rings, which hold the last seconds. If a span was slow or has failed,
 * the agent reads its trace from the rings.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_AGENT_SERVICE_H
#define BLKIN_TOOLS_AGENT_SERVICE_H

/* argv[0] is the prefix of messages. Returns the exit status. */
int agent_command(int argc, char *argv[]);

#endif
