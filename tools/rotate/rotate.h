/*
 * blkin rotate: the collector that loses nothing. A session records into a folder, and what it has
 * closed is converted and then deleted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ROTATE_H
#define BLKIN_TOOLS_ROTATE_H

/* argv[0] is how messages begin; returns the exit status. */
int rotate_command(int argc, char *argv[]);

#endif
