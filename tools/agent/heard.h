/*
 * The numbers of the alarms that were heard, for each program. After a restart the agent finds old
 * alarms in the rings again: this part tells which are new and which are missing.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HEARD_H
#define BLKIN_TOOLS_HEARD_H

#include "alarm.h"

#include <jansson.h>
#include <stdbool.h>

/* Programs of all users, and of one user. Beyond these numbers, the program that was silent for
 * longest is forgotten. A user can forge pids: the program is one of that user. */
#define HEARD_MAX      1024
#define HEARD_USER_MAX 256

struct heard {
    size_t count;
    bool is_reset;
    uint64_t lost; /* of forgotten programs, and of an earlier process */
    struct heard_program {
        uint32_t user, pid, pid_ns; /* the program writes the pids: not trusted */
        uint32_t last;              /* the largest number; last_ns: the time of that alarm */
        uint64_t last_ns;
        uint32_t before; /* the same at the last heard_begin() */
        uint64_t before_ns;
        uint32_t heard_since; /* number of heard alarms after `before` */
        bool is_known;        /* false: `before` is one less than the least number heard */
        uint32_t due;       /* alarms missing up to this number are lost at the end of the look; */
        uint32_t heard_due; /* so many of them were heard since `before` */
    } programs[HEARD_MAX];
};

/* Until heard_end(), alarms that were heard before may come again. */
void heard_begin(struct heard *heard);
void heard_end(struct heard *heard);

/*
 * Begins a look at all rings. An alarm may come one look later than another one with a larger
 * number: the rings of CPUs are read in turn. An alarm below the previous look's largest number is
 * lost if it is still missing at the end.
 */
void heard_look(struct heard *heard);

/* True if the alarm is new. */
bool heard_alarm(struct heard *heard, const struct alarm *alarm);

/* The number of lost alarms, at the end of a look. */
uint64_t heard_lost(const struct heard *heard);

/* [[USER, PID, NUMBER, TIME, MISSING, PID_NS], ...] and back. MISSING: so many numbers below NUMBER
 * may still come. The next process cannot tell which, and counts them as lost. NULL: out of memory.
 */
json_t *heard_json(const struct heard *heard);
void heard_read(struct heard *heard, const json_t *json);

#endif
