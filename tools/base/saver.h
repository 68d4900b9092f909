/*
 * What a service keeps on disk is written by a thread of its own, so that a disk that hangs holds
 * up neither requests nor systemd's watchdog. The thread does what it is given in that order: a
 * folder is deleted after the state that counts it is on disk. Of a file that waits to be written
 * only the newest text is kept, so what waits is bounded.
 *
 * There is one such thread in a process. Children of the service do not use it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SAVER_H
#define BLKIN_TOOLS_SAVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file's new text, which is freed; NULL: there was no memory for it, which is said. */
void saver_write(const char *path, char *text, size_t length);

/* Deletes a folder with all that is in it. */
void saver_remove(const char *path);

/* Waits until all is done, for so long at most. Returns false if something is left. */
bool saver_finish(int64_t limit_ms);

/* For so long the thread has been at what it does now; 0: it has nothing to do. */
int64_t saver_busy_ms(void);

#endif
