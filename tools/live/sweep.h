/*
 * The relay daemon keeps the files of sessions that have ended: here they are deleted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_SWEEP_H
#define BLKIN_LIVE_SWEEP_H

#include "service/loop.h"

#include <time.h>

/*
 * In a child: deletes FOLDER/HOST/SESSION-DATE-TIME where these were made before that time, and
 * nothing else; with host NULL all that looks so.
 */
void sweep(struct loop *loop, const char *folder, const char *host, const char *session,
           time_t before);

#endif
