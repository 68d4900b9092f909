/*
 * The relay daemon keeps the files of sessions that have ended: here they are deleted.
 *
 * No clock tells which these are, as it may be set: they are marked (renamed) by who knows, because
 * they were there already when there was no relay daemon yet, or before the session was made, or
 * before the relay daemon was asked and did not have it. Only what is marked is deleted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_SWEEP_H
#define BLKIN_LIVE_SWEEP_H

#include "tools/base/child.h"

extern const struct job sweep_job;

struct sweep_files {
    size_t count;
    char **paths;
};

/*
 * FOLDER/HOST/SESSION-DATE-TIME: what a relay daemon has kept below its folder, and nothing else
 * that lies there; with host and session NULL, of all of them. With a session that may be made
 * next: without those that are so young that its folder may get the same name, which has seconds.
 */
struct sweep_files sweep_find(const char *folder, const char *host, const char *session,
                              bool is_made_next);

void sweep_mark(const struct sweep_files *kept);
void sweep_free(struct sweep_files *kept);

/* Deletes all of it, and the folders that are empty then: when there is no relay daemon any more.
 */
void sweep_all(const char *folder);

/* In a child: deletes what is marked below the folder. */
void sweep(struct loop *loop, const char *folder);

/* The same; and what is kept of a session is marked first, if the relay daemon has it not. */
void sweep_session(struct loop *loop, const char *folder, const char *live_url, const char *host,
                   const char *session);

#endif
