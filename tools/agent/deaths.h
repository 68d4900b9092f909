/*
 * Counts crashes of the agent, so that a record of a ring cannot crash one agent after the other.
 *
 * A crash (SIGSEGV, SIGABRT and the like, also by systemd's watchdog) adds a byte to a file. The
 * next start counts the crash for the place from which send = all has read, and for each open
 * trace. After DEATHS_MAX crashes at one place, the next agent skips the rings' records from there
 * up to now. After DEATHS_MAX crashes while a trace was open, the next agent reports it as
 * incomplete. SIGKILL is no crash.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_AGENT_DEATHS_H
#define BLKIN_TOOLS_AGENT_DEATHS_H

#include <stdbool.h>

#define DEATHS_MAX 2

struct agent;

/* Counts the crashes since the last saved state. Called after the state is read. From now on, a
 * crash of this process is noted. */
void deaths_watch(struct agent *agent);

/* Saves the state with these crashes, then removes the file. Called at the start of the service. */
void deaths_save(struct agent *agent);

/* Returns true, once, if send = all is to skip the records from agent->read_on up to now. */
bool deaths_skip_place(struct agent *agent);

/* Ends the traces that were open or unsent during DEATHS_MAX crashes. */
void deaths_skip_traces(struct agent *agent);

#endif
