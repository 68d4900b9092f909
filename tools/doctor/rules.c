/*
 * Checks of the rules that say which spans are slow, as the programs have them from their
 * environment and their rules file, and of what would keep the recorder from having the whole
 * trace. (What a program gave to blkin_set_slow() itself leaves no trace.)
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "process.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_SLOW     "/run/blkin/slow"
#define DEFAULT_SAMPLING "/run/blkin/sampling"
#define TEXT_MAX         1024

typedef int set_slow_fn(const char *text);

struct search {
    const struct doctor *doctor;
    set_slow_fn *set_slow; /* the library's own parser; NULL: it is not to be found */
    unsigned programs, without_rules, bad;
};

/* With our rights: in a folder that it may not enter, all files are alike for the process. */
static bool is_there(const struct process *process, const char *path)
{
    char full[600];

    (void)snprintf(full, sizeof(full), "/proc/%d/root%s", (int)process->pid, path);
    return access(full, F_OK) == 0;
}

static void complain_of_file(struct search *search, const struct process *process, const char *path,
                             int cause)
{
    saw(search->doctor, LEVEL_BAD, "rules.file",
        "process %d (%s, of user %u) cannot read %s: %s: none of its rules holds",
        (int)process->pid, process->name, (unsigned)process->user, path, strerror(cause));
    mend(
        search->doctor,
        "a file in a folder that this user may enter, and BLKIN_SLOW_FILE=PATH in its environment");
    search->bad++;
}

static void check_text(struct search *search, const struct process *process, const char *text,
                       const char *origin)
{
    if (!search->set_slow || search->set_slow(text) == 0)
        return;
    saw(search->doctor, LEVEL_BAD, "rules.text",
        "%s of process %d (%s) is \"%.200s\", which libblkin cannot read, and so heeds not", origin,
        (int)process->pid, process->name, text);
    mend(search->doctor, "such as: osd*:write>20ms, *>100ms, error, max=50/s: see \"Rules\" in "
                         "doc/recorder.md");
    search->bad++;
}

/* As libblkin does: the file counts, if it is there, else the environment. */
static void check_slow(struct search *search, const struct process *process)
{
    char path[512] = DEFAULT_SLOW, text[TEXT_MAX] = "";
    const char *origin = path;

    (void)process_variable(process->pid, "BLKIN_SLOW_FILE", path, sizeof(path));
    if (!process_line(process, path, text, sizeof(text))) {
        const int cause = errno;

        if (is_there(process, path)) {
            complain_of_file(search, process, path, cause);
            return;
        }
        origin = "BLKIN_SLOW";
        (void)process_variable(process->pid, "BLKIN_SLOW", text, sizeof(text));
    }
    if (text[strspn(text, " \t")] == '\0')
        search->without_rules++;
    else
        check_text(search, process, text, origin);
}

/* A trace that was not sampled is in no ring. */
static void check_sampled(struct search *search, const struct process *process)
{
    char path[512] = DEFAULT_SAMPLING, text[TEXT_MAX] = "";
    const char *origin = path;

    (void)process_variable(process->pid, "BLKIN_SAMPLING_FILE", path, sizeof(path));
    if (!process_line(process, path, text, sizeof(text))) {
        origin = "BLKIN_SAMPLING";
        if (!process_variable(process->pid, "BLKIN_SAMPLING", text, sizeof(text)))
            return;
    }
    if (text[strspn(text, " \t")] == '\0' ||
        (!strstr(text, "ratio=") && !strstr(text, "rate=") && !strstr(text, "never")))
        return;
    saw(search->doctor, LEVEL_BAD, "rules.sampling",
        "process %d (%s) samples \"%.200s\" (%s): the recorder has those traces alone, and who "
        "asks for a slow one may find nothing",
        (int)process->pid, process->name, text, origin);
    mend(search->doctor, "sample always; what a live session should not have, its `filter` leaves "
                         "out");
    search->bad++;
}

static void look_at(void *context, struct process *process)
{
    struct search *search = context;

    if (!process_find_libraries(process, "/libblkin.so", "/libblkin-lttng.so") ||
        (!process->library[0] && !process->provider[0]))
        return;
    search->programs++;
    check_slow(search, process);
    check_sampled(search, process);
}

void check_rules(const struct doctor *doctor)
{
    void *library = dlopen("libblkin.so.1", RTLD_NOW | RTLD_LOCAL);
    struct search search = {.doctor = doctor};

    if (library)
        *(void **)&search.set_slow = dlsym(library, "blkin_set_slow");
    process_each(look_at, &search);
    if (search.programs > 0 && search.without_rules == search.programs) {
        saw(doctor, LEVEL_NOTE, "rules.none",
            "none of %u programs has a rule in its environment or rules file: nothing is sent but "
            "what blkin keep asks for",
            search.programs);
        mend(doctor, "echo '*>100ms, error, max=50/s' > " DEFAULT_SLOW);
    } else if (search.bad == 0) {
        saw(doctor, LEVEL_OK, "rules.text", "the rules of %u programs are right",
            search.programs - search.without_rules);
    }
}
