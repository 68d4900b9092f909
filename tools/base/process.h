/*
 * Reads processes from /proc.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_PROCESS_H
#define BLKIN_TOOLS_PROCESS_H

#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#define PROCESS_PATH_MAX 512

struct process {
    pid_t pid;
    uid_t user;
    gid_t group;
    pid_t parent;
    char state;       /* see proc(5); 'T': stopped */
    bool is_filtered; /* has a seccomp filter */
    char name[32];
    char library[PROCESS_PATH_MAX], provider[PROCESS_PATH_MAX]; /* "": not mapped */
};

/* Calls the function for each process except this one and its parent. */
void process_each(void (*look)(void *context, struct process *process), void *context);

/* Sets library and provider to the first mapped paths that contain these texts. Returns false if
 * /proc/PID/maps is not readable. */
bool process_find_libraries(struct process *process, const char *library, const char *provider);

/* Reads a variable of the process's initial environment. Returns false if the variable is missing.
 */
bool process_variable(pid_t pid, const char *name, char *value, size_t size);

/* Opens a file of the process's root file system for reading. If the caller is root, opens the file
 * with the rights of the process's user. Returns -1 with errno set. */
int process_open(const struct process *process, const char *path);

/* For root: returns whether the user may read the file. */
bool process_user_reads(const struct passwd *user, const char *path);

/* Returns whether libblkin in the process ignores the file: a user other than root and the
 * process's user may write it. See libblkin/policy/policy.c. */
bool process_distrusts(const struct process *process, const struct stat *status);

/* Returns whether the command line begins with `blkin COMMAND`, where blkin may have a path. */
bool process_is_command(const struct process *process, const char *command);

/* Returns whether a thread of the process has a name with this suffix. */
bool process_has_thread(pid_t pid, const char *suffix);

/* Returns the start of the process in clock ticks since boot; 0: unknown. */
uint64_t process_start(pid_t pid);

/* Returns whether the process has another folder at this path than the caller, as in a container.
 * False if the caller may not see the process's root. */
bool process_has_other_folder(pid_t pid, const char *folder);

#endif
