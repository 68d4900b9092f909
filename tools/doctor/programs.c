/* Checks whether programs with libblkin are registered with LTTng. Reads their files of settings.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "babeltrace-plugin/base/file.h"

#include "tools/base/process.h"

#include <errno.h>
#include <lttng/lttng.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROVIDER_MAPPED "/libblkin-lttng.so"
#define PROVIDER_FILE   "libblkin-lttng.so.1"
/* The end of the names of LTTng's threads, which a fork does not inherit. */
#define LTTNG_THREAD "-ust"

/* ---- registered programs --------------------------------------------------------------------- */

static bool is_registered(const struct facts *facts, pid_t pid)
{
    for (unsigned i = 0; i < facts->registered_count; i++) {
        if (facts->registered[i] == pid)
            return true;
    }
    return false;
}

/* Returns the number of programs with BlkKin's events, or LTTng's error. */
static int list_registered(struct facts *facts)
{
    struct lttng_domain domain = {.type = LTTNG_DOMAIN_UST, .buf_type = LTTNG_BUFFER_PER_UID};
    struct lttng_handle *handle = lttng_create_handle(NULL, &domain);
    struct lttng_event *events = NULL;
    const int count = handle ? lttng_list_tracepoints(handle, &events) : -LTTNG_ERR_NOMEM;

    for (int i = 0; i < count; i++) {
        if ((strncmp(events[i].name, "blkin:", 6) == 0 ||
             strncmp(events[i].name, "zipkin:", 7) == 0) &&
            !is_registered(facts, events[i].pid) && facts->registered_count < REGISTERED_MAX)
            facts->registered[facts->registered_count++] = events[i].pid;
    }
    free(events);
    lttng_destroy_handle(handle);
    return count < 0 ? count : (int)facts->registered_count;
}

/* ---- why a program is not registered --------------------------------------------------------- */

/* Finds the home folder of the process, where the session daemon of its user has sockets. */
static void home_of(pid_t pid, char *home, size_t size)
{
    if (!process_variable(pid, "LTTNG_HOME", home, size) &&
        !process_variable(pid, "HOME", home, size))
        *home = '\0';
}

static bool has_other_home(const struct facts *facts, pid_t pid, char *home, size_t size)
{
    char other[256];

    if (facts->sessiond_user == 0) /* root's socket has one path for all users */
        return false;
    home_of(pid, home, size);
    home_of(facts->sessiond, other, sizeof(other));
    return *home && *other && strcmp(home, other) != 0;
}

static bool program_has_file(pid_t pid, const char *folder, const char *file)
{
    char path[PROCESS_PATH_MAX + 64];

    (void)snprintf(path, sizeof(path), "/proc/%d/root%s/%s", (int)pid, folder, file);
    return access(path, F_OK) == 0;
}

/* Returns whether libblkin in the process would find the provider. Searches as libblkin does:
 * beside the library, then in ld.so's folders. */
static bool has_provider(const struct process *process)
{
    static const char *const folders[] = {"/usr/lib", "/usr/local/lib", LIBRARY_DIR};
    char beside[PROCESS_PATH_MAX];

    (void)snprintf(beside, sizeof(beside), "%s", process->library);
    if (strrchr(beside, '/'))
        *strrchr(beside, '/') = '\0';
    if (program_has_file(process->pid, beside, PROVIDER_FILE))
        return true;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        if (program_has_file(process->pid, folders[i], PROVIDER_FILE))
            return true;
    }
    return false;
}

#define UNREGISTERED "process %d (%s) uses BlkKin, but is not registered: "

/* Reports a program that looks for a session daemon in another folder. Returns whether it does. */
static bool explain_elsewhere(const struct doctor *doctor, const struct process *process)
{
    char home[256];

    if (doctor->facts->sessiond_user == 0 && process_has_other_folder(process->pid, "/run/lttng")) {
        saw(LEVEL_BAD, "program.namespace",
            UNREGISTERED "its /run/lttng is not that of lttng-sessiond: it is in a container" MEND
                         "mount the host's /run/lttng and /dev/shm into the container",
            PROCESS_NAMED(process));
        return true;
    }
    if (has_other_home(doctor->facts, process->pid, home, sizeof(home))) {
        saw(LEVEL_BAD, "program.home",
            UNREGISTERED "its home (LTTNG_HOME or HOME) is %s, which is not lttng-sessiond's" MEND
                         "start both with the same LTTNG_HOME, or use root's session daemon",
            PROCESS_NAMED(process), home);
        return true;
    }
    return false;
}

void program_without_lttng(const struct doctor *doctor, const struct process *process, char *why,
                           size_t size)
{
    const uint64_t start = process_start(process->pid);
    char value[256] = "";

    if (process_variable(process->pid, "BLKIN_LTTNG", value, sizeof(value)) &&
        strcmp(value, "no") == 0)
        (void)snprintf(why, size, "BLKIN_LTTNG=no is in its environment");
    else if (process->is_filtered)
        (void)snprintf(why, size, "it has a seccomp filter");
    else if (strcmp(value, "yes") != 0 && !doctor->facts->sessiond)
        (void)snprintf(why, size, "no lttng-sessiond runs");
    else if (strcmp(value, "yes") != 0 && start && start < process_start(doctor->facts->sessiond))
        (void)snprintf(why, size,
                       "it started before the session daemon: restart it, or set BLKIN_LTTNG=yes");
    else
        (void)snprintf(why, size,
                       "it has the agent's rings (blkin run), or libblkin.a without a call of "
                       "blkin_init(), or another reason, which it prints with BLKIN_DEBUG=1");
}

static void explain_without_provider(const struct doctor *doctor, const struct process *process)
{
    char value[256];

    if (process_variable(process->pid, "BLKIN_PROVIDER", value, sizeof(value))) {
        saw(LEVEL_BAD, "program.provider",
            UNREGISTERED "BLKIN_PROVIDER=%s is in its environment" MEND
                         "start it without that variable",
            PROCESS_NAMED(process), value);
    } else if (!has_provider(process)) {
        saw(LEVEL_BAD, "program.provider",
            UNREGISTERED "there is no " PROVIDER_FILE " beside %s" MEND
                         "install package libblkin-lttng1, then start the program again",
            PROCESS_NAMED(process), process->library);
    } else if (!explain_elsewhere(doctor, process)) {
        program_without_lttng(doctor, process, value, sizeof(value));
        saw(LEVEL_BAD, "program.provider",
            UNREGISTERED "it has not loaded LTTng: %s" MEND
                         "start it again, now that lttng-sessiond runs; with BLKIN_DEBUG=1 in its "
                         "environment it prints the reason",
            PROCESS_NAMED(process), value);
    }
}

static void explain_with_provider(const struct doctor *doctor, const struct process *process)
{
    if (explain_elsewhere(doctor, process))
        return;
    if (!process_has_thread(process->pid, LTTNG_THREAD))
        saw(LEVEL_BAD, "program.forked",
            UNREGISTERED "it was forked by _Fork(3) or clone(2), and has no threads of LTTng" MEND
                         "LTTng cannot record it; blkin agent can",
            PROCESS_NAMED(process));
    else
        saw(LEVEL_BAD, "program.unregistered",
            UNREGISTERED
            "LTTng is loaded in it, but has not registered it: it may still be trying (every 5 "
            "s), or be stopped" MEND
            "look again in 5 s; with LTTNG_UST_DEBUG=1 in its environment it prints the reason",
            PROCESS_NAMED(process));
}

/* ---- a program's files of settings ----------------------------------------------------------- */

ssize_t program_read_file(const struct process *process, const char *path, char *text, size_t size,
                          struct stat *status)
{
    GUARD_FD const int fd = process_open(process, path);
    const ssize_t length = fd >= 0 && fstat(fd, status) == 0 ? read(fd, text, size - 1) : -1;

    text[length > 0 ? length : 0] = '\0';
    return length;
}

void program_tell_distrust(const char *id, const char *program, const char *path,
                           const struct stat *status)
{
    saw(LEVEL_BAD, id,
        "%s ignores %s: it belongs to user %u and has mode %03o, and only root and the program's "
        "own user may write to it" MEND "chown root %s; chmod 644 %s",
        program, path, (unsigned)status->st_uid, (unsigned)(status->st_mode & 07777), path, path);
}

/* ---- all programs ---------------------------------------------------------------------------- */

struct program_search {
    const struct doctor *doctor;
    unsigned unregistered, hidden;
};

static void program_look_at(void *context, struct process *process)
{
    struct program_search *search = context;

    if (!process_find_libraries(process, LIBRARY_FILE, PROVIDER_MAPPED)) {
        search->hidden++;
        return;
    }
    if ((!process->library[0] && !process->provider[0]) ||
        is_registered(search->doctor->facts, process->pid))
        return;
    if (search->unregistered++ >= EXPLAINED_MAX)
        return;
    if (process->provider[0])
        explain_with_provider(search->doctor, process);
    else
        explain_without_provider(search->doctor, process);
}

void check_programs(const struct doctor *doctor)
{
    const int count = list_registered(doctor->facts);
    struct program_search search = {.doctor = doctor};

    if (count < 0) {
        saw(LEVEL_BAD, "program.registered", "lttng-sessiond cannot list the programs: %s",
            lttng_strerror(count));
        return;
    }
    if (count > 0)
        saw(LEVEL_OK, "program.registered",
            "processes with events of BlkKin: %d, such as process %d", count,
            (int)doctor->facts->registered[0]);
    else
        saw(LEVEL_BAD, "program.registered",
            "no running program with events of BlkKin is registered with lttng-sessiond" MEND
            "start one that is linked with libblkin; if it runs already, see below");
    process_each(program_look_at, &search);
    if (search.unregistered > EXPLAINED_MAX)
        saw(LEVEL_NOTE, "program.more", "%u more processes use BlkKin and are not registered",
            search.unregistered - EXPLAINED_MAX);
    if (search.hidden > 0 && search.unregistered == 0 && geteuid() != 0)
        saw(LEVEL_NOTE, "program.hidden",
            "%u processes belong to other users, and cannot be inspected" MEND "sudo blkin doctor",
            search.hidden);
}
