/*
 * Checks of programs that "blkin run" has started: is its library in them, and is the file right by
 * which they are told what to trace?
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "libblkin/preload/config.h"
#include "process.h"
#include "tools/run/program.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "/libblkin-preload.so"
#define LTTNG   "/liblttng-ust.so"
#define THREADS 3 /* that LTTng needs: see lttng_start.c */

struct search {
    const struct doctor *doctor;
    unsigned count;        /* of programs with the library */
    struct process first;  /* of them */
    struct process wanted; /* --pid */
    unsigned filtered_count;
    struct process filtered; /* the first of them */
    unsigned limited_count;
    struct process limited; /* the first of them */
    const char *limit;      /* of that */
    bool is_hidden;
};

/* ---- the run file ---- */

static void look_at_text(const struct doctor *doctor, const struct process *process,
                         const char *path, const char *text)
{
    static struct preload_config config;
    char wrong[PRELOAD_CONFIG_MAX];
    const char *expected;

    preload_config_clear(&config);
    if (preload_config_read(&config, text, wrong, &expected)) {
        saw(doctor, LEVEL_BAD, "run.text", "%s: \"%s\": process %d (%s) stays with what it had",
            path, wrong, (int)process->pid, process->name);
        mend(doctor, "expected %s", expected);
    } else if (!preload_config_has_program(&config, process->name)) {
        saw(doctor, LEVEL_NOTE, "run.text", "%s: process %d (%s) is none of its programs=", path,
            (int)process->pid, process->name);
        mend(doctor, "if it is to be traced, name it there");
    } else {
        saw(doctor, LEVEL_OK, "run.text", "%s is right", path);
    }
}

/* As the process itself would read it. */
static void look_at_file(const struct doctor *doctor, const struct process *process)
{
    char path[PROCESS_PATH_MAX], text[PRELOAD_CONFIG_MAX + 1];
    ssize_t length = -1;
    int fd;

    if (!process_variable(process->pid, "BLKIN_RUN_FILE", path, sizeof(path)))
        (void)snprintf(path, sizeof(path), "%s", PRELOAD_CONFIG_FILE);
    fd = process_open(process, path);
    if (fd >= 0) {
        length = read(fd, text, sizeof(text) - 1);
        (void)close(fd);
    }
    if (length >= 0) {
        text[length] = '\0';
        look_at_text(doctor, process, path, text);
    } else if (errno != ENOENT) {
        saw(doctor, LEVEL_BAD, "run.file", "%s cannot be read by process %d (%s): %s", path,
            (int)process->pid, process->name, strerror(errno));
        mend(doctor, "let its user read it, and the folder it is in");
    }
}

/* ---- one that should have it ---- */

/* Its own name for it, which may be another one than ours. */
static void preload_explain(const struct doctor *doctor, const struct process *process)
{
    char list[1024], path[64];
    struct error error;

    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)process->pid);
    if (!process_variable(process->pid, "LD_PRELOAD", list, sizeof(list)) ||
        !strstr(list, LIBRARY)) {
        saw(doctor, LEVEL_BAD, "program.preloaded",
            "process %d (%s) was not started by `blkin run`: nothing of it is traced that it does "
            "not trace itself",
            (int)process->pid, process->name);
        mend(doctor, "start it by blkin run; for a unit of systemd: blkin run --print");
    } else if (!program_takes(path, PRELOAD_DIR LIBRARY, &error)) {
        saw(doctor, LEVEL_BAD, "program.preloaded", "process %d (%s): %s", (int)process->pid,
            process->name, error.text);
    } else {
        saw(doctor, LEVEL_BAD, "program.preloaded",
            "process %d (%s) has LD_PRELOAD=%s, but ld.so has not loaded it", (int)process->pid,
            process->name, list);
        mend(doctor,
             "ld.so says why on its standard error; in a container the path is another one");
    }
}

static void look_at_wanted(const struct search *search)
{
    const struct process *process = &search->wanted;

    if (process->name[0] == '\0') {
        saw(search->doctor, LEVEL_BAD, "program.preloaded", "there is no process %d",
            (int)search->doctor->pid);
        mend(search->doctor, "pidof and ps tell what runs");
    } else if (search->is_hidden) {
        saw(search->doctor, LEVEL_BAD, "program.preloaded",
            "process %d (%s) is of another user, and cannot be looked at", (int)process->pid,
            process->name);
        mend(search->doctor, "sudo blkin doctor --pid=%d", (int)process->pid);
        return;
    } else if (process->library[0]) {
        saw(search->doctor, LEVEL_OK, "program.preloaded", "process %d (%s) has %s",
            (int)process->pid, process->name, process->library);
        look_at_file(search->doctor, process);
    } else {
        preload_explain(search->doctor, process);
    }
    if (process->name[0] != '\0')
        check_debug(search->doctor, process);
}

/* ---- all of them ---- */

/* A filter that it has installed itself, or was started under and is not told to trust. */
static bool is_left_alone(const struct process *process)
{
    char text[PRELOAD_CONFIG_MAX];

    return process->is_filtered &&
           !(process_variable(process->pid, "BLKIN_RUN", text, sizeof(text)) &&
             strstr(text, "seccomp=trace"));
}

static void tell_of_filtered(const struct search *search)
{
    if (search->filtered_count == 0)
        return;
    saw(search->doctor, LEVEL_NOTE, "program.filtered",
        "%u with libblkin-preload.so and a seccomp filter, such as process %d (%s): they are left "
        "alone, as a filter may end them at a call of LTTng's",
        search->filtered_count, (int)search->filtered.pid, search->filtered.name);
    mend(search->doctor, "where the filter is a container's or systemd's, and allows LTTng's "
                         "calls: blkin run --seccomp=trace");
}

static void tell_of_limited(const struct search *search)
{
    if (search->limited_count == 0)
        return;
    saw(search->doctor, LEVEL_NOTE, "program.limited",
        "%u with libblkin-preload.so and no room for LTTng's threads, such as process %d (%s), by "
        "its %s: nothing of them is traced",
        search->limited_count, (int)search->limited.pid, search->limited.name, search->limit);
    mend(search->doctor, "raise the limit (prlimit, ulimit, systemd's Limit...=) and start the "
                         "program again");
}

/* LTTng starts threads, and is not loaded where it cannot. Later limits do not matter. */
static void look_at_limits(struct search *search, const struct process *process)
{
    const char *limit = process->provider[0] ? NULL : process_limit_of_threads(process, THREADS);

    if (limit && search->limited_count++ == 0) {
        search->limited = *process;
        search->limit = limit;
    }
}

static void preload_look_at(void *context, struct process *process)
{
    struct search *search = context;
    const bool can_be_seen = process_find_libraries(process, LIBRARY, LTTNG);

    if (process->pid == search->doctor->pid) {
        search->wanted = *process;
        search->is_hidden = !can_be_seen;
    }
    if (process->library[0] && search->count++ == 0)
        search->first = *process;
    if (!process->library[0])
        return;
    if (!is_left_alone(process))
        look_at_limits(search, process);
    else if (search->filtered_count++ == 0)
        search->filtered = *process;
}

void check_preload(const struct doctor *doctor)
{
    struct search search = {.doctor = doctor};

    process_each(preload_look_at, &search);
    tell_of_filtered(&search);
    tell_of_limited(&search);
    if (doctor->pid) {
        look_at_wanted(&search);
    } else if (search.count > 0) {
        saw(doctor, LEVEL_OK, "program.preloaded",
            "%u with libblkin-preload.so, such as process %d (%s)", search.count,
            (int)search.first.pid, search.first.name);
        look_at_file(doctor, &search.first);
    }
}
