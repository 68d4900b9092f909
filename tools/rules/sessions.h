/*
 * Live sessions, by the names that people give them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RULES_SESSIONS_H
#define BLKIN_TOOLS_RULES_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * What babeltrace2 reads the session by: name is NAME or HOST/NAME of one that the relay daemon at
 * HOST[:PORT] has, or a URL already. False after it has said why, and which sessions there are.
 */
bool session_url(const char *name, const char *relayd, char *url, size_t size);

#endif
