/*
 * blkin work: a worker of a consumer group. One thread: reads spans, puts traces together, counts
 * them, and commits what it has counted and kept together with where it stands.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_WORKER_H
#define BLKIN_TOOLS_WORK_WORKER_H

/* argv[0] is how messages begin. Returns the exit status. */
int worker_command(int argc, char *argv[]);

#endif
