/* SPDX-License-Identifier: BSD-2-Clause */
#include "check.h"

#include "babeltrace-plugin/base/monotonic.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct shared {
    struct facts facts;
    struct findings findings;
} * shared;

struct facts *findings_open(void)
{
    void *memory =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    shared = memory;
    return &shared->facts;
}

const struct findings *findings_all(void)
{
    return &shared->findings;
}

/* Finds MEND in the format, not in the text, as names in the text may contain any byte. */
void saw(enum level level, const char *id, const char *format, ...)
{
    struct finding *finding = &shared->findings.list[shared->findings.count];
    char first[1024], all[2048];
    va_list values, again;
    int length;

    if (!format || shared->findings.count == FINDINGS_MAX) /* gcc with -fsanitize warns of NULL */
        return;
    *finding = (struct finding){.level = level};
    (void)snprintf(finding->id, sizeof(finding->id), "%s", id);
    (void)snprintf(first, sizeof(first), "%.*s", (int)strcspn(format, MEND), format);
    va_start(values, format);
    va_copy(again, values);
    length = vsnprintf(finding->saw, sizeof(finding->saw), first, values);
    (void)vsnprintf(all, sizeof(all), format, again);
    va_end(again);
    va_end(values);
    if (strstr(format, MEND) && length < (int)sizeof(all))
        (void)snprintf(finding->mend, sizeof(finding->mend), "%s", all + length + 1);
    string_make_plain(finding->saw);
    string_make_plain(finding->mend);
    shared->findings.count++;
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

/* Returns whether the check has run, and its first finding is ok or a note. */
static bool is_well(const char *id)
{
    for (unsigned i = 0; i < shared->findings.count; i++) {
        const struct finding *finding = &shared->findings.list[i];

        if (strcmp(finding->id, id) == 0)
            return finding->level == LEVEL_OK || finding->level == LEVEL_NOTE;
    }
    return false;
}

bool is_about(const struct doctor *doctor, const char *section)
{
    return strcmp(doctor->section, section) == 0;
}

/* ---- running a group ------------------------------------------------------------------------- */

/* Starts a child that runs the checks. Its output goes to /dev/null, as libraries print their own
 * errors. Returns the pid, or -1 with errno set. */
static pid_t group_start(const struct doctor *doctor, const struct check_group *group)
{
    const pid_t parent = getpid(), child = fork();

    if (child == 0) {
        const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        (void)setpgid(0, 0);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
            (void)dup2(null, fd);
        if (getppid() == parent)
            group->run(doctor);
        _exit(0);
    }
    return child;
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
    int status;

    if (group->needs && !is_well(group->needs)) {
        saw(LEVEL_SKIPPED, group->name, "skipped: first repair %s", group->needs);
        return;
    }
    child = group_start(doctor, group);
    if (child < 0) {
        saw(LEVEL_BAD, group->name, "cannot start a process for this check: %s", strerror(errno));
        return;
    }
    status = wait_until(child, clock_ms() + limit_ms);
    if (status == -1)
        saw(LEVEL_BAD, group->name, "no answer within %d s" MEND "%s", limit_ms / 1000,
            group->mend_hang ? group->mend_hang : "");
    else if (WIFSIGNALED(status))
        saw(LEVEL_BAD, group->name, "this check was killed by signal %d (%s)", WTERMSIG(status),
            strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        saw(LEVEL_BAD, group->name, "this check could not be run (status %d)", WEXITSTATUS(status));
}

void *doctor_open_library(void)
{
    (void)setenv("BLKIN_LTTNG", "no", 1);
    return dlopen("libblkin.so.1", RTLD_NOW | RTLD_LOCAL);
}
