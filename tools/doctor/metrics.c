/* Checks the sampling of this host: whether `blkin host` runs, what it can read, and whether its
 * configuration is valid.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "tools/base/control.h"
#include "tools/base/process.h"
#include "tools/host/page.h"
#include "tools/host/sample.h"
#include "tools/host/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- others that sample this host ------------------------------------------------------------ */

#define LOCK "/host.lock"

struct search {
    pid_t but; /* excluded */
    struct process found;
    char lock[PROCESS_PATH_MAX];
};

/* Skips a sampler without the lock, which waits for its turn, and a sampler in a container. */
static void take_other(void *context, struct process *process)
{
    struct search *search = context;

    if (!search->found.pid && process->pid != search->but &&
        strcmp(process->name, "blkin-host") == 0 && !process_is_elsewhere(process->pid, "/run") &&
        process_has_open(process->pid, LOCK, search->lock, sizeof(search->lock)))
        search->found = *process;
}

/* Notes a sampler with another runtime-dir, or one that does not answer. */
static bool tell_of_other(const struct doctor *doctor, pid_t answers)
{
    struct search search = {.but = answers};
    char ours[512];

    process_each(take_other, &search);
    if (!search.found.pid)
        return false;
    (void)snprintf(ours, sizeof(ours), "%s%s", config_text(doctor->config, "runtime-dir"), LOCK);
    if (strcmp(search.lock, ours) == 0) {
        saw(doctor, LEVEL_NOTE, "host.other",
            "process %ld samples this host, but cannot be asked for its state: its socket is gone",
            (long)search.found.pid);
        mend(doctor, "kill %ld: it is started again", (long)search.found.pid);
        return true;
    }
    search.lock[strlen(search.lock) - strlen(LOCK)] = '\0';
    saw(doctor, LEVEL_NOTE, "host.other",
        "process %ld (of user %u) samples this host%s, with another runtime-dir: %s",
        (long)search.found.pid, (unsigned)search.found.user, answers ? " too" : "", search.lock);
    if (answers)
        mend(doctor, "end one of the two: each sample is recorded twice");
    else
        mend(doctor,
             "use one runtime-dir for all services; its state: blkin status --runtime-dir=%s host",
             search.lock);
    return true;
}

/* ---- the service ----------------------------------------------------------------------------- */

/* Returns whether another sampler runs. */
static bool host_explain_none(const struct doctor *doctor, const char *why)
{
    if (strncmp(why, "no `blkin", strlen("no `blkin")) != 0) {
        saw(doctor, LEVEL_NOTE, "host.service", "%s", why);
        mend(doctor, "is it stopped (state T)? kill -CONT it, or end it: it is started again");
        return true;
    }
    if (tell_of_other(doctor, 0))
        return true;
    if (!config_boolean(doctor->config, "host")) {
        saw(doctor, LEVEL_OK, "host.service", "host = no: nothing samples this host (%s)",
            config_origin(doctor->config, "host"));
        return false;
    }
    if (!doctor->facts->service_runs) {
        saw(doctor, LEVEL_NOTE, "host.service",
            "nothing samples this host: blkin %s, which starts blkin host, does not run",
            doctor->section);
        return false;
    }
    saw(doctor, LEVEL_NOTE, "host.service",
        "nothing samples this host, so spans get no tags about it: %s", why);
    mend(doctor, "blkin status %s shows why its child ended; or systemctl start blkin-host",
         doctor->section);
    return false;
}

/* Reports recent failures of the sampler. */
static void check_counts(const struct doctor *doctor, const json_t *status)
{
    static const struct count_name counts[] = {
        {"skipped", "samples too late"},
        {"unreadable", "files not readable"},
        {"not_understood", "lines not understood"},
        {"no_room", "instances without room"},
        {"keeps_not_taken",
         "times that a filter of host-filters wanted a recording and no recorder made it"},
    };
    const json_t *counters = json_object_get(status, "counters");
    char said[400] = "";

    list_counts(said, sizeof(said), json_object_get(json_object_get(status, "lately"), "counters"),
                counts, sizeof(counts) / sizeof(counts[0]));
    if (!*said) {
        saw(doctor, LEVEL_OK, "host.samples", "%" PRId64 " samples, nothing was left out",
            number_in(counters, "samples"));
        return;
    }
    saw(doctor, LEVEL_NOTE, "host.samples", "%" PRId64 " samples; %s",
        number_in(counters, "samples"), said);
    mend(doctor, "what to do about each is in doc/host.md, \"What is counted\"");
}

/* Returns the sampler's pid; 0: none answers. */
static pid_t check_host_service(const struct doctor *doctor, bool *is_there)
{
    struct error error = {""};
    json_t *status =
        control_ask(config_text(doctor->config, "runtime-dir"), "host", "status", &error);
    const char *state = json_string_value(json_object_get(status, "state"));
    const pid_t pid = (pid_t)number_in(status, "pid");

    *is_there = status || host_explain_none(doctor, error.text);
    if (!status)
        return 0;
    if (state && strcmp(state, "recording") == 0) {
        saw(doctor, LEVEL_OK, "host.service", "process %ld samples this host", (long)pid);
        check_counts(doctor, status);
    } else {
        saw(doctor, LEVEL_NOTE, "host.service", "process %ld waits: %s", (long)pid,
            state ? state : "for an unknown reason");
        mend(doctor,
             "set host = yes in blkin.conf, for blkin %s; in a session made by hand: lttng "
             "enable-event --userspace blkin:metric",
             doctor->section);
    }
    (void)tell_of_other(doctor, pid);
    json_decref(status);
    return pid;
}

/* ---- what it can see ------------------------------------------------------------------------- */

/* Reads the file: a kernel with PSI switched off has the file but refuses reads. */
static bool has_pressure(void)
{
    const int fd = open("/proc/pressure/io", O_RDONLY | O_CLOEXEC);
    char byte;
    const bool is_there = fd >= 0 && read(fd, &byte, 1) == 1;

    if (fd >= 0)
        (void)close(fd);
    return is_there;
}

static void check_pressure(const struct doctor *doctor)
{
    if (has_pressure()) {
        saw(doctor, LEVEL_OK, "host.pressure", "the kernel measures pressure (PSI)");
        return;
    }
    saw(doctor, LEVEL_NOTE, "host.pressure",
        "the kernel does not measure pressure (PSI): spans cannot show that tasks waited for CPU, "
        "memory or I/O");
    mend(doctor, "boot with psi=1 (needs Linux 4.20 or later with CONFIG_PSI)");
}

/* "36 25 0:33 / /proc rw shared:9 - proc proc rw,hidepid=invisible" */
static bool is_hidden(const char *line)
{
    const char *type = strstr(line, " - proc ");
    const char *option = type ? strstr(type, "hidepid=") : NULL;

    return option && strstr(line, " /proc ") && strncmp(option, "hidepid=0", 9) != 0 &&
           strncmp(option, "hidepid=off", 11) != 0;
}

/* Reads the mounts of the process, as a unit may have its own /proc. */
static bool proc_is_hidden(pid_t pid, bool *is_known)
{
    char path[64], *line = NULL;
    size_t size = 0;
    bool is = false;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%ld/mountinfo", (long)pid);
    file = fopen(path, "re");
    *is_known = file != NULL;
    while (file && getline(&line, &size, file) > 0)
        is = is_hidden(line) || (is && !strstr(line, " /proc ")); /* the last mount is on top */
    free(line);
    if (file)
        (void)fclose(file);
    return is;
}

static void check_processes(const struct doctor *doctor, pid_t pid)
{
    bool is_known;
    const bool is = proc_is_hidden(pid ? pid : getpid(), &is_known);

    if (!is_known) {
        saw(doctor, LEVEL_SKIPPED, "host.processes",
            "cannot see how process %ld has mounted /proc: %s", (long)pid, strerror(errno));
    } else if (is) {
        saw(doctor, LEVEL_NOTE, "host.processes",
            "/proc hides other users' processes (hidepid): process = NAME finds only its own "
            "user's");
        mend(doctor,
             "set ProtectProc=default with systemctl edit, or mount -o remount,hidepid=0 /proc");
    } else {
        saw(doctor, LEVEL_OK, "host.processes", "other users' processes can be seen");
    }
}

#define NAME_BYTES 256

/* ---- would it start? ------------------------------------------------------------------------- */

static bool can_be_read(const struct host_config *wanted, struct error *error)
{
    struct host *host = host_open(wanted, error);

    host_close(host);
    return host != NULL;
}

/* Only without a running sampler, which uses the port. */
static bool can_be_listened_at(const struct config *config, struct error *error)
{
    const char *where = config_text(config, "host-listen");
    struct loop *loop = where && *where ? loop_new(&(struct loop_signals){.end = NULL}) : NULL;
    struct host_page *page;

    if (!loop)
        return true;
    page = host_page_open(loop, where, error);
    host_page_close(page);
    loop_free(loop);
    return page != NULL;
}

/* ---- is there what it names? ----------------------------------------------------------------- */

static void count_sample(void *context, const struct host_sample *sample)
{
    (void)sample;
    ++*(unsigned *)context;
}

static unsigned instances_of(const struct host_config *wanted, enum host_kind kind,
                             const char *name)
{
    struct host_config only = {.root = wanted->root};
    struct error ignored = {""};
    struct host *host;
    unsigned instances = 0;

    only.wanted[kind] = (struct host_wanted){wanted->wanted[kind].period_ms, name};
    host = host_open(&only, &ignored);
    if (host)
        host_sample_all(host, count_sample, &instances);
    host_close(host);
    return instances;
}

/* A rule that excludes names may name what does not exist. */
static void look_for_names(const struct host_config *wanted, enum host_kind kind, char *missing,
                           size_t size)
{
    const char *at = wanted->wanted[kind].instances;
    char name[NAME_BYTES], item[NAME_BYTES + 32];

    while (at && *(at += strspn(at, ", ")) != '\0') {
        const size_t length = strcspn(at, ", ");

        (void)snprintf(name, sizeof(name), "%.*s", (int)length, at);
        at += length;
        if (name[0] == '!' || instances_of(wanted, kind, name) > 0)
            continue;
        (void)snprintf(item, sizeof(item), "%s %s", host_definition(kind)->name, name);
        list_add(missing, size, item);
    }
}

static void check_names(const struct doctor *doctor, const struct host_config *wanted)
{
    char missing[400] = "";

    for (enum host_kind kind = 0; kind < HOST_KINDS; kind++) {
        if (wanted->wanted[kind].period_ms && host_definition(kind)->has_instances)
            look_for_names(wanted, kind, missing, sizeof(missing));
    }
    if (*missing) {
        saw(doctor, LEVEL_NOTE, "host.names", "not found on this host: %s", missing);
        mend(doctor,
             "blkin host --list shows the names; one that appears later is sampled from then on");
    } else {
        saw(doctor, LEVEL_OK, "host.names", "all that [host] names is there");
    }
}

static void check_metrics_wanted(const struct doctor *doctor, bool is_there)
{
    struct config *config = config_read_for(doctor->config, "host");
    struct host_config wanted;
    struct error error = {""};

    if (!config)
        return; /* the check config.file reports it */
    if (!host_settings_read(config, &wanted, &error) || !can_be_read(&wanted, &error) ||
        (!is_there && !can_be_listened_at(config, &error))) {
        saw(doctor, LEVEL_BAD, "host.settings", "blkin host would not start: %s", error.text);
        mend(doctor,
             "correct it in blkin.conf: blkin config show --section=host shows where it is set");
    } else {
        check_names(doctor, &wanted);
    }
    config_free(config);
}

/* ---- what becomes of it ---------------------------------------------------------------------- */

static void check_wait(const struct doctor *doctor)
{
    struct config *const host = config_read_for(doctor->config, "host");
    struct error why;

    if (host && !host_wait_is_short_enough(doctor->config, host, &why)) {
        saw(doctor, LEVEL_NOTE, "host.wait", "%s", why.text);
        mend(doctor, "raise tail-wait-ms, or shorten the periods in section [host] of blkin.conf");
    }
    config_free(host);
}

void check_metrics(const struct doctor *doctor)
{
    bool is_there;
    const pid_t pid = check_host_service(doctor, &is_there);

    if (!config_boolean(doctor->config, "host") && !pid)
        return;
    check_metrics_wanted(doctor, is_there);
    check_pressure(doctor);
    check_processes(doctor, pid);
    check_wait(doctor);
}
