/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BLKIN_TOOLS_KEEP_H
#define BLKIN_TOOLS_KEEP_H

/* blkin keep: asks the recorders to send traces. Returns the exit status. */
int keep_command(int argc, char *argv[]);

#endif
