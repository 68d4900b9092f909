/* Checks the sampling and slow-span rules of programs. libblkin reads them from a file, or, without
 * the file, from the initial environment. (The doctor cannot see rules that a program set by
 * blkin_set_sampling() or blkin_set_slow().)
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "tools/base/process.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES       512
#define SETTING_TEXT_MAX 1024

/* The library's parser of a rule. */
typedef int parse_fn(const char *text);

static const struct setting {
    const char *file, *file_variable, *variable;
    const char *parser;
} sampling = {"/run/blkin/sampling", "BLKIN_SAMPLING_FILE", "BLKIN_SAMPLING", "blkin_set_sampling"},
  slow = {"/run/blkin/slow", "BLKIN_SLOW_FILE", "BLKIN_SLOW", "blkin_set_slow"};

/* The rule of a process. */
struct found {
    bool is_there;
    const char *origin; /* the path or the variable */
    int error;          /* errno of the file */
    bool is_ignored;    /* libblkin ignores the file */
    struct stat status; /* of the ignored file */
    char path[PATH_BYTES], text[SETTING_TEXT_MAX];
};

/* Returns whether the struct stands for a future process, because no program runs. Then only the
 * file counts. */
static bool is_of_future(const struct process *process)
{
    return process->pid == getpid();
}

/* "process 12 (store)" */
static const char *name_process(const struct process *process)
{
    static char text[64];

    (void)snprintf(text, sizeof(text), "process %d (%s)", PROCESS_NAMED(process));
    return is_of_future(process) ? "a program that starts now" : text;
}

/* Reads the first line of the file. Returns false if the file has no rule: found->error is set if
 * it is not readable. */
static bool read_setting(const struct process *process, struct found *found)
{
    const ssize_t length =
        program_read_file(process, found->path, found->text, sizeof(found->text), &found->status);

    found->error = length < 0 ? errno : 0;
    found->text[strcspn(found->text, "\n")] = '\0';
    if (length >= 0 && S_ISCHR(found->status.st_mode)) /* /dev/null: no rule */
        return false;
    found->is_ignored = length >= 0 && process_distrusts(process, &found->status);
    return length >= 0 && !found->is_ignored;
}

/* Finds the rule of the process, in the file or in the environment. */
static void find_setting(const struct setting *setting, const struct process *process,
                         struct found *found)
{
    *found = (struct found){.is_there = true, .origin = found->path};
    (void)snprintf(found->path, sizeof(found->path), "%s", setting->file);
    (void)process_variable(process->pid, setting->file_variable, found->path, sizeof(found->path));
    if (read_setting(process, found))
        return;
    found->text[0] = '\0';
    found->origin = setting->variable;
    found->is_there = !is_of_future(process) && process_variable(process->pid, setting->variable,
                                                                 found->text, sizeof(found->text));
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t")] == '\0';
}

/* ---- programs -------------------------------------------------------------------------------- */

struct setting_search {
    void (*look)(struct setting_search *search, const struct process *process);
    parse_fn *parse; /* NULL: no library found */
    unsigned programs, without_rules, bad;
};

static void search_process(void *context, struct process *process)
{
    struct setting_search *search = context;

    if (!process_find_libraries(process, "/libblkin.so", "/libblkin-lttng.so") ||
        (!process->library[0] && !process->provider[0]))
        return;
    search->programs++;
    search->look(search, process);
}

static struct setting_search search_programs(const struct setting *setting,
                                             void (*look)(struct setting_search *,
                                                          const struct process *))
{
    struct setting_search search = {.look = look};
    void *library = doctor_open_library();

    if (library)
        *(void **)&search.parse = dlsym(library, setting->parser);
    process_each(search_process, &search);
    if (search.programs == 0)
        search.look(&search, &(struct process){.pid = getpid(), .user = geteuid()});
    return search;
}

/* Counts a bad process. Returns whether it is one of the first, which get a finding each. */
static bool search_explains(struct setting_search *search)
{
    return search->bad++ < EXPLAINED_MAX;
}

static void tell_of_more(const struct setting_search *search, const char *id)
{
    if (search->bad > EXPLAINED_MAX)
        saw(LEVEL_NOTE, id, "%u more processes have bad settings", search->bad - EXPLAINED_MAX);
}

/* Returns whether libblkin accepts the text. */
static bool check_text(struct setting_search *search, const struct process *process,
                       const struct found *found, const char *id, const char *such_as)
{
    if (!search->parse || search->parse(found->text) == 0)
        return true;
    if (search_explains(search))
        saw(LEVEL_BAD, id,
            "%s of %s is \"%.200s\", which libblkin cannot read, and ignores" MEND "%s",
            found->origin, name_process(process), found->text, such_as);
    return false;
}

/* Returns whether libblkin trusts the file, or whether there is none. */
static bool check_trust(struct setting_search *search, const struct process *process,
                        const struct found *found, const char *id)
{
    if (!found->is_ignored)
        return true;
    if (search_explains(search))
        program_tell_distrust(id, name_process(process), found->path, &found->status);
    return false;
}

/* ---- sampling -------------------------------------------------------------------------------- */

/* Returns whether a rule of the text samples traces. "never" and "ratio=0" sample none. */
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

static void look_at_sampling(struct setting_search *search, const struct process *process)
{
    struct found found;

    find_setting(&sampling, process, &found);
    if (!check_trust(search, process, &found, "sampling.file") || !found.is_there ||
        (found.origin == sampling.variable && !found.text[0]) ||
        !check_text(search, process, &found, "sampling.text",
                    "always, never, ratio=0.01 or rate=100: see \"Sampling\" in doc/library.md") ||
        samples_something(found.text) || !search_explains(search))
        return;
    saw(LEVEL_BAD, "sampling.share", "%s begins no trace of its own: %s is \"%.200s\"" MEND "%s%s",
        name_process(process), found.origin, found.text,
        found.origin == sampling.variable
            ? "start it without BLKIN_SAMPLING, or write \"always\" to its sampling file"
            : "echo always > ",
        found.origin == sampling.variable ? "" : found.origin);
}

void check_sampling(const struct doctor *doctor)
{
    const struct setting_search search = search_programs(&sampling, look_at_sampling);

    (void)doctor;
    tell_of_more(&search, "sampling.more");
    if (search.bad == 0)
        saw(LEVEL_OK, "sampling.share",
            "%u programs: no environment and no sampling file switches recording off",
            search.programs);
}

/* ---- rules of slow requests, and sampling ---------------------------------------------------- */

static void look_at_slow(struct setting_search *search, const struct process *process)
{
    struct found found;
    char full[600];

    find_setting(&slow, process, &found);
    if (!check_trust(search, process, &found, "rules.file"))
        return;
    /* looks with the doctor's rights, as the process may not enter the folder */
    (void)snprintf(full, sizeof(full), "/proc/%d/root%s", (int)process->pid, found.path);
    if (found.error && stat(full, &found.status) == 0) {
        const mode_t bit = found.status.st_uid == process->user    ? S_IRUSR
                           : found.status.st_gid == process->group ? S_IRGRP
                                                                   : S_IROTH;

        if (!search_explains(search))
            return;
        saw(LEVEL_BAD, "rules.file",
            "%s, of user %u, cannot read %s: %s: it has no rules from that file" MEND "%s%s",
            name_process(process), (unsigned)process->user, found.path, strerror(found.error),
            found.status.st_mode & bit
                ? "put the file into a folder that this user may enter; into the environment: "
                  "BLKIN_SLOW_FILE="
                : "chmod 644 ",
            found.path);
    } else if (is_blank(found.text)) {
        search->without_rules++;
    } else {
        (void)check_text(search, process, &found, "rules.text",
                         "such as: osd*:write>20ms, *>100ms, error, max=50/s: see \"Rules\" in "
                         "doc/agent.md");
    }
}

/* Rings contain only sampled traces. */
static void look_at_rules(struct setting_search *search, const struct process *process)
{
    struct found found;

    look_at_slow(search, process);
    find_setting(&sampling, process, &found);
    if (is_blank(found.text) ||
        (!strstr(found.text, "ratio=") && !strstr(found.text, "rate=") &&
         !strstr(found.text, "never")) ||
        !search_explains(search))
        return;
    saw(LEVEL_BAD, "rules.sampling",
        "%s samples \"%.200s\" (%s): the agent has only the sampled traces, so a "
        "slow trace may be missing" MEND
        "sample \"always\"; to keep a live session small, use its `filter`",
        name_process(process), found.text, found.origin);
}

void check_rules(const struct doctor *doctor)
{
    const struct setting_search search = search_programs(&slow, look_at_rules);

    (void)doctor;
    tell_of_more(&search, "rules.more");
    if (search.programs > 0 && search.without_rules == search.programs)
        saw(LEVEL_NOTE, "rules.none",
            "none of %u programs has a rule in its environment or rules file: only traces that "
            "blkin keep asks for are sent" MEND "echo '*>100ms, error, max=50/s' > %s",
            search.programs, slow.file);
    else if (search.programs == 0 && search.bad == 0)
        saw(LEVEL_OK, "rules.text", "no program runs; %s",
            search.without_rules ? "there are no rules in the file"
                                 : "the rules in the file are right");
    else if (search.bad == 0)
        saw(LEVEL_OK, "rules.text", "the rules of %u programs are right",
            search.programs - search.without_rules);
}
