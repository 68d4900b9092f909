/*
 * The pipeline: takes events, passes spans through the stages to the exporter, and counts both. The
 * pipeline knows no source: the sink gives it babeltrace2's messages, and `blkin agent` records of
 * rings.
 *
 * A source counts what it has read in `intake`, and gives events to the assembler. One thread calls
 * all functions; any thread may call pipeline_warn().
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PIPELINE_H
#define BLKIN_PIPELINE_H

#include "babeltrace-plugin/account/account.h"
#include "babeltrace-plugin/account/statistics_document.h"
#include "babeltrace-plugin/deliver/exporter.h"
#include "babeltrace-plugin/rules/pairing.h"
#include "babeltrace-plugin/stages/chain.h"
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

/* Statistics of spans, while a client asks for them. */
struct pipeline_statistics {
    struct live_statistics *live; /* NULL: no client asks */
    int64_t until_ms;             /* a client asks until then */
    int64_t next_look_ms, next_write_ms;
    char *file, *asked, *fresh; /* statistics-file, and PATH.asked and PATH.new; or NULL */
    bool has_warned;            /* that the file cannot be written */
};

/* The parts that several pipelines of one thread share. The owner frees the exporter before the
 * endpoints, and both after the last pipeline. The statistics begin with zeros, and end with
 * pipeline_free_statistics(). */
struct pipeline_shared {
    struct exporter *exporter;
    struct endpoint_table *endpoints;
    struct pipeline_statistics statistics;
};

struct pipeline {
    struct pipeline_calls calls;
    bool shows_progress;
    struct pipeline_shared *shared; /* NULL: the exporter is the pipeline's own */
    /* NULL, or a stage that is first in the chain, and is freed with it: the caller has chosen some
     * traces. Then gaps are no loss, each span gets host tags, and neither rules nor tail sampling
     * are used. */
    struct stage *choice;
    int64_t wall_clock_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC; 0: as blkin:process events say */
    int64_t resumed_ns; /* since 1970: an earlier process has read the events before; 0: none has */
    struct marks *marks; /* of the caller; NULL: none, or those of `settling` */
    struct intake intake;
    struct assembler *assembler;
    struct exporter *exporter;
    struct chain chain;                        /* the stages, from the assembler to the exporter */
    struct stage *rules, *join, *hosts, *tail; /* of the chain; NULL: off */
    FILE *rules_report;                        /* NULL: no report */
    struct account *account;
    bool has_ended;
    struct pipeline_statistics own, *statistics; /* of this pipeline, or of `shared` */
    struct settling {
        bool is_asked_for;
        int fd; /* of sent-file */
        struct marks marks;
        struct mark next;      /* the next mark to settle */
        uint64_t given;        /* spans that the chain had given out when `next` was taken */
        _Atomic uint64_t sent; /* the number in sent-file */
        pthread_mutex_t lock;  /* protects the file */
    } settling;
};

/*
 * Opens a pipeline that is all zero except the members from `calls` to `marks`.
 * Returns false with error set: then the caller calls pipeline_close(), too. pipeline_close() loses
 * the spans that pipeline_end() has not delivered; those of a shared exporter stay with the
 * exporter.
 */
bool pipeline_open(struct pipeline *pipeline, const struct params *params, struct error *error);
void pipeline_close(struct pipeline *pipeline);

void pipeline_warn(void *pipeline, const char *message);

/* Tells the exporter that the source is live: reading continues while the collector is away. */
void pipeline_set_live(struct pipeline *pipeline);

/* Same as pipeline_set_live(), with a warning when the session stops: see struct watch. */
void pipeline_watch(struct pipeline *pipeline);

/* Called after some events. Returns false with error set: further reading would only lose
 * events. */
bool pipeline_advance(struct pipeline *pipeline, struct error *error);

/* Called when no event has arrived. */
void pipeline_idle(struct pipeline *pipeline);

/* Delivers all at the end of the trace. Returns false with error set if a span was not
 * delivered. */
bool pipeline_finish(struct pipeline *pipeline, struct error *error);

/* Delivers the spans of all events that were read, also after an interruption or an error. A second
 * call has no effect. */
void pipeline_end(struct pipeline *pipeline);

/* No event will come: gives about `most` of the spans that are held to the exporter. Returns false
 * if no span is held any more: then pipeline_end() has nothing to flush. */
bool pipeline_flush_some(struct pipeline *pipeline, unsigned most);

/* Returns false, with error set, if the spool has spans that the disk failed to store. */
bool pipeline_is_stored(struct pipeline *pipeline, struct error *error);

/* The current counts. With a shared exporter, output has only the spans that the stages left out or
 * hold: the exporter counts the other spans. */
struct counts pipeline_counts(struct pipeline *pipeline);

/*
 * The statistics of spans since a client began to ask, as live_statistics_text(), for free(). From
 * this call on, the pipeline computes them for 10 s. Returns NULL when out of memory.
 *
 * With the parameter statistics-file=PATH, another process asks: it sets the time of PATH.asked to
 * the present at least every 10 s. Then the pipeline writes the document to PATH twice a second.
 */
char *pipeline_statistics(struct pipeline_statistics *statistics);
void pipeline_free_statistics(struct pipeline_statistics *statistics);

#endif
