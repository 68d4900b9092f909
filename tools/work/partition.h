/*
 * The traces of one partition of the topic: put together, and closed in the order of their first
 * messages, `wait` after these by the log's time.
 *
 * All results are a function of the log, so another worker gets the same ones. It goes on at the
 * watermark: the first message of the oldest trace that was open at the last commit. A trace that
 * begins before the watermark is decided: its spans were counted. To know the decided traces the
 * worker reads back for as long as a closed trace is remembered: until no span of it has come for
 * 2 x wait. What the worker before has read of decided traces it has counted, late spans as late.
 *
 * Knows nothing of Kafka.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_PARTITION_H
#define BLKIN_TOOLS_WORK_PARTITION_H

#include "babeltrace-plugin/base/text.h"
#include "babeltrace-plugin/model/model.h"
#include "babeltrace-plugin/model/names.h"
#include "place.h"
#include "tools/merged/merged.h"
#include "tools/otlp/otlp_decode.h"

#include <stdbool.h>
#include <stdint.h>

/* A trace keeps no more; those beyond are counted as over. */
#define TRACE_SPANS_MAX 20000U

/* Of a name; what is longer is cut. */
#define WORK_NAME_MAX 1024U

/* A message of the topic; the bytes are the caller's. */
struct log_message {
    int64_t offset;
    int64_t time_ms;
    struct text bytes;
};

/* A copy of one, until no trace that is open has begun before it. */
struct held_message {
    struct held_message *next;
    int64_t offset;
    struct otlp_origin *origins; /* of runs of spans: texts in the message */
    uint32_t origins_count, origins_room;
    size_t length;
    char bytes[];
};

/* A span of an open trace. Of a trace_span `of` is this. */
struct held_span {
    struct trace_span span;
    struct held_span *next;
    const struct held_message *message;
    const char *raw; /* message Span */
    uint32_t raw_length;
    uint32_t origin;
};

static inline const struct otlp_origin *held_origin(const struct held_span *span)
{
    return &span->message->origins[span->origin];
}

struct held_trace {
    uint64_t high;
    uint64_t low;
    struct held_trace *next;        /* of those that are open, or decided, or free */
    struct held_span *first, *last; /* as they came; of an open one */
    int64_t first_offset;
    int64_t first_ms;  /* the log's time at its first message */
    int64_t last_ms;   /* and at its last one so far */
    int64_t queued_ms; /* of one that is decided */
    uint32_t spans;
    uint32_t over; /* that it has no room for */
    bool is_decided;
    bool is_forgotten; /* another one has taken its place in the table */
};

/* What all partitions of a worker share. */
struct assembly {
    int64_t wait_ms;
    struct names *names;
    struct work_counts *counts;
    /* Nothing may be kept of its spans afterwards. */
    void (*close)(void *context, const struct held_trace *trace);
    void (*late)(void *context, const struct trace_span *span);
    void *context;
    bool is_starved; /* there was no memory: what was counted is not right any more */
    /* its own */
    uint64_t seed;
    struct held_trace *free_traces;
    struct held_span *free_spans;
    struct slab *slabs;
    uint64_t messages; /* that are held */
};

void assembly_open(struct assembly *assembly);
void assembly_close(struct assembly *assembly);

/* From `from` on, the log's time was at least this one. */
struct log_time {
    int64_t ms;
    int64_t from;
};

#define LOG_TIMES 128U /* a power of two; some 3 x wait, in steps of wait / 32 */

struct held_traces {
    struct held_trace *first, *last;
};

/* What it holds is for partition*.c. */
struct partition {
    struct assembly *assembly;
    struct place start;
    int64_t next;       /* offset */
    int64_t time_ms;    /* the log's: what is due by then is closed */
    int64_t message_ms; /* the log's: of the latest message; 0: not known */
    struct held_traces open_traces;
    struct held_traces decided;
    struct held_message *first_message, *last_message;
    struct table_place *table;
    uint32_t table_mask, table_used;
    struct log_time times[LOG_TIMES];
    uint32_t first_time, next_time; /* modulo LOG_TIMES */
};

/* Begins at start.read_back. Returns false when out of memory. */
bool partition_open(struct partition *partition, struct assembly *assembly, struct place start);

/* Its open traces are somebody else's from now on. */
void partition_close(struct partition *partition);

/* Of an offset from `next` on. */
void partition_read(struct partition *partition, const struct log_message *message);

/* Nothing earlier will come any more: closes what is due by then. */
void partition_pass(struct partition *partition, int64_t time_ms);

/* The oldest open trace, before its time; or forgets the oldest one that is decided. Returns false
 * if there is none. */
bool partition_relieve(struct partition *partition);

struct place partition_place(const struct partition *partition);

/* The offset to read next. */
static inline int64_t partition_next(const struct partition *partition)
{
    return partition->next;
}

/* No trace is open, and none is remembered. */
static inline bool partition_is_empty(const struct partition *partition)
{
    return !partition->open_traces.first && !partition->decided.first;
}

/* When the oldest open trace is due; INT64_MAX: there is none. */
static inline int64_t partition_due_ms(const struct partition *partition)
{
    return partition->open_traces.first
               ? partition->open_traces.first->first_ms + partition->assembly->wait_ms
               : INT64_MAX;
}

#endif
