/* Findings, and groups of checks that run in processes of their own.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/text.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Escapes control characters, as names of sessions and programs may contain any byte. */
static void print_into(char *text, size_t size, const char *format, va_list values)
{
    (void)vsnprintf(text, size, format, values);
    string_make_plain(text);
}

void saw(const struct doctor *doctor, enum level level, const char *id, const char *format, ...)
{
    struct finding *finding = &doctor->findings[*doctor->count];
    va_list values;

    if (*doctor->count == FINDINGS_MAX)
        return;
    *finding = (struct finding){.level = level};
    (void)snprintf(finding->id, sizeof(finding->id), "%s", id);
    va_start(values, format);
    print_into(finding->saw, sizeof(finding->saw), format, values);
    va_end(values);
    ++*doctor->count;
}

void mend(const struct doctor *doctor, const char *format, ...)
{
    struct finding *finding = &doctor->findings[*doctor->count - 1];
    va_list values;

    va_start(values, format);
    print_into(finding->mend, sizeof(finding->mend), format, values);
    va_end(values);
}

void list_counts(char *list, size_t size, const json_t *object, const struct count_name *counts,
                 size_t count)
{
    char item[100];

    for (size_t i = 0; i < count; i++) {
        const int64_t number = number_in(object, counts[i].name);

        (void)snprintf(item, sizeof(item), "%" PRId64 " %s", number, counts[i].what);
        if (number)
            string_list_add(list, size, item);
    }
}

/* Returns whether the check has run without a bad finding. */
static bool is_well(const struct doctor *doctor, const char *id)
{
    for (unsigned i = 0; i < *doctor->count; i++) {
        const struct finding *finding = &doctor->findings[i];

        if (strcmp(finding->id, id) == 0)
            return finding->level == LEVEL_OK || finding->level == LEVEL_NOTE;
    }
    return false;
}

bool is_about(const struct doctor *doctor, const char *section)
{
    return strcmp(doctor->section, section) == 0;
}

bool needs_lttng(const struct doctor *doctor)
{
    return is_about(doctor, "live");
}

/* ---- running a group ------------------------------------------------------------------------- */

#define ARGUMENTS_MAX 256

/* Sends the child's output to /dev/null, as libraries print their own errors. Returns errno. */
static int group_start(const struct doctor *doctor, const char *name, pid_t *child)
{
    char flag[64], *arguments[ARGUMENTS_MAX] = {"blkin", "doctor", flag};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    size_t count = 3;
    int error;

    (void)snprintf(flag, sizeof(flag), GROUP_FLAG "%s", name);
    for (char **rest = doctor->arguments; *rest && count < ARGUMENTS_MAX - 1; rest++)
        arguments[count++] = *rest;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    (void)posix_spawn_file_actions_adddup2(&actions, doctor->shared, GROUP_FILE);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        (void)posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    error = posix_spawn(child, "/proc/self/exe", &actions, &attributes, arguments, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return error;
}

/* Returns the status of waitpid(2), or -1 after killing the child's process group. */
static int wait_until(pid_t child, int64_t deadline_ms)
{
    const struct timespec pause = {0, 2000000};
    int status = -1;

    while (waitpid(child, &status, WNOHANG) == 0) {
        if (clock_ms() >= deadline_ms) {
            (void)kill(-child, SIGKILL);
            (void)waitpid(child, &status, 0);
            return -1;
        }
        (void)nanosleep(&pause, NULL);
    }
    (void)kill(-child, SIGKILL);
    return status;
}

void group_run(const struct doctor *doctor, const struct check_group *group, int limit_ms)
{
    pid_t child;
    int status, error;

    if (group->needs && !is_well(doctor, group->needs)) {
        saw(doctor, LEVEL_SKIPPED, group->name, "not looked at: first mend %s", group->needs);
        return;
    }
    error = group_start(doctor, group->name, &child);
    if (error) {
        saw(doctor, LEVEL_BAD, group->name, "cannot start a process for this check: %s",
            strerror(error));
        return;
    }
    status = wait_until(child, clock_ms() + limit_ms);
    if (status == -1) {
        saw(doctor, LEVEL_BAD, group->name, "no answer within %d s", limit_ms / 1000);
        mend(doctor, "%s", group->mend_hang ? group->mend_hang : "");
    } else if (WIFSIGNALED(status)) {
        saw(doctor, LEVEL_BAD, group->name, "this check was killed by signal %d (%s)",
            WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) != 0) {
        saw(doctor, LEVEL_BAD, group->name, "this check could not be run (status %d)",
            WEXITSTATUS(status));
    }
}

void *doctor_open_library(void)
{
    (void)setenv("BLKIN_LTTNG", "no", 1);
    return dlopen("libblkin.so.1", RTLD_NOW | RTLD_LOCAL);
}
