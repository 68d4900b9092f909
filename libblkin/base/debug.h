/*
 * What the library says to people: what is wrong with a configuration, and, with BLKIN_DEBUG set,
 * more.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DEBUG_H
#define BLKIN_DEBUG_H

/*
 * A line, which format does not end, to the standard error; to syslog(3) where that is a connection
 * to another host: programs that inetd starts have their client there. errno is kept.
 */
__attribute__((format(printf, 1, 2), visibility("hidden"))) void blkin_debug_say(const char *format,
                                                                                 ...);

#endif
