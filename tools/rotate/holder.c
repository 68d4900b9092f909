/*
 * Which process has a file open for writing?
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "holder.h"

#include "tools/base/process.h"

#include <stdio.h>
#include <string.h>

#define CONSUMER "lttng-consumerd"

struct search {
    const char *path;
    struct holder holder;
    bool is_orphan; /* the process that we guess has lost its session daemon */
};

static void take_holder(struct search *search, const struct process *process, bool is_guess)
{
    search->holder = (struct holder){.pid = process->pid, .is_guess = is_guess};
    (void)snprintf(search->holder.name, sizeof(search->holder.name), "%s", process->name);
}

/* A plain user sees no descriptors of root's daemons. A consumer daemon whose session daemon has
 * died is the likely one: the system's first process is its parent since. */
static void look_for_holder(void *context, struct process *process)
{
    struct search *search = context;
    const bool is_found = search->holder.pid && !search->holder.is_guess;
    bool is_hidden;

    if (is_found)
        return;
    if (process_writes(process->pid, search->path, &is_hidden)) {
        take_holder(search, process, false);
    } else if (is_hidden && !search->is_orphan && strcmp(process->name, CONSUMER) == 0) {
        take_holder(search, process, true);
        search->is_orphan = process->parent == 1;
    }
}

struct holder holder_find(const char *path)
{
    struct search search = {.path = path};

    process_each(look_for_holder, &search);
    return search.holder;
}
