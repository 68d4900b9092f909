/* Checks programs that "blkin run" has started: whether they have loaded its library, and whether
 * they can read its file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "babeltrace-plugin/base/file.h"

#include "libblkin/preload/config.h"
#include "tools/base/process.h"
#include "tools/run/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define PRELOAD_MAPPED "/libblkin-preload.so"
#define LTTNG_MAPPED   "/liblttng-ust.so"
#define SOCKET         "/run/blkin/rings/socket"

/* The number of processes of one kind, and the first process. */
struct preload_kind {
    unsigned count;
    struct process first;
};

struct preload_search {
    const struct doctor *doctor;
    struct process wanted; /* --pid */
    bool is_hidden;
    struct preload_kind traced;   /* with the library */
    struct preload_kind filtered; /* traced, with a seccomp filter and without rings */
    struct preload_kind secure;   /* for which LD_PRELOAD is ignored */
    struct preload_kind cleared;  /* without the LD_PRELOAD of their parents */
};

static void preload_note(struct preload_kind *kind, const struct process *process)
{
    if (kind->count++ == 0)
        kind->first = *process;
}

/* ---- the run file ---- */

static void look_at_text(const struct process *process, const char *path, const char *text)
{
    static struct preload_config config;
    char wrong[PRELOAD_CONFIG_MAX];
    const char *expected;

    preload_config_clear(&config);
    if (preload_config_read(&config, text, wrong, &expected))
        saw(LEVEL_BAD, "run.text",
            "%s: \"%s\" is wrong: process %d (%s) keeps its previous settings" MEND "expected %s",
            path, wrong, PROCESS_NAMED(process), expected);
    else if (!preload_config_has_program(&config, process->name))
        saw(LEVEL_NOTE, "run.text",
            "%s: programs= does not name process %d (%s)" MEND "to trace it, add its name there",
            path, PROCESS_NAMED(process));
    else
        saw(LEVEL_OK, "run.text", "%s is right", path);
}

static void look_at_file(const struct process *process)
{
    char path[PROCESS_PATH_MAX], text[PRELOAD_CONFIG_MAX + 1], name[64];
    struct stat status = {.st_mode = 0};
    ssize_t length;

    if (!process_variable(process->pid, "BLKIN_RUN_FILE", path, sizeof(path)))
        (void)snprintf(path, sizeof(path), "%s", PRELOAD_CONFIG_FILE);
    length = program_read_file(process, path, text, sizeof(text), &status);
    (void)snprintf(name, sizeof(name), "process %d (%s)", PROCESS_NAMED(process));
    if (length >= 0 && process_distrusts(process, &status))
        program_tell_distrust("run.file", name, path, &status);
    else if (length >= 0)
        look_at_text(process, path, text);
    else if (errno != ENOENT)
        saw(LEVEL_BAD, "run.file",
            "%s cannot be read by %s: %s" MEND
            "allow the user of that process to read the file, and to enter its folder",
            path, name, strerror(errno));
}

/* ---- the output of BLKIN_DEBUG: libblkin/base/debug.c writes to the standard error ---- */

static void check_debug(const struct process *process)
{
    char value[16], path[64], target[PROCESS_PATH_MAX] = "nowhere: it is closed";
    const bool is_set = process_variable(process->pid, "BLKIN_DEBUG", value, sizeof(value));
    ssize_t length;
    bool is_lost;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)process->pid, STDERR_FILENO);
    length = readlink(path, target, sizeof(target) - 1);
    if (length < 0 && errno != ENOENT) {
        saw(LEVEL_NOTE, "program.debug",
            "cannot see where process %d (%s) writes the lines of BLKIN_DEBUG: %s" MEND
            "sudo blkin doctor --pid=%d",
            PROCESS_NAMED(process), strerror(errno), (int)process->pid);
        return;
    }
    if (length >= 0)
        target[length] = '\0';
    is_lost = length < 0 || strcmp(target, "/dev/null") == 0 || strstr(target, " (deleted)");
    saw(is_lost ? LEVEL_NOTE : LEVEL_OK, "program.debug",
        "process %d (%s) %s its standard error, %.400s%s" MEND "%s", PROCESS_NAMED(process),
        is_set ? "writes the lines of BLKIN_DEBUG to"
               : "runs without BLKIN_DEBUG; with it, the lines would go to",
        target,
        strncmp(target, "socket:", strlen("socket:")) == 0
            ? " (if that is a connection to a client: to syslog, facility daemon)"
            : "",
        is_lost  ? "start it with its standard error in a file: 2>>FILE, or StandardError= in its "
                   "unit"
        : is_set ? ""
                 : "to see why something is not traced, start it with BLKIN_DEBUG=1 in its "
                   "environment");
}

/* ---- the process of --pid, which should have the library ---- */

static bool has_variable(const struct process *process, char list[PROCESS_PATH_MAX])
{
    return process_variable(process->pid, "LD_PRELOAD", list, PROCESS_PATH_MAX) &&
           strstr(list, PRELOAD_MAPPED);
}

static bool is_child_of_traced(const struct process *process, struct process *parent)
{
    *parent = (struct process){.pid = process->parent};
    return process->parent > 1 && process_find_libraries(parent, PRELOAD_MAPPED, LTTNG_MAPPED) &&
           parent->library[0];
}

/* Returns whether the kernel told ld.so to ignore variables (AT_SECURE). */
static bool is_secure(const struct process *process)
{
    char path[64];
    unsigned long value[2] = {AT_NULL, 0};
    GUARD_FILE FILE *file = NULL;

    (void)snprintf(path, sizeof(path), "/proc/%d/auxv", (int)process->pid);
    file = fopen(path, "re");
    while (file && fread(value, sizeof(value), 1, file) == 1 && value[0] != AT_SECURE)
        ;
    return value[0] == AT_SECURE && value[1] != 0;
}

#define WHY_CLEARED                                                                           \
    "is a child of process %d, which is traced, but was started without its LD_PRELOAD: not " \
    "traced"
#define MEND_CLEARED                                                                  \
    "let the parent pass LD_PRELOAD, BLKIN_RUN and BLKIN_RUN_FILE on: in dovecot by " \
    "import_environment, in exim by keep_environment"
#define WHY_SECURE                                                                          \
    "was started with two users (a real and an effective one), or by a file that gives it " \
    "rights: ld.so ignores LD_PRELOAD then, and the program is not traced"
#define MEND_SECURE "start its first process as one user: User= in the unit, or setpriv --reuid"

static bool has_mapped(const struct process *process, const char *file)
{
    struct process other = *process;

    other.provider[0] = '\0';
    return process_find_libraries(&other, PRELOAD_MAPPED, file) && other.provider[0];
}

/* Returns whether the program itself calls libblkin. With libblkin.a, only its rings show that. */
static bool calls_libblkin(const struct process *process)
{
    return has_mapped(process, LIBRARY_FILE) || has_mapped(process, RINGS_MEMORY);
}

/* Explains why the process has not loaded the library. */
static void preload_explain(const struct process *process)
{
    char list[PROCESS_PATH_MAX], path[64];
    struct process parent;
    struct error error;

    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)process->pid);
    if (!has_variable(process, list) && calls_libblkin(process))
        saw(LEVEL_OK, "program.preloaded",
            "process %d (%s) calls libblkin itself, and was not started by `blkin run`",
            PROCESS_NAMED(process));
    else if (!has_variable(process, list) && is_child_of_traced(process, &parent))
        saw(LEVEL_BAD, "program.preloaded", "process %d (%s) " WHY_CLEARED MEND MEND_CLEARED,
            PROCESS_NAMED(process), (int)parent.pid);
    else if (!has_variable(process, list))
        saw(LEVEL_BAD, "program.preloaded",
            "process %d (%s) was not started by `blkin run`: only spans that its own code makes "
            "are recorded" MEND "start it with blkin run; for a unit of systemd: blkin run --print",
            PROCESS_NAMED(process));
    else if (!program_can_preload(path, PRELOAD_DIR PRELOAD_MAPPED, &error))
        saw(LEVEL_BAD, "program.preloaded", "process %d (%s): %s", PROCESS_NAMED(process),
            error.text);
    else if (is_secure(process))
        saw(LEVEL_BAD, "program.preloaded", "process %d (%s) " WHY_SECURE MEND MEND_SECURE,
            PROCESS_NAMED(process));
    else
        saw(LEVEL_BAD, "program.preloaded",
            "process %d (%s) has LD_PRELOAD=%s, but ld.so has not loaded it" MEND
            "ld.so prints the reason on the program's standard error; in a container, "
            "does the path exist?",
            PROCESS_NAMED(process), list);
}

static void look_at_wanted(const struct preload_search *search)
{
    const struct process *process = &search->wanted;

    if (process->name[0] == '\0') {
        saw(LEVEL_BAD, "program.preloaded",
            "there is no process %d" MEND "find the number with pidof or ps",
            (int)search->doctor->pid);
    } else if (search->is_hidden) {
        saw(LEVEL_BAD, "program.preloaded",
            "process %d (%s) belongs to another user, and cannot be inspected" MEND
            "sudo blkin doctor --pid=%d",
            PROCESS_NAMED(process), (int)process->pid);
        return;
    } else if (process->library[0]) {
        saw(LEVEL_OK, "program.preloaded", "process %d (%s) has %s", PROCESS_NAMED(process),
            process->library);
        look_at_file(process);
    } else {
        preload_explain(process);
    }
    if (process->name[0] != '\0')
        check_debug(process);
}

/* ---- all processes ---- */

/* Returns whether BLKIN_RUN of the process has the key. */
static bool has_run_key(const struct process *process, const char *key)
{
    char text[PRELOAD_CONFIG_MAX];

    return process_variable(process->pid, "BLKIN_RUN", text, sizeof(text)) && strstr(text, key);
}

/* Returns whether the process can reach the agent's socket for rings. */
static bool can_ask_for_rings(const struct process *process, char path[PROCESS_PATH_MAX])
{
    char seen[PROCESS_PATH_MAX + 32];

    if (!process_variable(process->pid, "BLKIN_RINGS", path, PROCESS_PATH_MAX))
        (void)snprintf(path, PROCESS_PATH_MAX, "%s", SOCKET);
    (void)snprintf(seen, sizeof(seen), "/proc/%d/root%s", (int)process->pid, path);
    return access(seen, F_OK) == 0;
}

static void tell_of_filtered(const struct preload_search *search)
{
    const struct process *process = &search->filtered.first;
    char path[PROCESS_PATH_MAX], who[200];

    if (search->filtered.count == 0)
        return;
    (void)snprintf(who, sizeof(who),
                   "processes with libblkin-preload.so and a seccomp filter, but without rings: "
                   "%u, such as process %d (%s)",
                   search->filtered.count, PROCESS_NAMED(process));
    if (has_run_key(process, "seccomp=leave"))
        saw(LEVEL_BAD, "program.filtered",
            "%s: not traced, as its seccomp=leave says so" MEND
            "start it with blkin run --seccomp=rings",
            who);
    else if (!can_ask_for_rings(process, path))
        saw(LEVEL_BAD, "program.filtered",
            "%s: not traced: under a filter only the agent's rings are used, and for this "
            "process there is no socket %s" MEND
            "start blkin agent before the program, and mount /run/blkin/rings into a "
            "container; if the filter allows what LTTng does: blkin run --seccomp=trace",
            who, path);
    else
        saw(LEVEL_NOTE, "program.filtered",
            "%s: not traced so far: it has served no request yet, or had no rings when it "
            "installed its filter" MEND "send it a request; if that does not help, start it again",
            who);
}

/* Reports untraced programs, whose LD_PRELOAD was ignored or removed. */
static void tell_of_untraced(const struct preload_search *search)
{
    if (search->secure.count)
        saw(LEVEL_BAD, "program.secure",
            "processes for which LD_PRELOAD is ignored: %u. Process %d (%s) " WHY_SECURE MEND
                MEND_SECURE,
            search->secure.count, PROCESS_NAMED(&search->secure.first));
    if (search->cleared.count)
        saw(LEVEL_NOTE, "program.cleared",
            "processes without their parents' LD_PRELOAD: %u. Process %d (%s) " WHY_CLEARED MEND
                MEND_CLEARED,
            search->cleared.count, PROCESS_NAMED(&search->cleared.first),
            (int)search->cleared.first.parent);
}

/* Checks whether the process has LTTng or rings, and explains why not. */
static void check_parts(const struct doctor *doctor, const struct process *process)
{
    const int pid = (int)process->pid;
    char why[PROCESS_PATH_MAX];

    if (has_mapped(process, LTTNG_MAPPED)) {
        saw(LEVEL_OK, "program.lttng", "process %d (%s) has loaded LTTng", pid, process->name);
    } else {
        program_without_lttng(doctor, process, why, sizeof(why));
        saw(LEVEL_NOTE, "program.lttng", "process %d (%s) has not loaded LTTng: %s", pid,
            process->name, why);
    }
    if (has_mapped(process, RINGS_MEMORY))
        saw(LEVEL_OK, "program.rings", "process %d (%s) writes into rings", pid, process->name);
    else if (!can_ask_for_rings(process, why))
        saw(LEVEL_NOTE, "program.rings", "process %d (%s) has no rings: there is no %s", pid,
            process->name, why);
    else
        saw(LEVEL_NOTE, "program.rings",
            "process %d (%s) has no rings: it has served no request yet, or has another reason, "
            "which it prints with BLKIN_DEBUG=1 in its environment",
            pid, process->name);
}

static void preload_look_at(void *context, struct process *process)
{
    struct preload_search *search = context;
    const bool can_be_seen = process_find_libraries(process, PRELOAD_MAPPED, LTTNG_MAPPED);
    char list[PROCESS_PATH_MAX];
    struct process parent;

    if (process->pid == search->doctor->pid) {
        search->wanted = *process;
        search->is_hidden = !can_be_seen;
    }
    if (process->library[0]) {
        preload_note(&search->traced, process);
        if (process->is_filtered && !has_run_key(process, "seccomp=trace") &&
            !has_mapped(process, RINGS_MEMORY))
            preload_note(&search->filtered, process);
    } else if (can_be_seen && !has_variable(process, list)) {
        if (process->state != 'Z' && is_child_of_traced(process, &parent))
            preload_note(&search->cleared, process);
    } else if (can_be_seen && is_secure(process)) {
        preload_note(&search->secure, process);
    }
}

void check_preload(const struct doctor *doctor)
{
    struct preload_search search = {.doctor = doctor};

    process_each(preload_look_at, &search);
    tell_of_filtered(&search);
    tell_of_untraced(&search);
    if (doctor->pid) {
        look_at_wanted(&search);
        if (!search.is_hidden && (search.wanted.library[0] || calls_libblkin(&search.wanted)))
            check_parts(doctor, &search.wanted);
    } else if (search.traced.count > 0) {
        saw(LEVEL_OK, "program.preloaded",
            "processes with libblkin-preload.so: %u, such as process %d (%s)", search.traced.count,
            PROCESS_NAMED(&search.traced.first));
        look_at_file(&search.traced.first);
    }
}
