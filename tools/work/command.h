/* blkin work: a worker of a consumer group, or the root, which sums the counts of all workers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_COMMAND_H
#define BLKIN_TOOLS_WORK_COMMAND_H

/* The name of the root's control socket: RUNTIME-DIR/work-root.sock. */
#define ROOT_SERVICE "work-root"

/* argv[0]: the prefix of messages. Both return the exit status. */
int work_command(int argc, char *argv[]);
int worker_command(int argc, char *argv[]);
int root_command(int argc, char *argv[]); /* the arguments contain --root */

#endif
