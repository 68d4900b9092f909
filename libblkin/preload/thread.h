/*
 * What is kept for each thread that has had an interaction.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_THREAD_H
#define BLKIN_PRELOAD_THREAD_H

#include "file.h"
#include "pool.h"
#include "preload.h"

#define OPEN_MAX 512
#define HELD_MAX 512 /* a power of two */

struct thread {
    struct pool_item item;

    /*
     * The interactions that this thread has taken and that are neither answered nor waiting for the
     * answer to a call of their own: what may have caused its next call. Referenced.
     */
    struct interaction *open[OPEN_MAX];
    unsigned open_count;
    bool has_overflowed; /* some found no room since open was empty: nothing is certain */

    /*
     * The answered ones, which are held until they are certainly over, the eldest first. Other
     * threads look at them, too.
     */
    pool_name held[HELD_MAX];
    uint64_t held_until[HELD_MAX];
    uint32_t held_first, held_end;

    pool_name
        writing; /* an interaction's answer just now; cancelled in it, the thread never says so */
    const void *writing_at; /* the frame of that */

    struct file_later later[FILE_LATER_MAX]; /* the end of the process looks at them, too */

    struct interaction *lent; /* was current when the program set a span of its own; referenced */
    uint64_t random;          /* the state of thread_random() */
    uint64_t counts[PRELOAD_COUNTS];
} __attribute__((aligned(64)));

/* The calling thread's, made at the first call; NULL: no memory. */
struct thread *thread_get(void);

/* 64 random bits, of splitmix64: not for secrets. */
uint64_t thread_random(struct thread *thread);

/* Calls a function for every thread of the process that has had an interaction, and still runs. */
void thread_for_each(void (*look)(struct thread *thread));

/* Prints the account if BLKIN_DEBUG is set. */
void thread_print_counts(void);

/* In a child of fork(2): this thread is the only one, and new. */
void thread_forget_all(void);

#endif
