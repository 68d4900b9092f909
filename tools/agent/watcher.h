/*
 * Watches the rings of alarms, and gives each alarm once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WATCHER_H
#define BLKIN_TOOLS_WATCHER_H

#include "babeltrace-plugin/base/text.h"
#include "alarms_seen.h"
#include "tools/rings/holder.h"

struct watcher_counts {
    uint64_t lost;  /* alarms that were overwritten, or whose record is damaged */
    uint64_t newer; /* alarms of a newer format */
};

struct watcher {
    struct alarms_seen *alarms_seen;
    void (*alarm)(void *context, const struct alarm *alarm); /* gets each new alarm */
    void *context;
    /* private */
    struct watched_memory *memories;
    bool has_looked;
    uint64_t lost; /* the sum of watcher_counts.lost so far */
};

/* Watches a memory from its oldest record on. The watcher skips alarms that it has read before. All
 * alarms count against the asker's limits. Returns false when out of memory, and counts that as the
 * asker's: the caller tries again, before programs overwrite the alarms. */
bool watcher_add(struct watcher *watcher, const struct memory *memory, uint32_t user,
                 struct asker *asker);
void watcher_drop(struct watcher *watcher, const struct memory *memory);

/* Copies a text as valid UTF-8, cut between characters, with "?" in place of control characters. */
void watcher_set_text(char *to, size_t room, struct text from);

/* Gives the new alarms. Returns the counts since the last call. */
struct watcher_counts watcher_look(struct watcher *watcher);

#endif
