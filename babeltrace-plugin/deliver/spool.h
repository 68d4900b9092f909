/*
 * The spool: a folder on disk. The spool takes encoded batches while the collector is away, or
 * takes spans more slowly than they arrive. Senders get the batches later, the oldest first.
 *
 * The folder has numbered files ("segments"). The spool appends batches to the last segment, as
 * records: see spool_log.h. When all spans of a record have an outcome, the spool marks the record
 * as done. The spool removes a segment whose records are all done. So after a kill, only the
 * records that were being sent are sent again. One exporter at a time uses the folder. The folder
 * has no credentials.
 *
 * The spool needs memory for each segment, not for each record. The spool never holds its lock
 * while it writes a batch, reads a whole record, or stores or removes a file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DELIVER_SPOOL_H
#define BLKIN_DELIVER_SPOOL_H

#include "queue.h"
#include "spool_log.h"

/* When the spool calls fdatasync(2). */
enum spool_fsync {
    SPOOL_FSYNC_SECOND, /* about a second after a write */
    SPOOL_FSYNC_BATCH,  /* before a batch counts as spooled */
    SPOOL_FSYNC_NEVER,  /* the kernel decides */
};

struct spool_options {
    enum protocol_format format; /* of the spans; records of another format are an error */
    const char *folder;          /* NULL: no spool. The spool creates the folder */
    int64_t bytes;               /* of all files; spool_put() at this limit: see may_drop */
    int64_t age_ms;              /* older records are not sent: see spool_log.h */
    enum spool_fsync fsync;
    int64_t senders; /* threads that send records at once */
};

struct spool;

/* Returns NULL with error set, also if another exporter uses the folder. */
struct spool *spool_open(const struct spool_options *options, struct span_queue *queue,
                         struct error *error);

/* The files stay. NULL is allowed. */
void spool_free(struct spool *spool);

const char *spool_folder(const struct spool *spool);

/* Returns the counts of queue and spool at one moment: each span that the queue counts as spooled
 * is in the counts of the spool. */
struct exporter_counts spool_counts(struct spool *spool);

/* Returns whether the spool has lost spans; error has their number. Spans that the collector
 * refused are not lost. */
bool spool_has_lost(struct spool *spool, struct error *error);

/* If the spool is not empty, new batches must follow the spans in the spool. */
bool spool_is_empty(struct spool *spool);

/* ---- writing --------------------------------------------------------------------------------- */

/* Appends the spans of `body`, and settles them with the queue. may_drop: a full spool drops its
 * oldest records. Returns false, with error set, if the spool is full or the disk fails. */
bool spool_put(struct spool *spool, const struct record_body *body, struct batch *batch,
               bool may_drop, struct error *error);

/* Notes that the collector does not answer, or has asked for a pause. */
void spool_note_away(struct spool *spool, int64_t retry_after_ms);
bool spool_is_away(struct spool *spool);

/* Returns the time of the next spool_sync(); CLOCK_NEVER: after the next spool_put(). */
int64_t spool_sync_due_ms(struct spool *spool);

/* Stores the written records on disk. Returns false, with error set, if the disk fails. */
bool spool_sync(struct spool *spool, struct error *error);

/* Returns false, with error set, if the spool has records that the disk failed to store. */
bool spool_is_stored(struct spool *spool, struct error *error);

/* ---- reading --------------------------------------------------------------------------------- */

struct segment;

/* A record that a sender has taken. */
struct spool_record {
    struct segment *segment;
    uint64_t where;
    struct record_head head;
    uint32_t left; /* spans without an outcome */
};

/*
 * Waits for the oldest record that no sender has, and loads the record into body. While the
 * collector is away, only one sender at a time gets a record. Returns false at the end; with
 * is_main, also when the spool is empty.
 */
bool spool_take(struct spool *spool, struct spool_record *record, const struct encoder *encoder,
                struct body *body, bool is_main);

void spool_settle(struct spool *spool, struct spool_record *record, enum outcome outcome,
                  uint32_t spans);

/* Gives the record back. Its spans without an outcome stay on disk, unless its file was dropped. */
void spool_finish(struct spool *spool, struct spool_record *record);

/* Sleeps until until_ms. Unless the collector has asked for this pause (is_asked), an answer to
 * another sender ends the pause after 0.1 s. While one sender retries, the others sleep for 5 s.
 * Returns false at the end. */
bool spool_pause(struct spool *spool, const struct spool_record *record, int64_t until_ms,
                 bool is_asked);

/* Ends spool_take(): senders get no further records. */
void spool_stop(struct spool *spool);
bool spool_is_stopped(struct spool *spool);

/* Waits until the spool is empty or stopped, or the collector has been away for a second. Returns
 * false at until_ms. */
bool spool_wait(struct spool *spool, int64_t until_ms);

#endif
