/*
 * Messages of the library: errors in a configuration and, with BLKIN_DEBUG set, details.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DEBUG_H
#define BLKIN_DEBUG_H

/* Writes a line to standard error. Writes to syslog(3) if standard error is a client's connection,
 * as under inetd, or a file of the program. Keeps errno. The format has no line end. */
__attribute__((format(printf, 1, 2), visibility("hidden"))) void blkin_debug_say(const char *format,
                                                                                 ...);

#endif
