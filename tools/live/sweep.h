/*
 * The relay daemon keeps the files of sessions that have ended, as FOLDER/HOST/SESSION-DATE-TIME.
 * They are deleted when nothing in them has changed for an hour, unless the session is live; and
 * all of them while no relay daemon runs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_SWEEP_H
#define BLKIN_LIVE_SWEEP_H

#include "tools/base/child.h"
#include "tools/reader/listing.h"

#define SWEEP_AGE_S 3600

extern const struct job sweep_job;

/* While no relay daemon runs: deletes all, and the folders that are empty then. */
void sweep_all(const char *folder);

/* In a child: deletes what is old, and of no session in this listing. */
void sweep(struct loop *loop, const char *folder, const struct listing *live);

#endif
