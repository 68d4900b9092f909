/*
 * The state that all parts of the agent share: the configuration, the totals, the collected traces
 * and the waiting requests. Files store the totals and the traces. Each part has its own state:
 *
 *     service.c    the service: start, reload and end
 *     agent_rings.h    the rings of programs
 *     alarms.h     alarms of this host's programs
 *     wants.h     requests to all hosts and from them, answers and verdicts
 *     scans.h      scans of the rings for wanted traces
 *     feed.h       gives the results of a scan to the export
 *     export.h     the exporter, which all pipelines share
 *     send_all.h   every span, with send = all
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_AGENT_H
#define BLKIN_TOOLS_AGENT_H

#include "collected.h"
#include "scan_queue.h"
#include "tools/base/loop.h"
#include "tools/base/say.h"
#include "tools/config/frame.h"
#include "totals.h"

struct agent {
    struct frame *frame;
    const struct config *config; /* a reload replaces it */
    struct loop *loop;
    struct timer step;     /* starts the next scan, and judges traces */
    struct export *export; /* NULL: closed, with all spans settled */
    /* send = all: slow traces are still collected until then, because some of their spans are older
     * than the change to send = all. 0: send = slow */
    int64_t fetches_until_ms;
    char host[254]; /* the name of this host */
    struct agent_totals totals;
    json_t *read_on; /* where the next send_all begins; NULL: at the ends of the rings */
    struct collected *collected;
    struct scan_queue scan_queue;
    struct payers askers; /* askers.h */
    json_t *alarms_seen;  /* the read alarms at the last poll: see alarms_seen.h */
    char totals_file[4096], collected_file[4096];
    char said[1024]; /* the last state that was logged */
    int64_t said_ms; /* when it was logged */
};

/* Reads the files of an earlier run. The caller has set config, loop, host and step. Returns false
 * with error set. */
bool agent_open(struct agent *agent, struct error *error);
void agent_close(struct agent *agent);

/* Sets the path of a file in the folder of the key state-dir or runtime-dir. */
void agent_path(const struct agent *agent, const char *key, const char *name, char path[4096]);

/* Returns true if this host sends every trace without a request. */
bool agent_sends_all(const struct agent *agent);

/* Schedules `step` for the next turn of the loop. Each part calls this function after a change. */
void agent_step(struct agent *agent);

/* send = slow: a later send = all begins at the ends of the rings. */
void agent_forget_place(struct agent *agent);

/* Save the totals with the read alarms, and the collected traces. */
void agent_save(struct agent *agent);
void agent_save_collected(struct agent *agent);

/* Logs a state, and reports it to systemd. Repeats the same state only after a minute. */
void agent_say_state(struct agent *agent, enum message_id id, const char *text);

#endif
