/*
 * blkin rules: check rules, and try them on a trace.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RULES_H
#define BLKIN_TOOLS_RULES_H

int rules_command(int argc, char *argv[]);

#endif
