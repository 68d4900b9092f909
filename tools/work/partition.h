/*
 * Assembles the traces of one partition of the topic. Closes the traces in the order of their first
 * messages, each `wait` after its first message by the log's time. All results are a function of
 * the log, so another worker gets the same results. A new worker continues at the watermark: the
 * first message of the oldest trace that was open at the last commit. A trace that begins before
 * the watermark is decided: the previous worker has counted its spans, also late ones. To know the
 * decided traces, the new worker begins to read before the watermark: as far back as closed traces
 * are remembered, which is 2 x wait after their last span.
 *
 * These files know nothing of Kafka.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_PARTITION_H
#define BLKIN_TOOLS_WORK_PARTITION_H

#include "babeltrace-plugin/base/table.h"
#include "babeltrace-plugin/base/text.h"
#include "babeltrace-plugin/model/model.h"
#include "tools/merged/merged.h"
#include "tools/otlp/otlp_decode.h"

#include <stdbool.h>
#include <stdint.h>

/* The place that a worker commits in the log of the partition. */
struct place {
    int64_t watermark; /* the first message of the oldest open trace; none open: read_to */
    int64_t read_back; /* <= watermark: the begin of the messages with decided traces */
    int64_t read_to;   /* >= watermark: the next message */
    int64_t time_ms;   /* the log's time before read_to; 0: unknown */
};

#define PLACE_TEXT_MAX 96

/* Convert all members except the watermark to and from a commit's metadata. For a malformed text,
 * or a text that contradicts the watermark, the worker begins to read at the watermark. */
void place_write(const struct place *place, char text[PLACE_TEXT_MAX]);
struct place place_read(int64_t watermark, struct text text);

/* Returns the place for a log that begins at `low` and lost its messages from `cut` on. The worker
 * has read everything before the cut, so no span counts twice. */
struct place place_cut(const struct place *place, int64_t low, int64_t cut);

/* The most spans of a trace. Further ones count as over. */
#define TRACE_SPANS_MAX 20000U

/* A longer name is cut. */
#define WORK_NAME_MAX 1024U

/* A message of the topic. The caller owns the bytes. */
struct log_message {
    int64_t offset;
    int64_t time_ms;
    struct text bytes;
};

/* A copy of a message, held until all open traces have begun after it. */
struct held_message {
    struct held_message *next;
    int64_t offset;
    struct otlp_origin *origins; /* of runs of spans; texts point into the message */
    uint32_t origins_count;
    size_t origins_room;
    size_t length;
    char bytes[];
};

/* A span of an open trace. The member `of` of a trace_span points to it. */
struct held_span {
    struct held_span *next; /* the first member: see struct item_pool */
    struct trace_span span;
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
    struct held_trace *next; /* in the list of open, decided or free traces; the first member */
    uint64_t high;
    uint64_t low;
    struct held_span *first, *last; /* of an open trace, in the order of arrival */
    int64_t first_offset;
    int64_t first_ms;  /* the log's time of the first message */
    int64_t last_ms;   /* the log's time of the last message */
    int64_t queued_ms; /* for a decided trace: the log's time of queueing */
    uint32_t spans;
    uint32_t over; /* spans beyond the limit */
    bool is_decided;
    bool is_forgotten; /* not in the table: another trace has these ids */
    struct table_link in_table;
};

/* Free items of one size. The first member of each points to the next one. */
struct item_pool {
    void *free;
    size_t size;
};

/* Shared by all partitions of a worker. */
struct assembly {
    int64_t wait_ms;
    struct names *names;
    struct work_counts *counts;
    /* The callback may not keep pointers to the spans. */
    void (*close)(void *context, const struct held_trace *trace);
    void (*late)(void *context, const struct trace_span *span);
    void *context;
    bool is_starved; /* memory ran out: the counts are wrong from now on */
    /* private */
    struct item_pool traces, spans;
    struct slab *slabs;
    uint64_t messages; /* copies in memory */
};

void assembly_open(struct assembly *assembly);
void assembly_close(struct assembly *assembly);

/* From offset `from` on, the log's time is at least `ms`. */
struct log_time {
    int64_t ms;
    int64_t from;
};

#define LOG_TIMES 128U /* a power of two; 4 x wait, in steps of wait / 32 */

struct held_traces {
    struct held_trace *first, *last;
};

/* The members are private to partition*.c. */
struct partition {
    struct assembly *assembly;
    struct place start;
    int64_t next;       /* offset */
    int64_t time_ms;    /* the log's time; traces due by then are closed */
    int64_t message_ms; /* the log's time of the latest message; 0: unknown */
    struct held_traces open_traces;
    struct held_traces decided;
    struct held_message *first_message, *last_message;
    struct table table; /* of traces, by ids */
    struct log_time times[LOG_TIMES];
    uint32_t first_time, next_time; /* modulo LOG_TIMES */
};

/* Begins at start.read_back. Returns false when out of memory. */
bool partition_open(struct partition *partition, struct assembly *assembly, struct place start);

/* Drops the open traces, as another worker gets the partition. */
void partition_close(struct partition *partition);

/* Reads a message, whose offset is at least partition_next(). */
void partition_read(struct partition *partition, const struct log_message *message);

/* Closes the traces that are due at time_ms. All further messages have later times. */
void partition_pass(struct partition *partition, int64_t time_ms);

/* Closes the oldest open trace early, or forgets the oldest decided trace. Returns false if the
 * partition has no trace. */
bool partition_relieve(struct partition *partition);

struct place partition_place(const struct partition *partition);

/* Returns the next offset to read. */
static inline int64_t partition_next(const struct partition *partition)
{
    return partition->next;
}

/* Returns whether no trace is open, and no closed trace is remembered. */
static inline bool partition_is_empty(const struct partition *partition)
{
    return !partition->open_traces.first && !partition->decided.first;
}

/* Returns the time when the oldest open trace is due; INT64_MAX: none is open. */
static inline int64_t partition_due_ms(const struct partition *partition)
{
    return partition->open_traces.first
               ? partition->open_traces.first->first_ms + partition->assembly->wait_ms
               : INT64_MAX;
}

#endif
