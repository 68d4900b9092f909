/*
 * Folders of files: how large, remove them, what traces are in them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FOLDERS_H
#define BLKIN_TOOLS_FOLDERS_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define PATH_ROOM 4352

/* A path that does not fit is cut, and is then not there. */
__attribute__((format(printf, 2, 3))) void path_set(char path[PATH_ROOM], const char *format, ...);

/* The files in it, in bytes of disk. */
uint64_t tree_bytes(const char *path);

/* When a file or folder in it was changed last; 0: it is no folder. */
time_t tree_changed(const char *path);

/* Returns false with errno set. What is not there is removed. */
bool tree_remove(const char *path);

/* The old file or the new one is there at any time, after a power cut too. Returns false with error
 * set. */
bool file_write(const char *path, const char *text, size_t length, struct error *error);
/* The same of a folder, or a file, that is complete: it has that name when all of it is on disk.
 * Returns false with errno set. */
bool tree_put(const char *complete, const char *path);

/* Calls for each file; stops and returns false when that does. */
typedef bool tree_file_fn(void *context, const char *folder, const char *name);
bool tree_files(const char *path, tree_file_fn *call, void *context);

/* Makes the folders of a path too, 0700. Returns false with errno set. */
bool folder_make(const char *path);

/* The folder of a service's sockets. The one above it is for all: programs look there for how they
 * are sampled. Returns false with errno set. */
bool folder_make_runtime(const char *path, bool *is_new);

/* The folder is there, is ours, and nobody else can write there. */
bool folder_own(const char *path, const char *key, struct error *error);

#endif
