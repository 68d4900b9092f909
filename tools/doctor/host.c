/*
 * Checks of this host: versions, the running service, clock and disk.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "babeltrace-plugin/params.h"
#include "blkin_base.h"
#include "tools/base/control.h"

#include <babeltrace2/babeltrace.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

/* ---- versions -------------------------------------------------------------------------------- */

static bool is_older(const unsigned version[3], unsigned major, unsigned minor, unsigned patch)
{
    return version[0] != major   ? version[0] < major
           : version[1] != minor ? version[1] < minor
                                 : version[2] < patch;
}

static void check_library(void)
{
    void *library = doctor_open_library();
    unsigned (*version)(void), number;

    if (!library) {
        saw(LEVEL_NOTE, "version.library",
            "the dynamic linker finds no libblkin.so.1: only programs with a folder of their own "
            "for it (rpath), or with libblkin linked in, record spans" MEND
            "install package libblkin1, or run ldconfig");
        return;
    }
    *(void **)&version = dlsym(library, "blkin_version");
    number = version ? version() : 0;
    if (number == BLKIN_VERSION)
        saw(LEVEL_OK, "version.library", "libblkin.so.1 has the version of this command, %s",
            BLKIN_RELEASE);
    else
        saw(LEVEL_NOTE, "version.library",
            "libblkin.so.1 has version %u.%u.%u, this command has %s: its sink may not know some "
            "events of that library",
            number / 10000, number / 100 % 100, number % 100, BLKIN_RELEASE);
}

/* "lttng (LTTng Trace Control) 2.13.9 - Nordicite" */
static bool read_lttng_version(unsigned version[3])
{
    FILE *output = popen("lttng --version", "re"); /* NOLINT(cert-env33-c): a fixed command */
    char line[256] = "";
    const char *at;

    if (output) {
        (void)!fgets(line, sizeof(line), output);
        (void)pclose(output);
    }
    at = strstr(line, ") ");
    version[2] = 0;
    return at && sscanf(at + 2, "%u.%u.%u", &version[0], &version[1], &version[2]) >= 2;
}

static void check_lttng_version(void)
{
    unsigned version[3];

    if (!read_lttng_version(version)) {
        saw(LEVEL_BAD, "version.lttng",
            "there is no lttng command: LTTng is not installed" MEND "apt install lttng-tools");
        return;
    }
    if (is_older(version, 2, 13, 0))
        saw(LEVEL_BAD, "version.lttng",
            "lttng-tools %u.%u.%u: 2.13 or later is needed" MEND "install a newer lttng-tools",
            version[0], version[1], version[2]);
    else if (is_older(version, 2, 13, 15))
        saw(LEVEL_NOTE, "version.lttng",
            "lttng-tools %u.%u.%u: a live session must have buffers per user (with buffers per "
            "process it loses all), and other hosts must not reach the relay daemon (known "
            "security holes)" MEND "install lttng-tools 2.13.15 or later, as in Debian 13",
            version[0], version[1], version[2]);
    else
        saw(LEVEL_OK, "version.lttng", "lttng-tools %u.%u.%u", version[0], version[1], version[2]);
    if (!is_older(version, 2, 16, 0) &&
        is_older((unsigned[]){bt_version_get_major(), bt_version_get_minor(), 0}, 2, 1, 0))
        saw(LEVEL_NOTE, "version.format",
            "lttng-tools %u.%u writes CTF 2 by default, which babeltrace2 %u.%u cannot read; "
            "sessions that blkin makes are CTF 1.8" MEND
            "for a session made by hand: lttng create --trace-format=ctf-1.8",
            version[0], version[1], bt_version_get_major(), bt_version_get_minor());
}

static void check_ust_version(void)
{
    if (!dlopen("liblttng-ust-common.so.1", RTLD_LAZY | RTLD_LOCAL))
        saw(LEVEL_BAD, "version.ust",
            "there is no liblttng-ust-common.so.1 (LTTng-UST 2.13 or later): %s" MEND
            "apt install liblttng-ust1",
            dlerror());
    else
        saw(LEVEL_OK, "version.ust", "LTTng-UST has the ABI that BlkKin uses (so.1)");
}

void check_versions(const struct doctor *doctor)
{
    saw(LEVEL_OK, "version.blkin", "blkin %s with babeltrace2 %u.%u.%u", BLKIN_RELEASE,
        bt_version_get_major(), bt_version_get_minor(), bt_version_get_patch());
    check_library();
    if (is_about(doctor, "live")) {
        check_lttng_version();
        check_ust_version();
    }
}

/* ---- the service ----------------------------------------------------------------------------- */

/* Reports the losses of blkin live, only those of the last half to whole hour. */
static void check_loss_of_live(const json_t *status)
{
    const json_t *lately = json_object_get(status, "lately");
    const json_t *counters = json_object_get(lately, "counters");
    const json_t *losses = json_object_get(lately, "lost");
    const int64_t missing = number_in(counters, "events_missing");
    const int64_t lost =
        number_in(counters, "spans_dropped") + number_in(counters, "spans_undelivered") +
        number_in(counters, "spans_no_memory") + number_in(losses, "spans_with_them");
    const int64_t died = number_in(losses, "readers_died");
    const char *since = text_in(lately, "since");

    if (missing == 0 && lost == 0 && died == 0)
        saw(LEVEL_OK, "service.loss", "since %s, no event was missing, no span lost", since);
    else
        saw(LEVEL_NOTE, "service.loss",
            "since %s: %" PRId64 " events missing, %" PRId64 " spans lost, and %" PRId64
            " readers died" MEND "%s",
            since, missing, lost, died,
            lost ? "blkin status shows where; to keep spans while the collector is away: "
                   "spool = DIR in blkin.conf"
            : missing
                ? "raise subbuf-bytes or subbuf-count in blkin.conf"
                : "journalctl -u blkin-live shows why; the next reader reads the missed events, "
                  "as far as the relay daemon still has them");
}

/* Reports the service's own state and its last messages. */
static void check_state_of_service(const struct doctor *doctor, const json_t *status)
{
    const char *state = json_string_value(json_object_get(status, "state"));
    const json_t *messages = json_object_get(status, "messages");
    const size_t count = json_array_size(messages);
    const json_t *last = count ? json_array_get(messages, count - 1) : NULL;
    const char *text = json_string_value(json_object_get(last, "text"));
    const bool is_well =
        state && (strcmp(state, "running") == 0 || strcmp(state, "recording") == 0);

    saw(is_well ? LEVEL_OK : LEVEL_NOTE, "service.state", "%s; its last message: %s" MEND "%s%s",
        state ? state : "unknown", text ? text : "nothing",
        is_well ? "" : "blkin status; journalctl -u blkin-", is_well ? "" : doctor->section);
}

static void take_session_name(const struct doctor *doctor, const json_t *status)
{
    const json_t *session = json_object_get(status, "session");
    const char *name = json_is_string(session)
                           ? json_string_value(session)
                           : json_string_value(json_object_get(session, "name"));

    if (name && *name)
        (void)snprintf(doctor->facts->session_name, sizeof(doctor->facts->session_name), "%s",
                       name);
}

static void check_folder(const struct doctor *doctor, const char *folder)
{
    struct stat status;

    if (stat(folder, &status) < 0) {
        saw(errno == ENOENT ? LEVEL_NOTE : LEVEL_BAD, "service.folder", "%s: %s", folder,
            strerror(errno));
    } else if (!S_ISDIR(status.st_mode) || (status.st_mode & 077)) {
        saw(LEVEL_BAD, "service.folder",
            "%s (runtime-dir) has mode %03o: other users could ask the service, or pretend to be "
            "it" MEND "chmod 700 %s",
            folder, (unsigned)(status.st_mode & 0777), folder);
    } else if (geteuid() != 0 && status.st_uid != geteuid()) {
        doctor->facts->service_is_hidden = true;
        saw(LEVEL_NOTE, "service.folder",
            "%s (runtime-dir) belongs to user %u: this user cannot see whether the service "
            "runs" MEND "sudo blkin doctor",
            folder, (unsigned)status.st_uid);
    } else {
        saw(LEVEL_OK, "service.folder", "%s (runtime-dir) is private to the service", folder);
    }
}

/* Explains why no service answers: it was killed, or never ran. A babeltrace2 started by hand may
 * read a live session instead: see relayd.viewer. */
static void service_explain_none(const struct doctor *doctor, const char *folder, const char *why)
{
    char path[512];
    bool was_here;

    (void)snprintf(path, sizeof(path), "%s/%s.sock", folder, doctor->section);
    was_here = access(path, F_OK) == 0;
    saw(was_here || !is_about(doctor, "live") ? LEVEL_BAD : LEVEL_NOTE, "service.runs",
        "%s" MEND "systemctl %s blkin-%s; its log: journalctl -u blkin-%s", why,
        was_here ? "restart" : "start", doctor->section, doctor->section);
}

void check_service(const struct doctor *doctor)
{
    const char *folder = config_text(doctor->config, "runtime-dir");
    struct error error = {""};
    json_t *status;

    check_folder(doctor, folder);
    status = control_ask(folder, doctor->section, "status", &error);
    if (!status && doctor->facts->service_is_hidden)
        return;
    if (!status) {
        service_explain_none(doctor, folder, error.text);
        return;
    }
    doctor->facts->service_runs = true;
    saw(LEVEL_OK, "service.runs", "blkin %s runs, and answers", doctor->section);
    take_session_name(doctor, status);
    (void)snprintf(doctor->facts->endpoint, sizeof(doctor->facts->endpoint), "%s",
                   text_in(status, "endpoint"));
    check_state_of_service(doctor, status);
    if (is_about(doctor, "agent"))
        check_agent(doctor, status);
    else
        check_loss_of_live(status);
    check_ring_users(doctor, status);
    json_decref(status);
}

/* ---- clock ----------------------------------------------------------------------------------- */

void check_clock(const struct doctor *doctor)
{
    struct timex state = {.modes = 0};

    (void)doctor;
    if (adjtimex(&state) < 0)
        saw(LEVEL_NOTE, "clock.synchronized", "cannot read the state of the clock: %s",
            strerror(errno));
    else if (state.status & STA_UNSYNC)
        saw(LEVEL_NOTE, "clock.synchronized",
            "this host's clock is not synchronized: spans of several hosts do not line up" MEND
            "timedatectl set-ntp true, or install chrony");
    else
        saw(LEVEL_OK, "clock.synchronized", "synchronized, with an error of at most %ld us",
            state.maxerror);
}

/* ---- disk ------------------------------------------------------------------------------------ */

#define ENOUGH (256 * MIB) /* less free space is a note */
#define LITTLE (32 * MIB)  /* the free space that state and spool need */

/* Finds the path, or its nearest parent that exists. */
static bool find_existing(const char *path, char *folder, size_t size)
{
    (void)snprintf(folder, size, "%s", path);
    while (access(folder, F_OK) < 0) {
        char *slash = strrchr(folder, '/');

        if (errno != ENOENT || !slash || slash == folder)
            return false;
        *slash = '\0';
    }
    return true;
}

static void check_free_space(const char *id, const char *path, uint64_t needed, const char *advice)
{
    char folder[4096];
    struct statvfs disk;
    uint64_t left;

    if (!find_existing(path, folder, sizeof(folder)) || statvfs(folder, &disk) < 0) {
        saw(LEVEL_BAD, id, "%s: %s", path, strerror(errno));
        return;
    }
    left = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (left < needed || disk.f_favail == 0)
        saw(LEVEL_BAD, id, "%s: only %" PRIu64 " MiB left, %" PRIu64 " files" MEND "%s", folder,
            left / (uint64_t)MIB, (uint64_t)disk.f_favail, advice);
    else if (left < ENOUGH)
        saw(LEVEL_NOTE, id, "%s: only %" PRIu64 " MiB left" MEND "%s", folder, left / (uint64_t)MIB,
            advice);
    else
        saw(LEVEL_OK, id, "%s: %" PRIu64 " MiB left", folder, left / (uint64_t)MIB);
}

void check_disk(const struct doctor *doctor)
{
    static const char free_some[] = "free some, or name another folder in blkin.conf";
    const char *spool = config_text(doctor->config, "spool");
    const long processors = sysconf(_SC_NPROCESSORS_CONF);
    /* the size of LTTng's buffers for one more user, or one more process */
    const int64_t buffers = config_integer(doctor->config, "subbuf-bytes") *
                            config_integer(doctor->config, "subbuf-count") *
                            (processors > 0 ? processors : 1);

    check_free_space("disk.state", config_text(doctor->config, "state-dir"), LITTLE, free_some);
    if (spool)
        check_free_space("disk.spool", spool, LITTLE, free_some);
    if (!is_about(doctor, "live"))
        return;
    check_free_space(
        "disk.buffers", "/dev/shm", (uint64_t)buffers + LITTLE,
        "LTTng cannot make buffers for the next program: free some, or lower subbuf-bytes "
        "and subbuf-count");
}
