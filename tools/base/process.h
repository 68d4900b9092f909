/*
 * Processes, as /proc tells of them.
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
    char state;       /* of proc(5): 'T' is stopped */
    bool is_filtered; /* it is under a seccomp filter */
    char name[32];
    char library[PROCESS_PATH_MAX], provider[PROCESS_PATH_MAX]; /* "": not in it */
};

/* Calls for each process but ourselves. */
void process_each(void (*look)(void *context, struct process *process), void *context);

/* Fills in library and provider: the paths of mapped files that have these texts in them. Returns
 * false if that cannot be seen. */
bool process_find_libraries(struct process *process, const char *library, const char *provider);

/* A variable of the environment that it was started with. */
bool process_variable(pid_t pid, const char *name, char *value, size_t size);

/* Opens a file for reading as it would itself: in its root folder, with its user's rights. -1 with
 * errno. */
int process_open(const struct process *process, const char *path);

/* For root: may a user read the file? */
bool process_user_reads(const struct passwd *user, const char *path);

/* Does libblkin in the process ignore the file, as others than root and the process could write it?
 * See libblkin/policy/policy.c. */
bool process_distrusts(const struct process *process, const struct stat *status);

/* Was it started as `blkin COMMAND`? */
bool process_is_command(const struct process *process, const char *command);

/* The path of a file that it has open, and that ends so. */
bool process_has_open(pid_t pid, const char *end, char *path, size_t size);

/* Has it the file open for writing? is_hidden: that is not for us to see, as it is another user's.
 */
bool process_writes(pid_t pid, const char *path, bool *is_hidden);

/* Has it a thread whose name ends so? */
bool process_has_thread(pid_t pid, const char *end);

/* When it started, in clock ticks since the boot; 0: that cannot be seen. */
uint64_t process_start(pid_t pid);

/* Has it another folder there than we have, as in a container? */
bool process_is_elsewhere(pid_t pid, const char *folder);

#endif
