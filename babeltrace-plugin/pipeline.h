/*
 * The pipeline: events in, spans through the stages to the exporter, and the account of both. It
 * knows no source: the sink gives it babeltrace2's messages, and `blkin live` records of rings.
 *
 * A source counts what it reads in `intake`, and gives events to the assembler. One thread calls
 * all functions.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PIPELINE_H
#define BLKIN_PIPELINE_H

#include "babeltrace-plugin/account/account.h"
#include "babeltrace-plugin/account/live_statistics.h"
#include "babeltrace-plugin/deliver/exporter.h"
#include "babeltrace-plugin/rules/pairing.h"
#include "babeltrace-plugin/stages/chain.h"
#include "babeltrace-plugin/stages/only.h"
#include "params.h"

#include <babeltrace2/babeltrace.h>
#include <pthread.h>
#include <stdatomic.h>

struct pipeline_calls {
    exporter_interrupted_fn *interrupted;
    void (*say)(void *context, bt_logging_level level, const char *message); /* from any thread */
    void (*summary)(void *context, const struct counts *counts);             /* at the end */
    void *context;
};

struct pipeline {
    struct pipeline_calls calls;
    bool shows_progress;
    struct intake intake;
    struct assembler *assembler;
    struct only *only; /* NULL: all traces are wanted */
    struct exporter *exporter;
    struct chain chain;                        /* the stages, from the assembler to the exporter */
    struct stage *rules, *join, *hosts, *tail; /* of the chain; NULL: not wanted */
    FILE *rules_report;                        /* NULL: none is asked for */
    struct account *account;
    bool has_ended;
    struct pipeline_statistics {
        struct live_statistics *live; /* NULL: nobody asks */
        int64_t until_ms;             /* somebody asks until then */
        int64_t next_look_ms, next_write_ms;
        char *file, *asked, *fresh; /* statistics-file, and PATH.asked and PATH.new; or NULL */
    } statistics;
    struct settling {
        bool is_asked_for;
        int fd; /* of sent-file */
        struct marks marks;
        struct mark next;      /* settled, once */
        uint64_t given;        /* so many spans have their outcome */
        _Atomic uint64_t sent; /* as in the file */
        pthread_mutex_t lock;  /* of the file */
    } settling;
};

/*
 * Of one that is all zero but for calls and shows_progress. Returns false with error set: then
 * pipeline_close() is called, too, which loses what was not delivered before pipeline_end().
 */
bool pipeline_open(struct pipeline *pipeline, const struct params *params, struct error *error);
void pipeline_close(struct pipeline *pipeline);

void pipeline_warn(void *pipeline, const char *message);

/* What is read goes on while the collector does not. */
void pipeline_set_live(struct pipeline *pipeline);

/* The same, and a word is said when nothing comes any more: see watch.h. */
void pipeline_watch(struct pipeline *pipeline);

/* After some events. Returns false with error set: to read on would only be to lose on. */
bool pipeline_go_on(struct pipeline *pipeline, struct error *error);

/* Nothing has come. */
void pipeline_rest(struct pipeline *pipeline);

/* All was read: delivers it. Returns false with error set if something was not delivered. */
bool pipeline_finish(struct pipeline *pipeline, struct error *error);

/*
 * Also when the reading was interrupted or has failed: what was read is delivered all the same. The
 * second time it does nothing.
 */
void pipeline_end(struct pipeline *pipeline);

/* Is all that was accepted stored? Returns false with error set. */
bool pipeline_is_stored(struct pipeline *pipeline, struct error *error);

/* Up to now. */
struct counts pipeline_counts(struct pipeline *pipeline);

/*
 * The statistics of spans since somebody began to ask, as the document of live_statistics.h; free()
 * it. From now on they are made for 10 s. Returns NULL when out of memory.
 *
 * With the parameter statistics-file=PATH another process asks: it sets the time of PATH.asked to
 * the present, at least each 10 s. Then the pipeline writes the document to PATH twice a second.
 */
char *pipeline_statistics(struct pipeline *pipeline);

/* ---- for the pipeline's own files */

/* Returns false with error set. */
bool pipeline_open_statistics(struct pipeline *pipeline, const struct params *params,
                              struct error *error);
void pipeline_look_at_statistics(struct pipeline *pipeline);
void pipeline_end_statistics(struct pipeline *pipeline);
void pipeline_close_statistics(struct pipeline *pipeline);

#endif
