/*
 * What a service keeps on disk is written by a thread of its own, so that a disk that hangs holds
 * up neither requests nor systemd's watchdog. The thread does what it is given in that order: a
 * folder is deleted after the state that counts it is on disk. Of a file that waits to be written
 * only the newest text is kept, in the place of the older one, so what waits is bounded.
 *
 * There is one such thread in a process. Children of the service do not use it.
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

/* The loop calls saver_then()'s functions, and says while it runs that the disk hangs. Returns
 * false with errno set. */
bool saver_open(struct loop *loop);

/* The file's new text, which is freed; NULL: there was no memory for it, which is said. */
void saver_write(const char *path, char *text, size_t length);

/*
 * The same for a text that relies on what was given before: it is not written before that, also
 * where an older text of the file waits. A process may have one such file.
 */
void saver_write_in_turn(const char *path, char *text, size_t length);

/* The same with another function than file_write(), which is called in the thread. The context has
 * to be there until saver_finish() has returned true. */
typedef bool saver_write_fn(void *context, const char *text, struct error *error);
void saver_write_by(const char *path, char *text, saver_write_fn *write, void *context);

/* Deletes a folder with all that is in it. It is renamed to `gone` first, on the same file system,
 * and that is on disk: a power cut does not bring it back. */
void saver_remove(const char *path, const char *gone);

/* Called by the loop once all that was given before is done. problem: of what has failed since this
 * was told last, and is told to nobody else; NULL: nothing. */
struct saver_wait {
    void (*done)(void *context, const char *problem);
    void *context;
    /* the saver's */
    uint64_t ticket;
    bool is_set;
    struct saver_wait *next;
};

void saver_then(struct saver_wait *wait);

/* What saver_remove() was given and may still take room on the disk. */
struct saver_leaving {
    uint64_t bytes;
    /* the saver's */
    uint64_t awaited; /* of these, those that `deleted` waits for */
    struct saver_wait deleted;
};

/* After saver_remove(): the folder had so many bytes. They are taken off again once it is deleted;
 * where that has failed, it is said. */
void saver_leave(struct saver_leaving *leaving, uint64_t bytes);

/* Waits until all is done, for so long at most. Returns false if something is left. */
bool saver_finish(int64_t limit_ms);
/* The same at the end of a service, for SAVER_END_MS; what is left, or has failed, is said. */
#define SAVER_END_MS 30000
bool saver_end(void);

/* For so long the thread has been at what it does now; 0: it has nothing to do. */
int64_t saver_busy_ms(void);

#endif
