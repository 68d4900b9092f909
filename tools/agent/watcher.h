/*
 * Watches the rings of alarms, and gives each alarm once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WATCHER_H
#define BLKIN_TOOLS_WATCHER_H

#include "babeltrace-plugin/base/text.h"
#include "tools/rings/holder.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* An alarm: a program reports that a span was slow, has failed, or is to be kept. */
struct alarm {
    uint64_t trace_id_high, trace_id; /* both 0: the alarm reports only `dropped` */
    uint64_t duration_ns;
    uint64_t monotonic_ns; /* the span's end */
    uint32_t user;         /* the owner of the memory with the alarm */
    struct asker *asker;   /* the payer of the alarm; NULL: none */
    uint32_t pid, pid_namespace, sequence, dropped;
    char why[128]; /* cut, valid UTF-8, and without control characters */
};

/* Returns the begin of the span by a clock that is offset_ns ahead of CLOCK_MONOTONIC. now_ns:
 * CLOCK_MONOTONIC. A program may have written any numbers, so the result is limited to the time
 * between the host's start and now. */
static inline int64_t alarm_begin_ns(const struct alarm *alarm, int64_t now_ns, int64_t offset_ns)
{
    const uint64_t now = (uint64_t)now_ns;
    const uint64_t end = alarm->monotonic_ns < now ? alarm->monotonic_ns : now;
    const uint64_t begin = alarm->duration_ns < end ? end - alarm->duration_ns : 0;

    return (int64_t)begin + offset_ns;
}

/* The most programs of all users, and of one user. A further program replaces the program whose
 * last alarm is the oldest. Beyond a user's limit, it replaces a program of that user, because a
 * user can forge pids. */
#define ALARMS_SEEN_MAX      1024
#define ALARMS_SEEN_USER_MAX 256

/* The numbers of each program's alarms that the agent has read. After a restart the agent reads old
 * alarms again. The numbers tell which alarms are new, and which are missing. */
struct alarms_seen {
    size_t count;
    bool has_looked; /* false: old alarms, which an earlier process has read, may come again */
    uint64_t lost;   /* alarms of replaced programs, and of an earlier process */
    struct alarms_seen_program {
        uint32_t user, pid, pid_namespace; /* pids are not trusted, as the program writes them */
        uint32_t last;                     /* the largest number */
        uint64_t last_ns;                  /* the latest time of an alarm */
        uint32_t before;                   /* of the earlier process: its `last` */
        uint64_t before_ns;                /* its `last_ns` */
        uint32_t alarms_seen_since;        /* number of read alarms after `before` */
        bool is_known; /* false: `before` is the smallest read number, less one */
        uint32_t due;  /* at the end of the look, missing alarms up to this number are lost */
        uint32_t alarms_seen_due; /* number of read alarms after `before`, up to `due` */
    } programs[ALARMS_SEEN_MAX];
};

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
    uint64_t lost; /* the sum of watcher_counts.lost so far */
};

/* Watches a memory from its oldest record on. The watcher skips alarms that it has read before. All
 * alarms count against the asker's limits. Returns false when out of memory, and counts that in
 * the asker's `unwatched`: the caller tries again, before programs overwrite the alarms. */
bool watcher_add(struct watcher *watcher, const struct memory *memory, uint32_t user,
                 struct asker *asker);
void watcher_drop(struct watcher *watcher, const struct memory *memory);

/* Copies a text as valid UTF-8, cut between characters, with "?" in place of control characters. */
void watcher_set_text(char *to, size_t room, struct text from);

/* Gives the new alarms. Returns the counts since the last call. */
struct watcher_counts watcher_look(struct watcher *watcher);

#endif
