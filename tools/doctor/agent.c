/* Checks the status of `blkin agent` (time span of the rings, cluster, lost alarms and traces) and
 * its rings.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#include "tools/base/process.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

/* The seconds that the rings should hold if the key `seconds` is 0: for the delay of messages of
 * other hosts, and for a person who types `blkin keep`. */
#define ENOUGH_S 10

/* Returns the longest time from a slow span's end to the scan of the rings. */
static int64_t needed_s(const struct doctor *doctor)
{
    static const char *const parts[] = {"alarm-poll-ms", "linger-ms", "fetch-interval-ms"};
    int64_t ms = 1000; /* for messages between hosts */

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        ms += config_integer(doctor->config, parts[i]);
    return (ms + 999) / 1000;
}

/* Compares the size of the rings with the measured rate of writes. */
static void check_ring(const struct doctor *doctor, const json_t *status)
{
    const json_t *rings = json_object_get(status, "rings");
    const int64_t holds_s = number_in(rings, "holds_s");
    const int64_t wanted_s = config_integer(doctor->config, "seconds");
    const int64_t enough_s = wanted_s ? wanted_s : ENOUGH_S;

    if (holds_s == 0) {
        saw(LEVEL_OK, "ring.seconds",
            "no program has recorded events lately, so no event is overwritten");
        return;
    }
    if (holds_s >= enough_s)
        saw(LEVEL_OK, "ring.seconds", "the rings hold %" PRId64 " s at the current rate", holds_s);
    else
        saw(holds_s < needed_s(doctor) ? LEVEL_BAD : LEVEL_NOTE, "ring.seconds",
            "the rings hold only %" PRId64 " s at the current rate (%" PRId64
            " KiB/s): a slow trace is fetched up to %" PRId64 " s after the slow span ends" MEND
            "%s in blkin.conf, then blkin reload",
            holds_s, number_in(rings, "bytes_per_s") / 1024, needed_s(doctor),
            wanted_s ? "raise rings-max-bytes"
                     : "set seconds = 10 (the agent then enlarges the rings)");
}

static void check_cluster(const struct doctor *doctor, const json_t *status)
{
    const json_t *cluster = json_object_get(status, "cluster");
    const char *url = text_in(cluster, "url");
    const json_t *away = json_object_get(cluster, "away"), *host;
    char names[300] = "";
    size_t i;

    if (!*url)
        return;
    if (strcmp(text_in(cluster, "state"), "connected") != 0) {
        saw(LEVEL_BAD, "cluster.answers",
            "the broker %s is not reached: %s: other hosts are not asked for traces" MEND
            "start the broker there (mosquitto), or correct cluster (it comes from %s) and "
            "cluster-* in blkin.conf",
            url, text_in(cluster, "error"), config_origin(doctor->config, "cluster"));
        return;
    }
    saw(LEVEL_OK, "cluster.answers", "%s answers; hosts: %zu", url,
        json_array_size(json_object_get(cluster, "hosts")));
    json_array_foreach(away, i, host)
    {
        string_list_add(names, sizeof(names), json_string_value(host));
    }
    if (*names)
        saw(LEVEL_NOTE, "cluster.away",
            "hosts that are away: %s: traces are incomplete "
            "without them" MEND
            "start the agent there; if the host will not come back, as the broker's user "
            "blkin-admin: mosquitto_pub -r -n -t blkin/HOST/state",
            names);
}

static void check_cluster_config(const json_t *status)
{
    const json_t *config = json_object_get(status, "cluster_config");

    if (!*text_in(config, "refused"))
        return;
    saw(LEVEL_BAD, "cluster.config",
        "the agent refuses the text of %s: %s" MEND
        "correct the text and publish it again: mosquitto_pub -r -t " CONFIG_TOPIC " -f FILE",
        CONFIG_TOPIC, text_in(config, "refused"));
}

static void check_dropped(const json_t *status)
{
    static const struct count_name counts[] = {
        {"alarms_lost", "alarms overwritten"},
        {"alarms_newer", "alarms of a newer version (upgrade blkin here)"},
        {"alarms_held_back", "alarms held back by programs (max=)"},
        {"alarms_dropped", "alarms beyond the askers' shares, or without memory"},
        {"traces_dropped", "traces of requests beyond fetch-traces"},
        {"traces_incomplete", "traces incomplete"},
    };
    const json_t *lately = json_object_get(status, "lately");
    char said[400] = "";

    list_counts(said, sizeof(said), json_object_get(lately, "totals"), counts,
                sizeof(counts) / sizeof(counts[0]));
    if (!*said)
        saw(LEVEL_OK, "service.loss", "since %s, no alarm was dropped, no trace incomplete",
            text_in(lately, "since"));
    else
        saw(LEVEL_NOTE, "service.loss",
            "since %s: %s" MEND "what to do about each is in doc/agent.md, \"What is lost when\"",
            text_in(lately, "since"), said);
}

void check_agent(const struct doctor *doctor, const json_t *status)
{
    check_ring(doctor, status);
    check_cluster(doctor, status);
    check_cluster_config(status);
    check_dropped(status);
}

/* ---- rings: can programs get them, and have they? -------------------------------------------- */

/* Programs of all users must reach the socket. */
static bool rings_check_socket(const struct doctor *doctor)
{
    const char *path = config_text(doctor->config, "ring-socket");
    struct stat status;

    if (stat(path, &status) != 0) {
        saw(LEVEL_BAD, "rings.socket",
            "%s: %s: programs get no rings" MEND
            "systemctl start blkin-agent; ring-socket comes from %s",
            path, strerror(errno), config_origin(doctor->config, "ring-socket"));
        return false;
    }
    if (!S_ISSOCK(status.st_mode) || (status.st_mode & 0222) != 0222) {
        saw(LEVEL_BAD, "rings.socket",
            "%s is not a socket that all users may write to: programs of other users get no "
            "rings" MEND "systemctl restart blkin-agent",
            path);
        return false;
    }
    saw(LEVEL_OK, "rings.socket", "programs get rings at %s", path);
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
        strcmp(value, config_text(doctor->config, "ring-socket")) != 0)
        saw(LEVEL_BAD, "rings.program",
            "process %d (%s) has no rings: BLKIN_RINGS=%s is in its environment" MEND
            "start it without that variable",
            PROCESS_NAMED(process), value);
    else if (process_has_other_folder(process->pid, "/run/blkin/rings"))
        saw(LEVEL_BAD, "rings.program",
            "process %d (%s) has no rings: it is in a container with another /run/blkin/rings" MEND
            "mount the host's /run/blkin/rings into the container",
            PROCESS_NAMED(process));
    else if (doctor->facts->rings_are_refused)
        saw(LEVEL_NOTE, "rings.program",
            "process %d (%s) has no rings: the service has refused rings to programs" MEND
            "first repair ring.refused",
            PROCESS_NAMED(process));
    else
        saw(LEVEL_NOTE, "rings.program",
            "process %d (%s) uses BlkKin and has no rings: it has begun no span yet, it started "
            "before the folder of the socket was there, or its glibc does not register rseq "
            "(GLIBC_TUNABLES, valgrind)" MEND
            "send it a request; if that does not help, start it again",
            PROCESS_NAMED(process));
}

static void rings_look_at(void *context, struct process *process)
{
    struct rings_search *search = context;

    if (!process_find_libraries(process, LIBRARY_FILE, RINGS_MEMORY))
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
    if (search.with)
        saw(LEVEL_OK, "rings.programs", "%u programs write into rings", search.with);
    else if (*config_text(doctor->config, "otlp-listen") ||
             *config_text(doctor->config, "otlp-socket"))
        saw(LEVEL_NOTE, "rings.programs",
            "no running program writes into rings: only spans that arrive by OTLP are recorded");
    else if (!search.hidden || geteuid() == 0)
        saw(LEVEL_BAD, "rings.programs",
            "no running program writes into rings" MEND
            "start one that is linked with libblkin, or by `blkin run`");
    if (search.without > EXPLAINED_MAX)
        saw(LEVEL_NOTE, "rings.more", "%u more processes use BlkKin and have no rings",
            search.without - EXPLAINED_MAX);
    if (search.hidden && geteuid() != 0)
        saw(LEVEL_NOTE, "rings.hidden",
            "%u processes belong to other users, and cannot be inspected" MEND "sudo blkin doctor",
            search.hidden);
}

/* ---- rings: which limit did the service reach? ----------------------------------------------- */

/* Reports refused rings, and names the limit that was reached. */
static void check_refused(const struct doctor *doctor, const json_t *rings, int64_t refused)
{
    const int64_t users = number_in(rings, "users"), bytes = number_in(rings, "bytes");
    const int64_t users_max = config_integer(doctor->config, "ring-users");
    const int64_t bytes_max = config_integer(doctor->config, "rings-max-bytes");

    if (refused <= 0)
        return;
    doctor->facts->rings_are_refused = true;
    saw(LEVEL_BAD, "ring.refused",
        "the service refused rings to programs %" PRId64 " times: %" PRId64
        " users have rings (ring-users = %" PRId64 "), of %" PRId64
        " MiB (rings-max-bytes = %" PRId64 " MiB)" MEND "raise %s",
        refused, users, users_max, bytes >> 20, bytes_max >> 20,
        users >= users_max ? "ring-users in blkin.conf, then blkin reload"
                           : "rings-max-bytes, or lower ring-bytes, in blkin.conf, then blkin "
                             "reload; is memory short? free");
}

void check_ring_users(const struct doctor *doctor, const json_t *status)
{
    const json_t *rings = json_object_get(status, "rings");
    const json_t *lately = json_object_get(json_object_get(status, "lately"), "rings");
    const int64_t unknown = number_in(lately, "refused_unknown_users");

    if (!rings)
        return;
    check_refused(doctor, rings, number_in(lately, "refused") - unknown);
    if (unknown == 0)
        saw(LEVEL_OK, "rings.users",
            "the service knows the users of all programs that asked for rings");
    else
        saw(LEVEL_BAD, "rings.users",
            "programs were refused rings %" PRId64 " times: blkin %s runs in a container that does "
            "not map their users, and users must not "
            "share one memory" MEND
            "run blkin %s outside of a user namespace (on the host), or map these users into "
            "its namespace",
            unknown, doctor->section, doctor->section);
}
