/*
 * The common part of the policies: texts from the program, the environment and a file that may
 * change; numbers in texts; rates. Used by sampling, slow spans, libblkin-preload.so and the agent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_POLICY_H
#define BLKIN_POLICY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* For large tables that a program rarely changes: in a section of their own, so that a child of
 * fork(2) writes to few pages when it changes the small variables. */
#define BLKIN_COLD_DATA __attribute__((section("blkin_cold_data")))

#define BLKIN_POLICY_TEXT_MAX 1024 /* including the NUL */

/* The sources of a policy's text. The owner of the policy sets the members up to `lock`; the later
 * members are initially 0. */
struct blkin_policy_source {
    const char *variable; /* environment variable with the text */
    const char *file_variable;
    const char *default_file;
    const char *expected; /* for messages: the expected form of a text */
    bool has_lines;       /* the file has several lines; false: only its first line counts */
    bool always_reports;  /* reports errors even without BLKIN_DEBUG */
    /* Puts the policy in force. Called with the lock held. Returns NULL, or the part of the text
     * that is wrong, which is valid as long as the lock is held. */
    const char *(*take)(const char *text);
    char *offered; /* BLKIN_POLICY_TEXT_MAX bytes for the last text of blkin_policy_offer() */
    pthread_mutex_t lock;

    char path[512]; /* of the file; below: its state when it was read */
    struct timespec changed;
    ino_t inode;
    off_t size;
    bool is_refused; /* other users can write the file */
    bool is_own;     /* the program, its environment or a file has set the policy */
};

/* Sets the program's own text. Returns 0 or -EINVAL. */
int blkin_policy_set(struct blkin_policy_source *source, const char *text);

/* Reads the variable, then the file if there is one. Called once, before the first use of the
 * policy. */
void blkin_policy_init(struct blkin_policy_source *source);

/* Reads the file again if it has changed. Does nothing if the lock is held, for example in a signal
 * handler that interrupts blkin_policy_set(). */
void blkin_policy_refresh(struct blkin_policy_source *source);

/* Applies the agent's text (shorter than BLKIN_POLICY_TEXT_MAX), unless is_own. Ignores a text that
 * has not changed. Does nothing if the lock is held. Async-signal-safe. */
void blkin_policy_offer(struct blkin_policy_source *source, const char *text);

/* Called in a child of fork(2), while it has one thread: another thread of the parent may have held
 * the lock. */
void blkin_policy_after_fork(struct blkin_policy_source *source);

/* ---- parts of texts ---- */

/* Reads digits and an optional fraction; *end is the rest. Returns false if there are no digits.
 * (strtod(3) would depend on the program's locale.) */
bool blkin_policy_number(const char *text, double *number, const char **end);

/* ---- rates ---- */

/* A rate limit: one event in each period_ns on average. */
struct blkin_rate {
    uint64_t period_ns;
    uint64_t next_ns; /* when the next event is due; the only member that changes */
};

/* Counts an event at now_ns. Returns true if the event is within the rate. An event may be up to
 * burst_ns early. */
bool blkin_within_rate(struct blkin_rate *rate, uint64_t burst_ns, uint64_t now_ns);

#endif
