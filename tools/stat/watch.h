/*
 * The live part of blkin stat: reads taps, and shows an interval after the other.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_STAT_WATCH_H
#define BLKIN_TOOLS_STAT_WATCH_H

#include "options.h"

/*
 * Of one sink's tap, or of all those of the services whose sockets are in a folder. Returns the
 * exit status; reports by itself.
 */
int watch_tap(const struct options *options, const char *path);
int watch_services(const struct options *options, const char *folder);

#endif
