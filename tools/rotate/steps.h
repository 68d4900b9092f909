/*
 * What `blkin rotate` does, step by step: a session records, the dead ones are buried, there is
 * room, and the oldest chunk is converted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ROTATE_STEPS_H
#define BLKIN_TOOLS_ROTATE_STEPS_H

#include "burial.h"
#include "convert.h"
#include "ending.h"
#include "keeper.h"
#include "room.h"

enum work { SERVE, ONCE, END };

struct steps {
    enum work work;
    struct loop *loop;
    const struct config *config;
    struct store store;
    struct rotate_totals totals;
    struct converter converter; /* its files and totals are given */
    /* its own */
    struct keeper keeper;
    struct room room;
    struct burial burial;
    struct ending ending;
    struct timer scan, next;
    bool was_finished, is_stopping, is_ready, has_failed;
    bool listed_after_end; /* the places in use were asked for after the sessions had ended */
    int64_t answered_ms;   /* when LTTng's session daemon has answered last, for --once and --end */
    int64_t recorded_ms;   /* when our session was seen to record last; 0: not in this run */
    char recorded_place[PLACE_MAX];
    char dead_place[PLACE_MAX]; /* the oldest that waits to be buried, and since when; "": none */
    int64_t dead_since_ms;
    int64_t rotation_ms; /* when the last chunk was closed */
    char rotation_place[PLACE_MAX];
    uint64_t rotation_newest;
    char said[1024]; /* what LTTng's state was, last */
    int64_t said_ms;
};

/* When the folders are open. loop_stop() ends it, once all is done or steps_stop() has worked. */
void steps_begin(struct steps *steps);

/* What is under way is delivered within flush-timeout-ms. The second time: at once. */
void steps_stop(struct steps *steps);

/* What a session is made of is of its making: such keys hold for the next one. */
void steps_configure(struct steps *steps, const struct config *config);

#endif
