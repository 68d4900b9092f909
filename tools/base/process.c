/* SPDX-License-Identifier: BSD-2-Clause */
#include "process.h"

#include "babeltrace-plugin/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <unistd.h>

static FILE *open_file(pid_t pid, const char *name)
{
    char path[320];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return fopen(path, "re");
}

/* Name: store / State: S (sleeping) / Uid: 0 0 0 0 / Seccomp: 0 */
static bool read_status(struct process *process)
{
    GUARD_FILE FILE *file = open_file(process->pid, "status");
    char line[256];
    unsigned user, group, mode;
    int parent;

    if (!file)
        return false;
    while (fgets(line, sizeof(line), file)) {
        if (sscanf(line, "Uid: %*u %u", &user) == 1)
            process->user = user;
        if (sscanf(line, "Gid: %*u %u", &group) == 1)
            process->group = group;
        if (sscanf(line, "PPid: %d", &parent) == 1)
            process->parent = parent;
        if (sscanf(line, "Seccomp: %u", &mode) == 1)
            process->is_filtered = mode != 0;
        (void)sscanf(line, "State: %c", &process->state);
        if (strncmp(line, "Name:\t", 6) == 0)
            (void)snprintf(process->name, sizeof(process->name), "%.*s",
                           (int)strcspn(line + 6, "\n"), line + 6);
    }
    return true;
}

void process_each(void (*look)(void *context, struct process *process), void *context)
{
    DIR *folder = opendir("/proc");
    const struct dirent *entry;

    while (folder && (entry = readdir(folder))) {
        struct process process = {.pid = (pid_t)strtol(entry->d_name, NULL, 10)};

        if (process.pid > 0 && process.pid != getpid() && process.pid != getppid() &&
            read_status(&process))
            look(context, &process);
    }
    if (folder)
        (void)closedir(folder);
}

static void take_path(const char *line, const char *wanted, char path[PROCESS_PATH_MAX])
{
    const char *start = strchr(line, '/');

    if (path[0] == '\0' && start && strstr(start, wanted))
        (void)snprintf(path, PROCESS_PATH_MAX, "%.*s", (int)strcspn(start, "\n"), start);
}

/* Finds nothing in a kernel thread, whose maps are empty, and returns true. */
bool process_find_libraries(struct process *process, const char *library, const char *provider)
{
    GUARD_FILE FILE *file = open_file(process->pid, "maps");
    GUARD_TEXT char *line = NULL;
    size_t size = 0;

    if (!file)
        return false;
    while (getline(&line, &size, file) > 0) {
        take_path(line, library, process->library);
        take_path(line, provider, process->provider);
    }
    return true;
}

bool process_variable(pid_t pid, const char *name, char *value, size_t size)
{
    GUARD_FILE FILE *file = open_file(pid, "environ");
    const size_t length = strlen(name);
    GUARD_TEXT char *entry = NULL;
    size_t room = 0;

    while (file && getdelim(&entry, &room, '\0', file) > 0) {
        if (strncmp(entry, name, length) != 0 || entry[length] != '=')
            continue;
        (void)snprintf(value, size, "%s", entry + length + 1);
        return true;
    }
    return false;
}

#define GROUPS_MAX 256

/* "Groups:\t4 24 27" */
static int read_groups(pid_t pid, gid_t groups[GROUPS_MAX])
{
    GUARD_FILE FILE *file = open_file(pid, "status");
    GUARD_TEXT char *line = NULL;
    size_t size = 0;
    char *at;
    int count = 0;

    while (file && getline(&line, &size, file) > 0) {
        if (strncmp(line, "Groups:", strlen("Groups:")) != 0)
            continue;
        at = line + strlen("Groups:");
        while (count < GROUPS_MAX && *(at += strspn(at, " \t\n")))
            groups[count++] = (gid_t)strtoul(at, &at, 10);
        break;
    }
    return count;
}

/* For root: opens the file with another user's rights. */
static int open_as(int folder, const char *path, uid_t user, gid_t group, const gid_t *groups,
                   int count)
{
    gid_t ours[GROUPS_MAX];
    const int our_count = getgroups(GROUPS_MAX, ours);
    int fd, cause;

    (void)setgroups((size_t)count, groups);
    (void)setfsgid(group);
    (void)setfsuid(user);
    fd = openat(folder, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    cause = errno;
    (void)setfsuid(geteuid());
    (void)setfsgid(getegid());
    (void)setgroups(our_count > 0 ? (size_t)our_count : 0, ours);
    errno = cause;
    return fd;
}

/* Opens /proc/PID/root with the caller's rights, because the user may lack permission. Opens the
 * file with that user's rights. */
int process_open(const struct process *process, const char *path)
{
    const char *const inside = path + strspn(path, "/");
    GUARD_FD int folder = -1;
    gid_t groups[GROUPS_MAX];
    char root[64];

    (void)snprintf(root, sizeof(root), "/proc/%d/root", (int)process->pid);
    folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -1;
    return geteuid() == 0 ? open_as(folder, inside, process->user, process->group, groups,
                                    read_groups(process->pid, groups))
                          : openat(folder, inside, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

bool process_user_reads(const struct passwd *user, const char *path)
{
    GUARD_FD int fd = -1;
    gid_t groups[GROUPS_MAX];
    int count = GROUPS_MAX;

    (void)getgrouplist(user->pw_name, user->pw_gid, groups, &count);
    fd = open_as(AT_FDCWD, path, user->pw_uid, user->pw_gid, groups,
                 count < GROUPS_MAX ? count : GROUPS_MAX);
    return fd >= 0;
}

/* Reads the beginning of the file and closes it. Returns -1 with errno set. */
static ssize_t read_beginning(int fd, char *text, size_t size)
{
    GUARD_FD const int closed = fd;

    return closed < 0 ? -1 : read(closed, text, size - 1);
}

bool process_distrusts(const struct process *process, const struct stat *status)
{
    return (status->st_uid != 0 && status->st_uid != process->user) ||
           (status->st_mode & (S_IWGRP | S_IWOTH));
}

static bool has_suffix(const char *text, const char *suffix)
{
    return strlen(text) >= strlen(suffix) &&
           strcmp(text + strlen(text) - strlen(suffix), suffix) == 0;
}

bool process_is_command(const struct process *process, const char *command)
{
    char path[64], text[PROCESS_PATH_MAX] = "";
    ssize_t length;

    (void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)process->pid);
    length = read_beginning(open(path, O_RDONLY | O_CLOEXEC), text, sizeof(text));
    text[length > 0 ? length : 0] = '\0';
    return length > 0 && (strcmp(text, "blkin") == 0 || has_suffix(text, "/blkin")) &&
           (ssize_t)strlen(text) + 1 < length && strcmp(text + strlen(text) + 1, command) == 0;
}

bool process_has_thread(pid_t pid, const char *suffix)
{
    char path[320], name[64];
    const struct dirent *entry;
    ssize_t length;
    bool has = false;
    DIR *folder;

    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    folder = opendir(path);
    while (folder && !has && (entry = readdir(folder))) {
        (void)snprintf(path, sizeof(path), "%.255s/comm", entry->d_name);
        length =
            read_beginning(openat(dirfd(folder), path, O_RDONLY | O_CLOEXEC), name, sizeof(name));
        name[length > 0 ? length : 0] = '\0';
        name[strcspn(name, "\n")] = '\0';
        has = has_suffix(name, suffix);
    }
    if (folder)
        (void)closedir(folder);
    return has;
}

uint64_t process_start(pid_t pid)
{
    GUARD_FILE FILE *file = open_file(pid, "stat");
    unsigned long long start = 0;
    char text[512] = "";
    const char *end;

    if (file)
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    end = strrchr(text, ')');
    if (end && sscanf(end,
                      ") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                      "%*s %llu",
                      &start) != 1)
        start = 0;
    return start;
}

/* Does not compare mount namespaces: systemd gives many services a namespace of their own with the
 * same /run. */
bool process_has_other_folder(pid_t pid, const char *folder)
{
    char path[320];
    struct stat theirs, ours;
    bool is_theirs;

    (void)snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
    if (stat(path, &theirs) < 0)
        return false; /* no permission */
    (void)snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, folder);
    is_theirs = stat(path, &theirs) == 0;
    if (stat(folder, &ours) < 0)
        return is_theirs;
    return !is_theirs || theirs.st_dev != ours.st_dev || theirs.st_ino != ours.st_ino;
}
