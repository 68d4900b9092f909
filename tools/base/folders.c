/* SPDX-License-Identifier: BSD-2-Clause */
#include "folders.h"

#include "babeltrace-plugin/base/file.h"
#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TREE_FDS 16 /* that nftw(3) may have open */

void path_set(char path[PATH_ROOM], const char *format, ...)
{
    va_list values;

    va_start(values, format);
    (void)vsnprintf(path, PATH_ROOM, format, values);
    va_end(values);
}

/* The latest change that tree_changed_at() has found: a variable, because nftw(3) passes no context
 * to its callback. */
static _Thread_local time_t latest_change;

static int note_change(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)path;
    (void)where;
    if ((type == FTW_D || (type == FTW_F && S_ISREG(status->st_mode))) &&
        status->st_mtime > latest_change)
        latest_change = status->st_mtime;
    return 0;
}

time_t tree_changed_at(const char *path)
{
    latest_change = 0;
    (void)nftw(path, note_change, TREE_FDS, FTW_PHYS);
    return latest_change;
}

/* Removes as much as possible. */
static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    (void)remove(path);
    return 0;
}

void tree_remove(const char *path)
{
    (void)nftw(path, remove_entry, TREE_FDS, FTW_DEPTH | FTW_PHYS);
}

bool file_write(const char *path, const char *text, size_t length, bool syncs, struct error *error)
{
    char beside[PATH_ROOM];
    bool is_written;
    int fd;

    path_set(beside, "%s.new", path);
    fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    is_written = fd >= 0 && write_all(fd, text, length) && (!syncs || fsync(fd) == 0);
    if (fd >= 0 && close(fd) != 0)
        is_written = false;
    is_written = is_written && rename(beside, path) == 0 && (!syncs || file_store_name(path));
    if (!is_written)
        error_set(error, "cannot write %s: %s", path, strerror(errno));
    return is_written;
}

void file_sync(const char *path, struct error *error)
{
    GUARD_FD const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0 || fsync(fd) != 0 || !file_store_name(path))
        error_set(error, "cannot write %s: %s", path, strerror(errno));
}

/* Makes a folder and its parents with mode 0700. Returns false with errno set. */
static bool folder_make(const char *path)
{
    char part[PATH_ROOM];

    path_set(part, "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, 0700) != 0 && errno != EEXIST)
            return false;
        *slash = '/';
    }
    return mkdir(part, 0700) == 0 || errno == EEXIST;
}

/* Sets `parent` to the path of the parent folder. Returns false for a path without
 * one, or whose parent is "/". */
static bool folder_cut_name(const char *path, char parent[PATH_ROOM])
{
    char *slash;

    path_set(parent, "%s", path);
    slash = strrchr(parent, '/');
    if (!slash || slash == parent)
        return false;
    *slash = '\0';
    return true;
}

bool folder_make_runtime(const char *path, bool *is_new)
{
    char folder[PATH_ROOM], higher[PATH_ROOM];

    if (folder_cut_name(path, folder)) {
        if (folder_cut_name(folder, higher))
            (void)folder_make(higher);
        if (mkdir(folder, 0755) == 0)
            (void)chmod(folder, 0755); /* independent of the umask */
    }
    *is_new = mkdir(path, 0700) == 0;
    return *is_new || errno == EEXIST;
}

bool folder_make_private(const char *path, struct error *error)
{
    struct stat status;

    if (!folder_make(path))
        error_set(error, "state-dir \"%s\": cannot make the folder: %s", path, strerror(errno));
    else if (lstat(path, &status) != 0)
        error_set(error, "state-dir \"%s\": %s", path, strerror(errno));
    else if (!S_ISDIR(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 022))
        error_set(error,
                  "state-dir \"%s\": expected a folder of the user who runs this, which nobody "
                  "else can write",
                  path);
    else
        return true;
    return false;
}

bool folder_become_owner(const char *state_dir, const char *runtime_dir)
{
    const struct passwd *user;
    struct stat status;
    bool is_new;

    if (geteuid() != 0 || stat(state_dir, &status) != 0 || status.st_uid == 0)
        return true;
    user = getpwuid(status.st_uid);
    if (user && folder_make_runtime(runtime_dir, &is_new) && is_new)
        (void)!chown(runtime_dir, user->pw_uid, user->pw_gid);
    if (!user || initgroups(user->pw_name, user->pw_gid) != 0 || setgid(user->pw_gid) != 0 ||
        setuid(user->pw_uid) != 0 || setenv("HOME", user->pw_dir, 1) != 0) {
        say(BK1030, "state-dir \"%s\" belongs to user %u: cannot become that user: %s", state_dir,
            (unsigned)status.st_uid, user ? strerror(errno) : "no such user");
        return false;
    }
    (void)umask(077); /* as in the service's unit */
    say(BK1031, "runs as user %s, the owner of state-dir \"%s\"", user->pw_name, state_dir);
    return true;
}
