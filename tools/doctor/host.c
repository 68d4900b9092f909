/*
 * Checks of this host: versions, the running service, clock and disk.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "blkin_base.h"
#include "params.h"
#include "service/control.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

/* ---- versions ---------------------------------------------------------------------------------
 */

static bool is_older(const unsigned version[3], unsigned major, unsigned minor, unsigned patch)
{
    return version[0] != major   ? version[0] < major
           : version[1] != minor ? version[1] < minor
                                 : version[2] < patch;
}

/* libblkin itself opens nothing, and knows nothing of LTTng, until a program traces. */
static void check_library(const struct doctor *doctor)
{
    void *library = dlopen("libblkin.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*version)(void);

    if (!library) {
        saw(doctor, LEVEL_NOTE, "version.library",
            "the dynamic linker finds no libblkin.so.1: programs that have it in a folder of their "
            "own (rpath), or linked in, work all the same");
        mend(doctor, "install package libblkin1, or run ldconfig");
        return;
    }
    *(void **)&version = dlsym(library, "blkin_version");
    if (version && version() == BLKIN_VERSION)
        saw(doctor, LEVEL_OK, "version.library", "libblkin.so.1 is of our version, %s",
            BLKIN_RELEASE);
    else
        saw(doctor, LEVEL_NOTE, "version.library",
            "libblkin.so.1 is of version %d, this command of %s: its sink may not know what it "
            "records",
            version ? version() : 0, BLKIN_RELEASE);
}

/* "lttng (LTTng Trace Control) 2.13.9 - Nordicite" */
static bool read_lttng_version(unsigned version[3])
{
    FILE *file = popen("lttng --version 2>/dev/null", "re");
    char line[256] = "";
    const char *at;
    bool is_read;

    if (!file)
        return false;
    is_read = fgets(line, sizeof(line), file) != NULL;
    (void)pclose(file);
    at = strstr(line, ") ");
    version[2] = 0;
    return is_read && at && sscanf(at + 2, "%u.%u.%u", &version[0], &version[1], &version[2]) >= 2;
}

static void check_lttng_version(const struct doctor *doctor)
{
    unsigned version[3];

    if (!read_lttng_version(version)) {
        saw(doctor, LEVEL_BAD, "version.lttng",
            "there is no lttng command: LTTng is not installed");
        mend(doctor, "apt install lttng-tools");
        return;
    }
    if (is_older(version, 2, 13, 0)) {
        saw(doctor, LEVEL_BAD, "version.lttng", "lttng-tools %u.%u.%u: 2.13 or later is needed",
            version[0], version[1], version[2]);
        mend(doctor, "install a newer lttng-tools");
    } else if (is_older(version, 2, 13, 15)) {
        saw(doctor, LEVEL_NOTE, "version.lttng",
            "lttng-tools %u.%u.%u: live needs buffers per user (those per process lose all), and "
            "its relay daemon must not be reached by others (known holes)",
            version[0], version[1], version[2]);
        mend(doctor, "lttng-tools 2.13.15 or later, as in Debian 13");
    } else {
        saw(doctor, LEVEL_OK, "version.lttng", "lttng-tools %u.%u.%u", version[0], version[1],
            version[2]);
    }
    if (!is_older(version, 2, 16, 0) &&
        is_older((unsigned[]){bt_version_get_major(), bt_version_get_minor(), 0}, 2, 1, 0)) {
        saw(doctor, LEVEL_NOTE, "version.format",
            "lttng-tools %u.%u makes traces of CTF 2 unless told, which babeltrace2 %u.%u cannot "
            "read; blkin tells it",
            version[0], version[1], bt_version_get_major(), bt_version_get_minor());
        mend(doctor, "lttng create --trace-format=ctf-1.8, for sessions made by hand");
    }
}

void check_versions(const struct doctor *doctor)
{
    saw(doctor, LEVEL_OK, "version.blkin", "blkin %s with babeltrace2 %u.%u.%u", BLKIN_RELEASE,
        bt_version_get_major(), bt_version_get_minor(), bt_version_get_patch());
    check_library(doctor);
    check_lttng_version(doctor);
    if (!dlopen("liblttng-ust-common.so.1", RTLD_LAZY | RTLD_LOCAL)) {
        saw(doctor, LEVEL_BAD, "version.ust",
            "there is no liblttng-ust-common.so.1 (LTTng-UST 2.13 or later): %s", dlerror());
        mend(doctor, "apt install liblttng-ust1");
    } else {
        saw(doctor, LEVEL_OK, "version.ust", "LTTng-UST is of the series that we use (so.1)");
    }
}

/* ---- the service ------------------------------------------------------------------------------
 */

/* The sum of all numbers of this name, wherever they are in it. */
static int64_t sum_of(const json_t *json, const char *name)
{
    int64_t sum = 0;
    const char *key;
    json_t *value;
    size_t i;

    if (json_is_array(json)) {
        json_array_foreach(json, i, value) sum += sum_of(value, name);
    }
    json_object_foreach((json_t *)(uintptr_t)json, key, value)
    {
        if (json_is_integer(value) && strcmp(key, name) == 0)
            sum += json_integer_value(value);
        else
            sum += sum_of(value, name);
    }
    return sum;
}

static void check_loss_of_service(const struct doctor *doctor, const json_t *status)
{
    const int64_t missing = sum_of(status, "events_missing");
    const int64_t dropped = sum_of(status, "spans_dropped");

    if (missing == 0 && dropped == 0) {
        saw(doctor, LEVEL_OK, "service.loss", "no event is missing, no span was dropped");
        return;
    }
    saw(doctor, LEVEL_NOTE, "service.loss",
        "since it runs %" PRId64 " events were missing and %" PRId64 " spans dropped", missing,
        dropped);
    mend(doctor, dropped ? "blkin status tells why; collector away: spool = DIR in blkin.conf"
                         : "larger subbuf-bytes or subbuf-count in blkin.conf");
}

static void check_folder(const struct doctor *doctor, const char *folder)
{
    struct stat status;

    if (stat(folder, &status) < 0) {
        saw(doctor, errno == ENOENT ? LEVEL_NOTE : LEVEL_BAD, "service.folder", "%s: %s", folder,
            strerror(errno));
        return;
    }
    if (!S_ISDIR(status.st_mode) || (status.st_mode & 077)) {
        saw(doctor, LEVEL_BAD, "service.folder",
            "%s (runtime-dir) has mode %03o: others could ask the service, or pretend to be it",
            folder, (unsigned)(status.st_mode & 0777));
        mend(doctor, "chmod 700 %s", folder);
        return;
    }
    if (geteuid() != 0 && status.st_uid != geteuid()) {
        saw(doctor, LEVEL_NOTE, "service.folder",
            "%s (runtime-dir) is of user %u: whether the service runs is not for us to see", folder,
            (unsigned)status.st_uid);
        mend(doctor, "sudo blkin doctor");
        return;
    }
    saw(doctor, LEVEL_OK, "service.folder", "%s is the service's own", folder);
}

void check_service(const struct doctor *doctor)
{
    const char *folder = config_text(doctor->config, "runtime-dir");
    struct error error = {""};
    json_t *status;

    check_folder(doctor, folder);
    status = control_ask(folder, doctor->section, "status", &error);
    if (!status) {
        /* a live session may have a babeltrace2 that was started by hand: see relayd.viewer */
        saw(doctor, strcmp(doctor->section, "live") == 0 ? LEVEL_NOTE : LEVEL_BAD, "service.runs",
            "%s", error.text);
        mend(doctor, "systemctl start blkin-%s; its log: journalctl -u blkin-%s", doctor->section,
             doctor->section);
        return;
    }
    doctor->facts->service_runs = true;
    saw(doctor, LEVEL_OK, "service.runs", "blkin %s runs, and answers", doctor->section);
    check_loss_of_service(doctor, status);
    json_decref(status);
}

/* ---- clock ------------------------------------------------------------------------------------
 */

void check_clock(const struct doctor *doctor)
{
    struct timex state = {.modes = 0};

    if (adjtimex(&state) < 0) {
        saw(doctor, LEVEL_NOTE, "clock.synchronized", "the kernel does not tell: %s",
            strerror(errno));
        return;
    }
    if (state.status & STA_UNSYNC) {
        saw(doctor, LEVEL_NOTE, "clock.synchronized",
            "nothing keeps this host's clock right: spans of several hosts do not line up");
        mend(doctor, "timedatectl set-ntp true, or install chrony");
        return;
    }
    saw(doctor, LEVEL_OK, "clock.synchronized", "synchronized, to %ld us at worst", state.maxerror);
}

/* ---- disk -------------------------------------------------------------------------------------
 */

#define MIB    UINT64_C(1048576)
#define ENOUGH (256 * MIB)
#define LITTLE (32 * MIB)

/* The folder that is there, of the path of one that is not yet. */
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

static void check_place(const struct doctor *doctor, const char *id, const char *path,
                        uint64_t needed, const char *advice)
{
    char folder[4096];
    struct statvfs disk;
    uint64_t left;

    if (!find_existing(path, folder, sizeof(folder)) || statvfs(folder, &disk) < 0) {
        saw(doctor, LEVEL_BAD, id, "%s: %s", path, strerror(errno));
        return;
    }
    left = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (left < needed || disk.f_favail == 0) {
        saw(doctor, LEVEL_BAD, id, "%s: only %" PRIu64 " MiB left, %" PRIu64 " files", folder,
            left / MIB, (uint64_t)disk.f_favail);
        mend(doctor, "%s", advice);
    } else if (left < ENOUGH) {
        saw(doctor, LEVEL_NOTE, id, "%s: only %" PRIu64 " MiB left", folder, left / MIB);
        mend(doctor, "%s", advice);
    } else {
        saw(doctor, LEVEL_OK, id, "%s: %" PRIu64 " MiB left", folder, left / MIB);
    }
}

/* LTTng's buffers of one user more, or of one process. */
static uint64_t buffer_bytes(const struct doctor *doctor)
{
    const long processors = sysconf(_SC_NPROCESSORS_CONF);

    return (uint64_t)config_integer(doctor->config, "subbuf-bytes") *
           (uint64_t)config_integer(doctor->config, "subbuf-count") *
           (uint64_t)(processors > 0 ? processors : 1);
}

void check_disk(const struct doctor *doctor)
{
    static const char free_some[] = "free some, or name another folder in blkin.conf";
    const char *shm_path = config_text(doctor->config, "shm-path");

    check_place(doctor, "disk.state", config_text(doctor->config, "state-dir"), LITTLE, free_some);
    if (strcmp(doctor->section, "rotate") == 0)
        check_place(doctor, "disk.output", config_text(doctor->config, "output"), LITTLE,
                    free_some);
    check_place(doctor, "disk.buffers", *shm_path ? shm_path : "/dev/shm",
                buffer_bytes(doctor) + LITTLE,
                "LTTng cannot make buffers for the next program: free some, or lower subbuf-bytes "
                "and subbuf-count");
}
