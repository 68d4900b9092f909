/* Finds live sessions by their short names.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RULES_SESSIONS_H
#define BLKIN_TOOLS_RULES_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Makes the session's URL for babeltrace2. name: NAME, HOST/NAME, or a URL; relayd: the relay
 * daemon at HOST[:PORT]. Returns false after printing the reason and the existing sessions.
 */
bool session_url(const char *name, const char *relayd, char *url, size_t size);

#endif
