/* Checks the sampling of this host: whether `blkin agent` runs, which files it can read, and
 * whether its configuration is valid.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "babeltrace-plugin/base/file.h"

#include "tools/base/control.h"
#include "tools/sampler/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the sampler ----------------------------------------------------------------------------- */

/* Reports recent failures of the sampler. */
static void check_counts(const json_t *host, const json_t *lately)
{
    static const struct count_name counts[] = {
        {"skipped", "samples too late"},
        {"unreadable", "files not readable"},
        {"not_understood", "lines not understood"},
        {"no_room", "instances without room"},
        {"keeps_not_taken",
         "times that a rule of host-filters wanted the last seconds and they were not kept"},
    };
    char said[400] = "";

    list_counts(said, sizeof(said), lately, counts, sizeof(counts) / sizeof(counts[0]));
    if (!*said)
        saw(LEVEL_OK, "host.samples", "%" PRId64 " samples, nothing was left out",
            number_in(host, "samples"));
    else
        saw(LEVEL_NOTE, "host.samples",
            "%" PRId64 " samples; %s" MEND
            "what to do about each is in doc/host.md, \"What is counted\"",
            number_in(host, "samples"), said);
}

/* Returns the agent's pid; 0: no agent answers. */
static pid_t check_sampler(const struct doctor *doctor)
{
    struct error error = {""};
    json_t *status =
        control_ask(config_text(doctor->config, "runtime-dir"), "agent", "status", &error);
    const json_t *host = json_object_get(status, "host_metrics");
    const pid_t pid = (pid_t)number_in(status, "pid");

    if (strcmp(text_in(host, "state"), "sampling") == 0) {
        saw(LEVEL_OK, "host.service", "process %ld samples this host", (long)pid);
        check_counts(host, json_object_get(json_object_get(status, "lately"), "host_metrics"));
    } else if (!config_boolean(doctor->config, "host")) {
        saw(LEVEL_OK, "host.service", "host = no: nothing samples this host (%s)",
            config_origin(doctor->config, "host"));
    } else {
        saw(LEVEL_NOTE, "host.service",
            "spans get no tags about what this host did: %s" MEND "systemctl start blkin-agent",
            status ? "blkin agent has host = no" : error.text);
    }
    json_decref(status);
    return pid;
}

/* ---- readable files -------------------------------------------------------------------------- */

/* Reads the file: a kernel with PSI switched off has the file but refuses reads. */
static void check_pressure(void)
{
    GUARD_FD const int fd = open("/proc/pressure/io", O_RDONLY | O_CLOEXEC);
    char byte;

    if (fd >= 0 && read(fd, &byte, 1) == 1)
        saw(LEVEL_OK, "host.pressure", "the kernel measures pressure (PSI)");
    else
        saw(LEVEL_NOTE, "host.pressure",
            "the kernel does not measure pressure (PSI): spans cannot show that tasks waited for "
            "CPU, memory or I/O" MEND
            "boot with psi=1 (needs Linux 4.20 or later with CONFIG_PSI)");
}

/* "36 25 0:33 / /proc rw shared:9 - proc proc rw,hidepid=invisible" */
static bool is_hidden(const char *line)
{
    const char *type = strstr(line, " - proc ");
    const char *option = type ? strstr(type, "hidepid=") : NULL;

    return option && strstr(line, " /proc ") && strncmp(option, "hidepid=0", 9) != 0 &&
           strncmp(option, "hidepid=off", 11) != 0;
}

/* Returns whether the /proc of the process hides other users' processes. A unit may have its own
 * /proc. */
static bool proc_is_hidden(pid_t pid, bool *is_known)
{
    GUARD_FILE FILE *file = NULL;
    GUARD_TEXT char *line = NULL;
    size_t size = 0;
    bool hides = false;
    char path[64];

    (void)snprintf(path, sizeof(path), "/proc/%ld/mountinfo", (long)pid);
    file = fopen(path, "re");
    *is_known = file != NULL;
    while (file && getline(&line, &size, file) > 0)
        hides = is_hidden(line) || (hides && !strstr(line, " /proc ")); /* the last mount counts */
    return hides;
}

static void check_processes(pid_t pid)
{
    bool is_known;
    const bool hides = proc_is_hidden(pid ? pid : getpid(), &is_known);

    if (!is_known)
        saw(LEVEL_SKIPPED, "host.processes", "cannot see how process %ld has mounted /proc: %s",
            (long)pid, strerror(errno));
    else if (hides)
        saw(LEVEL_NOTE, "host.processes",
            "/proc hides other users' processes (hidepid): process = NAME finds only its own "
            "user's" MEND
            "set ProtectProc=default with systemctl edit, or mount -o remount,hidepid=0 /proc");
    else
        saw(LEVEL_OK, "host.processes", "other users' processes can be seen");
}

#define NAME_BYTES 256

/* ---- configured names ------------------------------------------------------------------------ */

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
    struct host_reader *host;
    unsigned instances = 0;

    only.wanted[kind] = (struct host_wanted){wanted->wanted[kind].period_ms, name};
    host = host_open(&only, &ignored);
    if (host)
        host_sample_all(host, count_sample, &instances);
    host_close(host);
    return instances;
}

/* Appends the names without an instance to `missing`. A rule that excludes names may name
 * instances that do not exist. */
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
        string_list_add(missing, size, item);
    }
}

static void check_names(const struct host_config *wanted)
{
    char missing[400] = "";

    for (enum host_kind kind = 0; kind < HOST_KINDS; kind++) {
        if (wanted->wanted[kind].period_ms && host_definition(kind)->has_instances)
            look_for_names(wanted, kind, missing, sizeof(missing));
    }
    if (*missing)
        saw(LEVEL_NOTE, "host.names",
            "not found on this host: %s" MEND
            "blkin host --list shows the names; one that appears later is sampled from then on",
            missing);
    else
        saw(LEVEL_OK, "host.names", "all that the configuration names is there");
}

/* agent: the configuration of `blkin agent` */
static void check_settings(const struct doctor *doctor, const struct config *agent)
{
    struct host_reader *host = NULL;
    struct host_config wanted;
    struct error error = {""};

    if (host_settings_read(agent, &wanted, &error))
        host = host_open(&wanted, &error);
    if (host)
        check_names(&wanted);
    else
        saw(LEVEL_BAD, "host.settings",
            "blkin agent would not start: %s" MEND
            "correct it in blkin.conf: blkin config show --section=agent shows where it is set",
            error.text);
    host_close(host);
    if (!host_wait_is_short_enough(doctor->config, agent, &error))
        saw(LEVEL_NOTE, "host.wait",
            "%s" MEND "raise tail-wait-ms, or shorten the periods of the metrics in blkin.conf",
            error.text);
}

void check_metrics(const struct doctor *doctor)
{
    const pid_t pid = check_sampler(doctor);
    struct config_request request;
    struct config *agent;

    if (!config_boolean(doctor->config, "host"))
        return;
    check_pressure();
    check_processes(pid);
    agent = config_read_for(doctor->config, "agent", &request);
    if (agent) /* if NULL, the check config.file reports the mistake */
        check_settings(doctor, agent);
    config_free(agent);
}
