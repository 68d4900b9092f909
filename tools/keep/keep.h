/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BLKIN_TOOLS_KEEP_H
#define BLKIN_TOOLS_KEEP_H

/* blkin keep: has the recorders send traces that somebody asks for. */
int keep_command(int argc, char *argv[]);

#endif
