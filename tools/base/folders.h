/*
 * Folders and files on disk: age, removal, atomic replacement.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FOLDERS_H
#define BLKIN_TOOLS_FOLDERS_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#define PATH_ROOM 4352 /* more than PATH_MAX, so that a path with a suffix fits */

/* Cuts a path that does not fit. No file has the cut path, which is longer than PATH_MAX. */
__attribute__((format(printf, 2, 3))) void path_set(char path[PATH_ROOM], const char *format, ...);

/* Returns the time of the last change of the path, or of a file or folder inside; 0: there is none.
 */
time_t tree_changed_at(const char *path);

/* Removes a file, or a folder with all that is in it. */
void tree_remove(const char *path);

/* Replaces a file atomically. syncs: the new text also survives a power cut. If not, file_sync()
 * can sync the file later. Returns false with error set; file_sync() only sets the error. */
bool file_write(const char *path, const char *text, size_t length, bool syncs, struct error *error);
void file_sync(const char *path, struct error *error);

/* Makes the folder of a service's sockets, and its parents. A new direct parent is readable for
 * every user, because programs read their rules there. Returns false with errno set. */
bool folder_make_runtime(const char *path, bool *is_new);

/* Makes the folder if it is missing. Returns false with error set unless the folder belongs to this
 * user, and only this user can write there. */
bool folder_make_private(const char *path, struct error *error);

/*
 * For a service that root starts by hand: switches to the owner of an existing state folder, so
 * that the service does not leave files of root there. First makes a missing runtime folder, which
 * systemd makes for a unit. Returns false if the switch fails, after logging the reason.
 */
bool folder_become_owner(const char *state_dir, const char *runtime_dir);

#endif
