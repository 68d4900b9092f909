/*
 * The alarms of each program that were heard, by their numbers. Who begins to watch finds once more
 * what the rings still have: this knows what is new of it, and what is missing.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HEARD_H
#define BLKIN_TOOLS_HEARD_H

#include "alarm.h"

#include <jansson.h>
#include <stdbool.h>

#define HEARD_MAX 1024 /* programs: then the one that was silent for longest is forgotten */

struct heard {
    size_t count;
    bool is_anew;
    uint64_t missing; /* of programs that are forgotten */
    struct heard_program {
        uint32_t user, pid; /* the pid is the program's word */
        uint32_t last;      /* the largest number, and the time of that alarm */
        uint64_t last_ns;
        uint32_t before; /* the same, when it was begun anew */
        uint64_t before_ns;
        uint32_t heard_since; /* of those after that: how many */
        bool is_known;        /* else `before` is less by one than the least that was heard */
    } programs[HEARD_MAX];
};

/* From now on what was heard before may come again, until heard_end(). */
void heard_begin(struct heard *heard);
void heard_end(struct heard *heard);

/* Is it new? */
bool heard_alarm(struct heard *heard, const struct alarm *alarm);

/* How many are missing between those that were heard, so far. */
uint64_t heard_missing(const struct heard *heard);

/* [[USER, PID, NUMBER, TIME], ...] and back. NULL: out of memory. */
json_t *heard_json(const struct heard *heard);
void heard_read(struct heard *heard, const json_t *json);

#endif
