/*
 * The agent: its parts, and the state that they share: the configuration, the totals, the collected
 * traces and the waiting requests. Files store the totals and the traces. Each part has its own
 * state:
 *
 *     service.c      the service: start, reload and end
 *     agent_rings.h  the rings of programs
 *     alarms.h       alarms of this host's programs
 *     wants.h        requests to all hosts and from them, answers and verdicts
 *     scans.h        scans of the rings for wanted traces
 *     feed.h         gives the results of a scan to the export
 *     export.h       the exporter, which all pipelines share
 *     send_all.h     every span, with send = all
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_AGENT_H
#define BLKIN_TOOLS_AGENT_H

#include "collected.h"
#include "scan_queue.h"
#include "tools/base/loop.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"
#include "tools/base/totals.h"
#include "tools/config/frame.h"

/* The totals of all runs of the agent. A file in the state folder stores them. */
struct agent_totals {
    struct counts sinks; /* of the pipelines and the exporter */
    /* alarms = alarms_double + alarms_dropped + the traces_asked for alarms */
    uint64_t alarms;        /* of programs and of SDKs, with a trace */
    uint64_t alarms_double; /* the trace was already wanted, fetched after the alarm, or sent */
    /* not fetched: beyond the asker's share, or out of memory, or because the agent ends */
    uint64_t alarms_dropped;
    uint64_t alarms_lost;      /* overwritten before they were read */
    uint64_t alarms_newer;     /* of a newer format */
    uint64_t alarms_held_back; /* suppressed by the caps of rules; not in `alarms` */
    /* In this host's requests to all hosts: for alarms and joins, and repeated after a restart, or
     * if a trace began earlier than known. traces_asked + traces_asked_by_hand = traces_complete +
     * traces_incomplete + traces_not_found + traces_of_others + traces_asked_again + open */
    uint64_t traces_asked, traces_asked_by_hand;
    uint64_t traces_asked_by_others;
    uint64_t traces_dropped; /* left out of the scan queue for lack of room: of all requests */
    uint64_t fetches, fetches_failed;
    uint64_t fetched_bytes, picked_bytes; /* of records that scans read, and that they found */
    uint64_t rings_damaged; /* a damaged ring counts in each scan that reaches the damage */
    uint64_t foreign_fetched, foreign_dropped; /* spans of OpenTelemetry's SDKs */
    uint64_t traces_complete, traces_incomplete, traces_not_found;
    uint64_t traces_of_others;   /* another host judges, as it requested the trace later */
    uint64_t traces_asked_again; /* a later request of this host judges */
    uint64_t incomplete_untold; /* incomplete traces that no span reports: too many open requests */
    uint64_t traces_apart;      /* reports (spans) that a part of the request is a separate trace */
    uint64_t halves_dropped;    /* halves of requests (joins.h): there was no room or no memory */
    uint64_t windows_refused;   /* for lack of bytes (keep-minute-bytes) */
    uint64_t rings_grown;
    uint64_t traces_skipped; /* after two crashes during their scans: see deaths.h */
    /* after two crashes at one place, or overwritten before the agent started again: see
     * send_all.h */
    uint64_t skipped_bytes;
    /* no counters */
    uint64_t ring_bytes; /* the size of a ring in new memories; 0: not grown */
    json_t *read;        /* the settled place of send = all: see send_all.h; NULL: none */
    uint64_t deaths;     /* crashes of agents that began to read at this place: see deaths.h */
    int64_t deaths_at_ns;
    json_t *file; /* the file that the last run has completed: see export_close(); NULL: none */
};

extern const struct totals_table agent_table;

struct agent {
    struct frame frame;
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
    struct payers askers;    /* askers.h */
    struct asker late_asker; /* of the requests for late spans; not in the list */
    json_t *alarms_seen;     /* the read alarms at the last poll: see watcher.h */
    char totals_file[4096], collected_file[4096], changed_file[4096]; /* see collected.h */
    int64_t all_due_ms;      /* when collected_file is written again */
    uint64_t changes_in_all; /* in the text for collected_file that was last given to the saver */
    struct saver_wait all_saved; /* set until that text is written */
    char said[1024];             /* the last state that was logged */
    int64_t said_ms;             /* when it was logged */

    struct wants *wants;
    struct alarms *alarms;
    struct agent_rings *rings;
    struct otlp_in *otlp; /* NULL: no SDK sends spans here */
    struct late_spans *late_spans;
    struct scans *scans;
    struct sampler *sampler; /* NULL: host = no */
    struct send_all *all;    /* NULL: send = slow */

    /* service.c */
    struct timer deadline; /* limits the time of stopping */
    int64_t stepped_ms;    /* the time of the last step */
    int64_t planned_ms;    /* the planned time of the next step; 0: no step was made */
    int64_t saved_ms;      /* when settled spans last caused a save of the totals */
    bool is_stopping, has_failed;
    bool is_last_scan; /* a scan that fails is not retried */
};

/* Reads the files of an earlier run. The caller has set config, loop, host and step. Returns false
 * with error set. */
bool agent_open(struct agent *agent, struct error *error);
void agent_close(struct agent *agent);

/* Sets the path of a file in state-dir. */
void agent_path(const struct agent *agent, const char *name, char path[4096]);

/* Sets the limits of the scan queue from the configuration. */
void agent_limit_requests(struct agent *agent);

/* Returns true if this host sends every trace without a request. */
bool agent_sends_all(const struct agent *agent);

/* Schedules `step` for the next turn of the loop. Each part calls this function after a change. */
void agent_step(struct agent *agent);

/* Forgets the place of send = all. A later send = all begins at the ends of the rings. */
void agent_forget_place(struct agent *agent);

/* Save the totals with the read alarms, or the collected traces. */
void agent_save(struct agent *agent);
void agent_save_collected(struct agent *agent);

/* Logs a state, and reports it to systemd. Repeats the same state only after a minute. */
void agent_say_state(struct agent *agent, enum message_id id, const char *text);

#endif
