/*
 * The host's rules of slow spans. The rules come from the same sources as the rules of programs:
 * BLKIN_SLOW, BLKIN_SLOW_FILE or /run/blkin/slow.
 *
 * A process has one set of rules, as there is one file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOST_RULES_H
#define BLKIN_TOOLS_HOST_RULES_H

/* Reads the rules if they have changed. Returns the number of changes so far. */
unsigned host_rules_refresh(void);

/* Returns the text, which blkin_slow_parse() takes. NULL: no rules so far. */
const char *host_rules(void);

/* Returns the part of the last text that programs cannot parse. Such a text does not take effect.
 * "": the last text is right. */
const char *host_rules_wrong(void);

#endif
