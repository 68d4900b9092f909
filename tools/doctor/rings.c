/*
 * Checks of the recorder's rings: can programs get them, and have they?
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "process.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY       "/libblkin.so"
#define RINGS         "/memfd:blkin-rings" /* as /proc/PID/maps shows the memory of rings */
#define EXPLAINED_MAX 8

/* Every program must come to the socket, whoever its user is. */
static bool rings_check_socket(const struct doctor *doctor)
{
    const char *path = config_text(doctor->config, "ring-socket");
    struct stat status;

    if (stat(path, &status) != 0) {
        saw(doctor, LEVEL_BAD, "rings.socket", "%s: %s: programs get no rings", path,
            strerror(errno));
        mend(doctor, "systemctl start blkin-record; ring-socket in blkin.conf, from %s",
             config_origin(doctor->config, "ring-socket"));
        return false;
    }
    if (!S_ISSOCK(status.st_mode) || (status.st_mode & 0222) != 0222) {
        saw(doctor, LEVEL_BAD, "rings.socket",
            "%s is no socket that all users may write to: their programs get no rings", path);
        mend(doctor, "systemctl restart blkin-record");
        return false;
    }
    saw(doctor, LEVEL_OK, "rings.socket", "programs get rings at %s", path);
    return true;
}

struct rings_search {
    const struct doctor *doctor;
    unsigned with, without, hidden;
};

static void rings_explain(const struct doctor *doctor, const struct process *process)
{
    char value[256];

    if (process_variable(process->pid, "BLKIN_RINGS", value, sizeof(value)) &&
        strcmp(value, config_text(doctor->config, "ring-socket")) != 0) {
        saw(doctor, LEVEL_BAD, "rings.program",
            "process %d (%s) has no rings: BLKIN_RINGS=%s is in its environment", (int)process->pid,
            process->name, value);
        mend(doctor, "start it without that variable");
    } else if (process_is_elsewhere(process->pid, "/run/blkin/rings")) {
        saw(doctor, LEVEL_BAD, "rings.program",
            "process %d (%s) has no rings: it is in a container with another /run/blkin/rings",
            (int)process->pid, process->name);
        mend(doctor, "mount the host's /run/blkin/rings into the container");
    } else {
        saw(doctor, LEVEL_NOTE, "rings.program",
            "process %d (%s) uses BlkKin and has no rings: it has begun no span yet, or its glibc "
            "does not register rseq (GLIBC_TUNABLES, valgrind)",
            (int)process->pid, process->name);
        mend(doctor, "BLKIN_DEBUG=1 in the environment of the program makes it say");
    }
}

static void rings_look_at(void *context, struct process *process)
{
    struct rings_search *search = context;

    if (!process_find_libraries(process, LIBRARY, RINGS))
        search->hidden++;
    else if (process->library[0] && process->provider[0])
        search->with++;
    else if (process->library[0] && search->without++ < EXPLAINED_MAX)
        rings_explain(search->doctor, process);
}

void check_rings(const struct doctor *doctor)
{
    struct rings_search search = {.doctor = doctor};

    if (!rings_check_socket(doctor))
        return;
    process_each(rings_look_at, &search);
    if (search.with) {
        saw(doctor, LEVEL_OK, "rings.programs", "%u programs write into rings", search.with);
    } else if (!search.hidden || geteuid() == 0) {
        saw(doctor, LEVEL_BAD, "rings.programs", "no running program writes into rings");
        mend(doctor, "start one that is linked with libblkin, or by `blkin run`");
    }
    if (search.without > EXPLAINED_MAX)
        saw(doctor, LEVEL_NOTE, "rings.more", "%u more processes use BlkKin and have no rings",
            search.without - EXPLAINED_MAX);
    if (search.hidden && geteuid() != 0) {
        saw(doctor, LEVEL_NOTE, "rings.hidden",
            "%u processes are of other users, and cannot be looked at", search.hidden);
        mend(doctor, "sudo blkin doctor");
    }
}

/* ---- of a service that holds them ------------------------------------------------------------ */

void check_ring_users(const struct doctor *doctor, const json_t *status)
{
    const json_t *rings = json_object_get(status, "rings");
    const int64_t unknown = number_in(rings, "refused_unknown_users");

    if (!rings)
        return;
    if (unknown == 0) {
        saw(doctor, LEVEL_OK, "rings.users", "the users of all programs that asked are told apart");
        return;
    }
    saw(doctor, LEVEL_BAD, "rings.users",
        "programs have asked for rings %" PRId64 " times and were refused: blkin %s runs in a "
        "container that does not know their users, and must not let them share a memory",
        unknown, doctor->section);
    mend(doctor,
         "run blkin %s outside of a user namespace (on the host), or map these users into "
         "its namespace",
         doctor->section);
}
