/*
 * The numbers of each program's alarms that the agent has read. After a restart the
 * agent reads old alarms again. The numbers tell which alarms are new, and which are missing.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ALARMS_SEEN_H
#define BLKIN_TOOLS_ALARMS_SEEN_H

#include "alarm.h"

#include <jansson.h>
#include <stdbool.h>

/* The most programs of all users, and of one user. A further program replaces the program whose
 * last alarm is the oldest. Beyond a user's limit, it replaces a program of that user, because a
 * user can forge pids. */
#define ALARMS_SEEN_MAX      1024
#define ALARMS_SEEN_USER_MAX 256

struct alarms_seen {
    size_t count;
    bool is_reset; /* between alarms_seen_begin() and alarms_seen_end() */
    uint64_t lost; /* alarms of replaced programs, and of an earlier process */
    struct alarms_seen_program {
        uint32_t user, pid, pid_namespace; /* pids are not trusted, as the program writes them */
        uint32_t last;                     /* the largest number */
        uint64_t last_ns;                  /* the latest time of an alarm */
        uint32_t before;                   /* `last` at the last alarms_seen_begin() */
        uint64_t before_ns;                /* `last_ns` at the last alarms_seen_begin() */
        uint32_t alarms_seen_since;        /* number of read alarms after `before` */
        bool is_known; /* false: `before` is the smallest read number, less one */
        uint32_t due;  /* at the end of the look, missing alarms up to this number are lost */
        uint32_t alarms_seen_due; /* number of read alarms after `before`, up to `due` */
    } programs[ALARMS_SEEN_MAX];
};

/* From this call to alarms_seen_end(), alarms that the agent read before may come again. */
void alarms_seen_begin(struct alarms_seen *alarms_seen);
void alarms_seen_end(struct alarms_seen *alarms_seen);

/*
 * Begins a look at all rings. The rings of the CPUs are read in turn, so an alarm may come one look
 * later than an alarm with a larger number. An alarm below the previous look's largest number is
 * lost if it is still missing at the end of the look.
 */
void alarms_seen_look(struct alarms_seen *alarms_seen);

/* Returns true if the alarm is new. */
bool alarms_seen_alarm(struct alarms_seen *alarms_seen, const struct alarm *alarm);

/* Returns the number of lost alarms. Valid at the end of a look. */
uint64_t alarms_seen_lost(const struct alarms_seen *alarms_seen);

/* Write and read [[USER, PID, NUMBER, TIME, MISSING, PID_NS], ...]. MISSING is the number of
 * missing alarms that may still come. The next process cannot know which, so it counts them as
 * lost. NULL: out of memory. */
json_t *alarms_seen_json(const struct alarms_seen *alarms_seen);
void alarms_seen_read(struct alarms_seen *alarms_seen, const json_t *json);

#endif
