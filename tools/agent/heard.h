/*
 * The numbers of each program's alarms that the agent has heard, that is, read. After a restart the
 * agent reads old alarms again. The numbers tell which alarms are new, and which are missing.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HEARD_H
#define BLKIN_TOOLS_HEARD_H

#include "alarm.h"

#include <jansson.h>
#include <stdbool.h>

#define HEARD_MAX 1024 /* programs; a further one replaces the one with the oldest last alarm */

struct heard {
    size_t count;
    bool is_reset; /* between heard_begin() and heard_end() */
    uint64_t lost; /* alarms of replaced programs, and of an earlier process */
    struct heard_program {
        uint32_t user, pid, pid_ns; /* pids are not trusted, as the program writes them */
        uint32_t last;              /* the largest number */
        uint64_t last_ns;           /* the latest time of an alarm */
        uint32_t before;            /* `last` at the last heard_begin() */
        uint64_t before_ns;         /* `last_ns` at the last heard_begin() */
        uint32_t heard_since;       /* number of heard alarms after `before` */
        bool is_known;              /* false: `before` is the smallest heard number, less one */
        uint32_t due;       /* at the end of the look, missing alarms up to this number are lost */
        uint32_t heard_due; /* number of heard alarms after `before`, up to `due` */
    } programs[HEARD_MAX];
};

/* Begins a time, up to heard_end(), in which alarms that were heard before may come again. */
void heard_begin(struct heard *heard);
void heard_end(struct heard *heard);

/*
 * Begins a look at all rings. The rings of the CPUs are read in turn, so an alarm may come one look
 * later than an alarm with a larger number. An alarm below the previous look's largest number is
 * lost if it is still missing at the end of the look.
 */
void heard_look(struct heard *heard);

/* Returns true if the alarm is new. */
bool heard_alarm(struct heard *heard, const struct alarm *alarm);

/* Returns the number of lost alarms. Valid at the end of a look. */
uint64_t heard_lost(const struct heard *heard);

/* Write and read [[USER, PID, NUMBER, TIME, MISSING, PID_NS], ...]. MISSING is the number of
 * missing alarms that may still come. The next process cannot know which, so it counts them as
 * lost. NULL: out of memory. */
json_t *heard_json(const struct heard *heard);
void heard_read(struct heard *heard, const json_t *json);

#endif
