/*
 * Shared by the checks of `blkin doctor`: findings, facts, and the runner of groups.
 *
 * A group of checks may hang or crash. The doctor runs each group in a child with a time limit.
 * Both processes share the memory with findings and facts, so a crash loses no finding.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CHECK_H
#define BLKIN_TOOLS_CHECK_H

#include "tools/base/json.h"
#include "babeltrace-plugin/base/text.h"
#include "tools/config/config.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

enum level { LEVEL_OK, LEVEL_NOTE, LEVEL_BAD, LEVEL_SKIPPED, LEVELS };

struct finding {
    char id[32]; /* of the check; never changes */
    enum level level;
    char saw[640];  /* the state that the check found */
    char mend[384]; /* the remedy: a command or advice; "": none */
};

#define FINDINGS_MAX 64

struct findings {
    unsigned count;
    struct finding list[FINDINGS_MAX];
};

#define REGISTERED_MAX 4096
#define EXPLAINED_MAX  8 /* processes that one kind of finding explains */
#define LIBRARY_FILE   "/libblkin.so"
#define RINGS_MEMORY   "/memfd:blkin-rings" /* the memory of rings in /proc/PID/maps */

enum session_kind { NO_SESSION, LIVE_SESSION, OTHER_SESSION };

/* Results that later groups need. */
struct facts {
    pid_t sessiond; /* the session daemon that liblttng-ctl uses; 0: none */
    uid_t sessiond_user;
    enum session_kind session;
    bool is_active;         /* the session records */
    bool service_runs;      /* the service of the section */
    bool rings_are_refused; /* the service refuses rings to programs */
    bool service_is_hidden; /* another user owns runtime-dir, so its state is unknown */
    char endpoint[512];     /* of the running service; "": none runs */
    char session_name[256]; /* of the running service, or of the configuration */
    unsigned relayd_port;   /* the port that the session sends to; 0: unknown */
    bool relayd_hangs;      /* the check of the relay daemon has not returned in time */
    bool relayd_answers;
    unsigned registered_count; /* programs with LTTng tracepoints of any kind */
    pid_t registered[REGISTERED_MAX];
};

struct doctor {
    const struct config *config;
    const char *section; /* the service to check: "live", "agent" or "work" */
    pid_t pid;           /* the process of --pid; 0: none */
    struct facts *facts;
};

/* Makes the memory that all groups share. Returns the facts; NULL with errno set. */
struct facts *findings_open(void);
const struct findings *findings_all(void);

/* Adds a finding. The format may end with MEND and the remedy: a command or advice; "": none. */
#define MEND "\n"
__attribute__((format(printf, 3, 4))) void saw(enum level level, const char *id, const char *format,
                                               ...);

/* The arguments for "process %d (%s)". */
#define PROCESS_NAMED(process) (int)(process)->pid, (process)->name

/* A member of a JSON object, and the words for it. */
struct count_name {
    const char *name, *what;
};

/* Appends the members that are not 0 to the list: "3 samples too late, ..." */
void list_counts(char *list, size_t size, const json_t *object, const struct count_name *counts,
                 size_t count);

/* Returns whether the doctor checks this section. */
bool is_about(const struct doctor *doctor, const char *section);

/* The sections that need a group. */
enum { FOR_LIVE = 1, FOR_AGENT = 2, FOR_WORK = 4 };

/* A group of checks. Its name is the id of a finding about its hang or crash. */
struct check_group {
    const char *name;
    void (*run)(const struct doctor *doctor);
    unsigned sections;
    const char *needs; /* skips the group unless this check passed; NULL: never */
    const char *mend_hang;
};

/* Runs a group in a child, for limit_ms at most. */
void group_run(const struct doctor *doctor, const struct check_group *group, int limit_ms);

/* ---- the groups, in the order from the program to the collector */

void check_versions(const struct doctor *doctor);
void check_service(const struct doctor *doctor);
/* check_service() calls both. status: the answer to `blkin status`. */
void check_agent(const struct doctor *doctor, const json_t *status);
void check_ring_users(const struct doctor *doctor, const json_t *status);
void check_sessiond(const struct doctor *doctor);
void check_sessiond_answer(const struct doctor *doctor);
void check_programs(const struct doctor *doctor);

/* Writes into `why` the reason why a program that uses libblkin has not loaded LTTng. */
struct process;
void program_without_lttng(const struct doctor *doctor, const struct process *process, char *why,
                           size_t size);

/* Reads the beginning of a file of settings with the rights of the process, as libblkin does.
 * Returns the length, or -1 with errno set. */
ssize_t program_read_file(const struct process *process, const char *path, char *text, size_t size,
                          struct stat *status);
/* Reports that libblkin ignores the file, because other users may write to the file: see
 * process_distrusts(). */
void program_tell_distrust(const char *id, const char *program, const char *path,
                           const struct stat *status);

/* Opens libblkin as the dynamic linker finds it; NULL: not found. Prevents libblkin's constructor
 * from loading LTTng, which would wait for a hanging session daemon. */
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
