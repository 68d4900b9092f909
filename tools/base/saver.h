/*
 * A thread writes a service's files, so that a hanging disk delays neither requests nor systemd's
 * watchdog. The thread keeps the order of its jobs. A newer text of a file replaces the waiting
 * one, so the queue is bounded.
 *
 * A process has one such thread. Children of the service do not use it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SAVER_H
#define BLKIN_TOOLS_SAVER_H

#include "babeltrace-plugin/base/error.h"
#include "loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The loop calls the functions of saver_then() and logs a hanging disk. Returns false with errno
 * set. */
bool saver_open(struct loop *loop);

/* Writes a file. Frees text; NULL: out of memory, which the saver logs. */
void saver_write(const char *path, char *text, size_t length);

/* Writes a file that changes often: at once, so that the next process has the text after a kill.
 * The thread calls fsync(2) only once in SAVER_SYNC_MS, as that call costs more than the write. So
 * a power cut may undo the changes of that time. A process may have SAVER_OFTEN_MAX such files. */
#define SAVER_SYNC_MS   1000
#define SAVER_OFTEN_MAX 4
void saver_write_often(const char *path, char *text, size_t length);

/*
 * As saver_write_often(), for a file whose text relies on earlier jobs. The saver writes the text
 * after these jobs, even if an older text of the file waits. A process may have one such file.
 */
void saver_write_in_turn(const char *path, char *text, size_t length);

/* Writes a file with another function in place of file_write(). The thread calls it; the context
 * must live until saver_finish() has returned true. */
typedef bool saver_write_fn(void *context, const char *text, struct error *error);
void saver_write_by(const char *path, char *text, saver_write_fn *write, void *context);

/* The loop calls done() after all earlier jobs. problem: the last failure that no other done() got;
 * NULL: none. */
struct saver_wait {
    void (*done)(void *context, const char *problem);
    void *context;
    /* private to the saver */
    uint64_t ticket;
    bool is_set;
    struct saver_wait *next;
};

void saver_then(struct saver_wait *wait);

/* Waits for all jobs, limit_ms at most. Returns false if jobs are unfinished. */
bool saver_finish(int64_t limit_ms);
/* Waits for all jobs at the end of a service, and for fsync(2) of all files, SAVER_END_MS at most.
 * Logs failures and unfinished jobs. Returns false if jobs are unfinished. */
#define SAVER_END_MS 30000
bool saver_end(void);

/* Returns the age of the running job; 0: none runs. */
int64_t saver_busy_ms(void);

#endif
