/*
 * blkin report: a page of HTML about traces.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_REPORT_H
#define BLKIN_TOOLS_REPORT_H

/* argv[0]: the prefix of messages. Returns the exit status. */
int report_command(int argc, char *argv[]);

#endif
