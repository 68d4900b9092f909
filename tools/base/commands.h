/*
 * The commands of blkin. argv[0] is the prefix of messages. Each returns the exit status.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_COMMANDS_H
#define BLKIN_TOOLS_COMMANDS_H

int agent_command(int argc, char *argv[]);
int config_command(int argc, char *argv[]);
int doctor_command(int argc, char *argv[]);
int graph_command(int argc, char *argv[]);
int host_command(int argc, char *argv[]);
int keep_command(int argc, char *argv[]);
int live_command(int argc, char *argv[]);
int reload_command(int argc, char *argv[]);
int report_command(int argc, char *argv[]);
int rules_command(int argc, char *argv[]);
int run_command(int argc, char *argv[]); /* returns only if the program did not run */
int show_command(int argc, char *argv[]);
int stat_command(int argc, char *argv[]);
int status_command(int argc, char *argv[]);
int work_command(int argc, char *argv[]);
int worker_command(int argc, char *argv[]); /* work without --root */

#endif
