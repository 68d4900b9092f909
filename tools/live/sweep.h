/*
 * The relay daemon keeps the files of ended sessions in FOLDER/HOST/SESSION-DATE-TIME. The service
 * deletes a folder without changes for an hour unless its session is live. It deletes all folders
 * while no relay daemon runs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_SWEEP_H
#define BLKIN_LIVE_SWEEP_H

#include "tools/base/child.h"
#include "tools/reader/graph.h"

#define SWEEP_AGE_S 3600

extern const struct job sweep_job;

/* Deletes all sessions and the empty folders of hosts. No relay daemon may run. */
void sweep_all(const char *folder);

/* Deletes old folders of sessions that are not in the listing, in a child. */
void sweep(struct loop *loop, const char *folder, const struct listing *live);

#endif
