/*
 * Checks of what programs sample: from the environment that they were started with and from the
 * sampling file, as libblkin reads them (blkin_set_sampling() leaves no trace).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "process.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_FILE "/run/blkin/sampling"
#define TEXT_MAX     1024

typedef int set_sampling_fn(const char *text);

struct search {
    const struct doctor *doctor;
    set_sampling_fn *set_sampling; /* the library's own parser; NULL: it is not to be found */
    unsigned programs;
    unsigned bad;
};

/* Has any part of it a share above zero? "never" and "ratio=0" have none. */
static bool samples_something(const char *text)
{
    const char *ratio = text;

    if (strstr(text, "always") || strstr(text, "rate="))
        return true;
    while ((ratio = strstr(ratio, "ratio="))) {
        ratio += strlen("ratio=");
        if (strpbrk(ratio, "123456789") && strcspn(ratio, "123456789") < strcspn(ratio, ","))
            return true;
    }
    return false;
}

static void judge(struct search *search, const struct process *process, const char *text,
                  const char *origin)
{
    if (search->set_sampling && search->set_sampling(text) != 0) {
        saw(search->doctor, LEVEL_BAD, "sampling.text",
            "%s of process %d (%s) is \"%.200s\", which libblkin cannot read, and so heeds not",
            origin, (int)process->pid, process->name, text);
        mend(search->doctor, "always, never, ratio=0.01 or rate=100: see \"Sampling\" in "
                             "doc/library.md");
    } else if (!samples_something(text)) {
        saw(search->doctor, LEVEL_BAD, "sampling.share",
            "process %d (%s) records no trace of its own: %s says \"%.200s\"", (int)process->pid,
            process->name, origin, text);
        if (strncmp(origin, "BLKIN", 5) == 0)
            mend(search->doctor, "start it without BLKIN_SAMPLING, or write always to its sampling "
                                 "file");
        else
            mend(search->doctor, "echo always > %s", origin);
    } else {
        return;
    }
    search->bad++;
}

static void look_at(void *context, struct process *process)
{
    struct search *search = context;
    char path[512] = DEFAULT_FILE, text[TEXT_MAX];

    if (!process_find_libraries(process, "/libblkin.so", "/libblkin-lttng.so") ||
        (!process->library[0] && !process->provider[0]))
        return;
    search->programs++;
    (void)process_variable(process->pid, "BLKIN_SAMPLING_FILE", path, sizeof(path));
    if (process_line(process, path, text, sizeof(text)))
        judge(search, process, text, path);
    else if (process_variable(process->pid, "BLKIN_SAMPLING", text, sizeof(text)) && text[0])
        judge(search, process, text, "BLKIN_SAMPLING");
}

void check_sampling(const struct doctor *doctor)
{
    void *library = dlopen("libblkin.so.1", RTLD_NOW | RTLD_LOCAL);
    struct search search = {.doctor = doctor};

    if (library)
        *(void **)&search.set_sampling = dlsym(library, "blkin_set_sampling");
    process_each(look_at, &search);
    if (search.bad == 0)
        saw(doctor, LEVEL_OK, "sampling.share",
            "neither environment nor sampling file keeps any of %u programs from recording",
            search.programs);
}
