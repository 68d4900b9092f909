/*
 * The spool: a folder that takes encoded batches while the collector is away, or slower than what
 * comes, and gives them out again, oldest first.
 *
 * Files ("segments") are numbered; batches are appended to the last one as records, see
 * spool_record.h. A record whose spans all have their outcome is marked in its place, and a file
 * without another one is removed: so a sink that is killed sends again what was on its way, and
 * nothing else. One sink at a time has the folder. Nothing of credentials is in it.
 *
 * Memory is needed for each file, not for each record. The lock is held for a read of a record's
 * head at most; batches are written and read, and files stored and removed, without it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_SPOOL_H
#define BLKIN_OUTPUT_SPOOL_H

#include "outbox.h"
#include "spool_record.h"

/* When what was written is on the disk itself, not only with the kernel. */
enum spool_fsync {
    SPOOL_FSYNC_SECOND, /* within a second or so */
    SPOOL_FSYNC_BATCH,  /* before a batch counts as spooled */
    SPOOL_FSYNC_NEVER,  /* when the kernel likes */
};

struct spool_options {
    enum format format; /* how spans are written: of what is found in it, too */
    const char *folder; /* NULL: no spool. Made if it is not there */
    int64_t bytes;      /* of files; then the oldest one goes */
    int64_t age_ms;     /* older records are not sent, see spool_time.h */
    enum spool_fsync fsync;
    bool is_fsync_given; /* by somebody, who is told if it cannot be so */
    int64_t senders;     /* how many requests at once empty it */
};

struct spool;

/* Returns NULL with error set, also if another sink has the folder. */
struct spool *spool_open(const struct spool_options *options, struct outbox *outbox,
                         struct error *error);

/* What is in it stays. NULL is allowed. */
void spool_free(struct spool *spool);

const char *spool_folder(const struct spool *spool);

/* Both at one time: their sums hold, and the one's spooled spans are the other's that were put in.
 */
struct exporter_counts spool_counts(struct spool *spool);

/* What was not refused by the collector and will not arrive; error says how much it is so far. */
bool spool_has_lost(struct spool *spool, struct error *error);

/* Is there nothing to be sent before what comes? */
bool spool_is_empty(struct spool *spool);

/* ---- putting in ------------------------------------------------------------------------------ */

/*
 * Appends these spans of the batch and settles them with the outbox. may_drop: the oldest go when
 * it is full. Returns false, with error set, if it is full or the disk does not take them.
 */
bool spool_put(struct spool *spool, const struct record_body *body, struct batch *batch,
               bool may_drop, struct error *error);

/* The collector does not answer, or has asked for a pause. */
void spool_note_away(struct spool *spool, int64_t retry_after_ms);
bool spool_is_away(struct spool *spool);

/* When spool_sync() is to be called; CLOCK_NEVER: not before something was put in. */
int64_t spool_sync_due_ms(struct spool *spool);

/* Also at the end. Returns false, with error set, if the disk fails. */
bool spool_sync(struct spool *spool, struct error *error);

/* Returns false, with error set, if the disk has failed to store something that is still in it. */
bool spool_is_stored(struct spool *spool, struct error *error);

/* ---- taking out ------------------------------------------------------------------------------ */

struct segment;

/* A record that a sender has. */
struct spool_record {
    struct segment *segment;
    uint64_t where;
    struct record_head head;
    uint32_t left; /* spans without an outcome */
};

/*
 * Waits for the oldest record that nobody has, and loads it. While the collector is away, one is
 * given out at a time. Returns false at the end; is_main: also when the spool is empty.
 */
bool spool_take(struct spool *spool, struct spool_record *record, const struct encoder *encoder,
                struct body *body, bool is_main);

void spool_settle(struct spool *spool, struct spool_record *record, enum outcome outcome,
                  uint32_t spans);

/* Gives it back. If spans of it have no outcome, it stays for the next sink. */
void spool_finish(struct spool *spool, struct spool_record *record);

/* Sleeps until then, or until the collector has answered another one, unless it has asked for this
 * pause. Returns false if it is all over. */
bool spool_pause(struct spool *spool, int64_t until_ms, bool is_asked);

/* Nothing more is given out. */
void spool_stop(struct spool *spool);
bool spool_is_stopped(struct spool *spool);

/* Waits, not past until_ms, until it is empty or the collector has been away for a second. */
bool spool_wait(struct spool *spool, int64_t until_ms);

#endif
