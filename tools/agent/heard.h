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
    bool is_reset;
    uint64_t lost; /* of programs that are forgotten, and of an earlier process */
    struct heard_program {
        uint32_t user, pid, pid_ns; /* the two pids are the program's word */
        uint32_t last;              /* the largest number, and the time of that alarm */
        uint64_t last_ns;
        uint32_t before; /* the same, when it was begun anew */
        uint64_t before_ns;
        uint32_t heard_since; /* of those after that: how many */
        bool is_known;        /* else `before` is less by one than the least that was heard */
        uint32_t due;       /* what is missing up to this number is lost at the end of the look, */
        uint32_t heard_due; /* and of these so many were heard since `before` */
    } programs[HEARD_MAX];
};

/* From now on what was heard before may come again, until heard_end(). */
void heard_begin(struct heard *heard);
void heard_end(struct heard *heard);

/*
 * A look at all rings begins. An alarm may come a look later than one with a larger number, since
 * one CPU's ring may have been read before another one got what came first. So what is missing up
 * to the largest number of the look before is lost if this look does not bring it.
 */
void heard_look(struct heard *heard);

/* Is it new? */
bool heard_alarm(struct heard *heard, const struct alarm *alarm);

/* How many are lost, at the end of a look. */
uint64_t heard_lost(const struct heard *heard);

/* [[USER, PID, NUMBER, TIME, MISSING, PID_NS], ...] and back. MISSING: so many numbers up to that
 * one may still come; nobody can tell which once this process is gone, so they count as lost then.
 * NULL: out of memory. */
json_t *heard_json(const struct heard *heard);
void heard_read(struct heard *heard, const json_t *json);

#endif
