/*
 * The kept folders (fetch.h): each is read by a child that sends its spans, one after the other,
 * the oldest first, and is deleted when the collector has taken all. One that the collector
 * refuses, or that ends its reader, waits while others pass, and is deleted after some tries. What
 * lies there is all that is known of them, so the agent may be killed at any time.
 *
 * While the collector is away another child reads those that wait, and sends nothing: what there is
 * can be told at once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_KEPT_H
#define BLKIN_TOOLS_KEPT_H

#include "request.h"
#include "tools/config/config.h"
#include "tools/reader/reader.h"
#include "totals.h"

extern const struct job kept_sender_job, kept_looker_job;

struct kept_folder {
    uint64_t number;
    uint64_t bytes;
    int64_t until_ns, until_mono_ns, held_from_ns; /* see fetch.h */
    struct request *requests;
    unsigned failures; /* of its delivery, one after the other */
    int64_t retry_ms;  /* not to be sent before */
    bool is_found;     /* what there is was told */
    struct kept_folder *next;
};

struct kept {
    struct loop *loop;
    const struct config *config;
    struct record_totals *totals;
    char folder[4096];    /* where kept-N are */
    char look_file[4096]; /* of a reading that sends nothing: its spans */
    char tap[128];
    struct reader sender, looker; /* their stats_file are set by who opens it */
    /*
     * What a folder has: {"traces": [...]}, as of only.h; NULL: it cannot be read, or is gone
     * unread. Once for each folder. Of a request for the traces of a service: these, without more.
     */
    void (*found)(void *context, const struct kept_folder *folder, const json_t *found);
    /* The totals have changed: they are to be saved, before anything is deleted. */
    void (*save)(void *context);
    void *context;
    /* its own */
    struct kept_folder *list; /* the oldest first */
    struct kept_folder *sent, *looked_at;
    struct timer retry, poll;
    uint64_t next_number;
    uint64_t bytes;
    int64_t send_begun_ms;
    unsigned away;    /* tries in a row that found no collector: whatever they sent, */
    int64_t retry_ms; /* nothing is to be sent before */
    bool is_stopping;
};

/* When the members above are set: takes what an earlier run has left. Returns false with error set.
 */
bool kept_open(struct kept *kept, struct error *error);
void kept_close(struct kept *kept);

/* A new one is there. */
void kept_add(struct kept *kept, uint64_t number);

/* Deletes the oldest until there is room for so much more, by the disk and by max_bytes. Returns
 * how much room there is. */
uint64_t kept_make_room(struct kept *kept, uint64_t more, uint64_t max_bytes);

/* Nothing is to be sent or looked at. */
bool kept_is_idle(const struct kept *kept);

/* Of all that are there it was told what they have. */
bool kept_is_told(const struct kept *kept);

/* So many wait. */
size_t kept_count(const struct kept *kept);

/* Ends the children; what is not delivered within flush-timeout-ms stays. */
void kept_stop(struct kept *kept);

#endif
