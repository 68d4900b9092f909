/*
 * What all parts of the agent share: the configuration, what was counted and fetched, the requests
 * that wait, and the files that keep this over a restart. Each part has its own state:
 *
 *     service.c    the service: beginning, reload and end
 *     holding.h    the rings of programs
 *     alarms.h     alarms of this host's programs
 *     asking.h     requests to all hosts and from them, answers and verdicts
 *     scans.h      scans of the rings for wanted traces
 *     feed.h       what a scan found, to the export
 *     export.h     the exporter, which all pipelines share
 *     send_all.h   every span, with send = all
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_AGENT_H
#define BLKIN_TOOLS_AGENT_H

#include "fetched.h"
#include "pending.h"
#include "tools/base/loop.h"
#include "tools/base/say.h"
#include "tools/config/frame.h"
#include "totals.h"

struct agent {
    struct frame *frame;
    const struct config *config; /* a reload replaces it */
    struct loop *loop;
    struct timer step;     /* looks what is next */
    struct export *export; /* NULL: it is closed, and all spans are settled */
    /* send = all: until then slow traces are fetched nevertheless, as some of their spans were
     * written before; 0: send = slow */
    int64_t fetches_until_ms;
    char host[254]; /* the name of this host */
    struct agent_totals totals;
    struct fetched *fetched;
    struct pending pending;
    json_t *heard; /* the alarms that were heard, as of the last poll: see heard.h */
    char totals_file[4096], fetched_file[4096];
    char said[1024]; /* the state that was said last, */
    int64_t said_ms; /* and when */
};

/* When config, loop, host and step are set: reads what an earlier run has left. Returns false with
 * error set. */
bool agent_open(struct agent *agent, struct error *error);
void agent_close(struct agent *agent);

/* A path below the key's folder: state-dir or runtime-dir. */
void agent_path(const struct agent *agent, const char *key, const char *name, char path[4096]);

/* Is all that programs of this host have written of a trace sent without a request? */
bool agent_sends_all(const struct agent *agent);

/* Something has changed: what is next? Not at once. */
void agent_step(struct agent *agent);

/* The totals with the alarms that were heard; the traces that were fetched. */
void agent_save(struct agent *agent);
void agent_save_fetched(struct agent *agent);

/* A state that lasts is not said each time. */
void agent_say_state(struct agent *agent, enum message_id id, const char *text);

#endif
