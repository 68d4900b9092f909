/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BLKIN_TOOLS_ASK_H
#define BLKIN_TOOLS_ASK_H

/* blkin status, blkin reload: ask the service that runs. */
int status_command(int argc, char *argv[]);
int reload_command(int argc, char *argv[]);

#endif
