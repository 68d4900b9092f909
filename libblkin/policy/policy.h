/*
 * What the policies of this library have in common, that of sampling and that of slow requests:
 * a text of the program, of the environment or of a file that is watched; its parts; a rate.
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

#define BLKIN_POLICY_TEXT_MAX 1024 /* with its NUL */

/* Where a policy's text comes from. What is filled in by who defines it, then zeros. */
struct blkin_policy_source {
    const char *variable; /* of the environment: the text */
    const char *file_variable;
    const char *default_file;
    const char *expected; /* what a text should have been, for people */
    bool has_lines;       /* the file's text is all of it, not its first line */
    bool is_outspoken;    /* says what is wrong also without BLKIN_DEBUG */
    /*
     * Puts the policy in force, with the lock held. Returns NULL, or what of the text is wrong: a
     * part of it, as text of the callee's.
     */
    const char *(*take)(const char *text);
    pthread_mutex_t lock;

    char path[512];
    struct timespec changed;
    ino_t inode;
    off_t size;
    bool is_refused; /* others can write the file */
    bool is_own;     /* the program, its environment or a file has set the policy */
    char offered[BLKIN_POLICY_TEXT_MAX];
};

/* The program's own text. Returns 0 or -EINVAL. */
int blkin_policy_set(struct blkin_policy_source *source, const char *text);

/* Reads the variable, then the file if there is one. Once, before the first use of the policy. */
void blkin_policy_init(struct blkin_policy_source *source);

/*
 * Takes the file's text over if it has changed. One thread at a time; it may be a signal handler
 * that has interrupted blkin_policy_set(): then the file has to wait for the next time.
 */
void blkin_policy_refresh(struct blkin_policy_source *source);

/*
 * Takes over the host's text (shorter than BLKIN_POLICY_TEXT_MAX), unless the program has a text of
 * its own. Does nothing if the text is the same as before. One thread at a time, as
 * blkin_policy_refresh(), and async-signal-safe as that one.
 */
void blkin_policy_offer(struct blkin_policy_source *source, const char *text);

/* In a child of fork(2), while it has one thread: another one may have held the lock. */
void blkin_policy_after_fork(struct blkin_policy_source *source);

/* ---- parts of texts ---- */

/*
 * Reads digits and perhaps a fraction: *end is what follows them. Returns false if there are none.
 * Not strtod(3): what it reads depends on the program's locale.
 */
bool blkin_policy_number(const char *text, double *number, const char **end);

/* ---- rates ---- */

/* One each period_ns on average. */
struct blkin_rate {
    uint64_t period_ns;
    uint64_t next_ns; /* when the next one is due; the one thing that changes */
};

/* Counts one more at now_ns. True if it is within the rate; up to burst_ns may come early. */
bool blkin_within_rate(struct blkin_rate *rate, uint64_t burst_ns, uint64_t now_ns);

#endif
