/*
 * What the checks of `blkin doctor` share: what they have found, and how they are run.
 *
 * A group of checks runs in a process of its own with a time limit, since what it asks may hang or
 * crash: this program once more, for that group alone. What it finds is in memory that both share,
 * so that nothing is lost then.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CHECK_H
#define BLKIN_TOOLS_CHECK_H

#include "tools/base/json.h"
#include "tools/config/config.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum level { LEVEL_OK, LEVEL_NOTE, LEVEL_BAD, LEVEL_SKIPPED, LEVELS };

struct finding {
    char id[32]; /* of the check: stable */
    enum level level;
    char saw[640];
    char mend[384]; /* the command, or what to do; "": nothing */
};

#define FINDINGS_MAX   64
#define REGISTERED_MAX 4096

enum session_kind { NO_SESSION, LIVE_SESSION, OTHER_SESSION };

/* What later groups need to know. */
struct facts {
    pid_t sessiond; /* that we talk to; 0: none */
    uid_t sessiond_user;
    enum session_kind session;
    bool is_active;
    bool service_runs;      /* of the section */
    bool rings_are_refused; /* to programs, by the service */
    bool service_is_hidden; /* runtime-dir is another user's: nobody tells us whether it runs */
    char endpoint[512];     /* that the service sends to; "": it does not run */
    char session_name[256]; /* that the service has, or that is configured */
    unsigned relayd_port;   /* that the session's data goes to; 0: not known */
    bool relayd_hangs;      /* has been asked, and has not answered */
    bool relayd_answers;
    unsigned registered_count; /* of programs with LTTng tracepoints of any kind */
    pid_t registered[REGISTERED_MAX];
};

#define SECTION_BYTES 16

/* What all groups share. */
struct shared {
    pid_t doctor;
    char section[SECTION_BYTES];
    struct facts facts;
    struct finding findings[FINDINGS_MAX];
    unsigned count;
};

struct doctor {
    const struct config *config;
    char *section; /* "live", "agent" or "work": what it is about */
    pid_t pid;     /* of the one that should be preloaded; 0: none */
    struct facts *facts;
    struct finding *findings;
    unsigned *count;
    int shared;       /* the file of struct shared */
    char **arguments; /* of the command, ended by NULL */
};

/* A finding, from now on the last one. */
__attribute__((format(printf, 4, 5))) void saw(const struct doctor *doctor, enum level level,
                                               const char *id, const char *format, ...);
/* What mends the last one. */
__attribute__((format(printf, 2, 3))) void mend(const struct doctor *doctor, const char *format,
                                                ...);

/* ", " and the item, as far as there is room. */
void list_add(char *list, size_t size, const char *item);

/* What of these members is not 0, as a list: "3 samples too late, ..." */
struct count_name {
    const char *name, *what;
};
void list_counts(char *list, size_t size, const json_t *object, const struct count_name *counts,
                 size_t count);

/* Is it about this one? */
bool is_about(const struct doctor *doctor, const char *section);

/* Does the service need LTTng? The agent reads rings instead. */
bool needs_lttng(const struct doctor *doctor);

/* A group of checks; name is for the one finding that tells that it hung or crashed. */
struct group {
    const char *name;
    void (*run)(const struct doctor *doctor);
    const char *needs; /* the id of a check that must be well, else it is skipped; NULL: none */
    const char *mend_hang;
};

/* Runs it in a process of its own, for so long at most: `blkin doctor --group=NAME ARGUMENT...`, of
 * which GROUP_FILE is the file of struct shared. */
#define GROUP_FLAG "--group="
#define GROUP_FILE 3
void group_run(const struct doctor *doctor, const struct group *group, int limit_ms);

/* ---- the groups, in the order from the program to the collector */

void check_versions(const struct doctor *doctor);
void check_service(const struct doctor *doctor);
void check_recorder(const struct doctor *doctor, const json_t *status);   /* a part of it */
void check_ring_users(const struct doctor *doctor, const json_t *status); /* another one */
void check_sessiond(const struct doctor *doctor);
void check_sessiond_answer(const struct doctor *doctor);
void check_programs(const struct doctor *doctor);

/* Why LTTng is not in a program that uses libblkin. */
struct process;
void program_without_lttng(const struct doctor *doctor, const struct process *process, char *why,
                           size_t size);

/* libblkin as the dynamic linker finds it; NULL: it does not. Its constructor does not load LTTng
 * here, which would wait for a session daemon that hangs. */
void *doctor_open_library(void);

void check_rings(const struct doctor *doctor);
void check_preload(const struct doctor *doctor);
void check_sampling(const struct doctor *doctor);
void check_rules(const struct doctor *doctor);
void check_session(const struct doctor *doctor);
void check_channel(const struct doctor *doctor);
void check_host_session(const struct doctor *doctor);
void check_metrics(const struct doctor *doctor);
void check_relayd_address(const struct doctor *doctor);
void check_relayd(const struct doctor *doctor);
void check_relayd_session(const struct doctor *doctor);
void check_plugin(const struct doctor *doctor);
void check_collector(const struct doctor *doctor);
void check_clock(const struct doctor *doctor);
void check_disk(const struct doctor *doctor);
void check_work(const struct doctor *doctor);

#endif
