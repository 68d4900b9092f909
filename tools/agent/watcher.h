/*
 * Watches the rings of alarms: each alarm is given once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WATCHER_H
#define BLKIN_TOOLS_WATCHER_H

#include "babeltrace-plugin/base/text.h"
#include "heard.h"
#include "tools/rings/holder.h"

struct watcher_poll {
    uint64_t lost;  /* alarms that were overwritten, or whose record is damaged */
    uint64_t newer; /* of a version that is not known here */
};

struct watcher {
    struct heard *heard;
    void (*alarm)(void *context, const struct alarm *alarm); /* a new one */
    void *context;
    /* its own */
    struct watched_memory *memories;
    bool has_looked;
    uint64_t lost; /* that was told of */
};

/* A memory from its beginning; of alarms that were heard nothing is given. */
void watcher_add(struct watcher *watcher, const struct memory *memory, uint32_t user);
void watcher_drop(struct watcher *watcher, const struct memory *memory);

/* For an alarm: valid UTF-8, cut between characters, with "?" in place of control characters. */
void watcher_set_text(char *to, size_t room, struct text from);

struct watcher_poll watcher_look(struct watcher *watcher);

#endif
