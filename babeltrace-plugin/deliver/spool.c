/*
 * The running spool: counts, put, store, take, and wait.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "spool_parts.h"

#include "babeltrace-plugin/base/file.h"
#include "babeltrace-plugin/base/thread.h"

#include <inttypes.h>

#define AWAY_FLUSH_MS 1000 /* spool_wait() waits this long for a collector that is away */
#define ANSWERS_MS    100  /* the least wait of a sender although other senders get answers */
#define OTHERS_MS     5000 /* the pause of a sender while another one retries */
#define SHORTAGE_MS   1000 /* the pause after a lack of memory or descriptors */
#define SYNC_MS       1000 /* from a write to its fdatasync(2) */

/* ---- counts ---------------------------------------------------------------------------------- */

void spool_set_route(struct spool *spool)
{
    enum queue_route route = QUEUE_DIRECT;

    if (spool->counts.waiting)
        route = spool->away_since_ms ? QUEUE_AWAY : QUEUE_BEHIND;
    queue_set_route(spool->queue, route);
}

/* Counts spans of the segment that no longer wait. *counter: the count of the reason. */
static void spool_leave(struct spool *spool, const struct segment *segment, uint64_t *counter,
                        uint64_t spans)
{
    *counter += spans;
    spool->counts.waiting -= spans;
    if (segment->is_own && counter != &spool->counts.outcome[OUTCOME_ACCEPTED])
        spool->counts.lost_own += spans;
    spool_set_route(spool);
    if (spool->counts.waiting == 0)
        pthread_cond_broadcast(&spool->changed);
}

/* Counts all spans that are left in the segment as lost. */
static void spool_leave_rest(struct spool *spool, struct segment *segment, uint64_t *counter)
{
    spool_leave(spool, segment, counter, segment->spans);
    segment->spans = 0;
}

struct exporter_counts spool_counts(struct spool *spool)
{
    struct exporter_counts counts;

    LOCK_GUARD(&spool->lock);
    counts = queue_counts(spool->queue);
    counts.spool = spool->counts;
    counts.spool.bytes = spool->bytes;
    return counts;
}

bool spool_is_empty(struct spool *spool)
{
    LOCK_GUARD(&spool->lock);
    return spool->counts.waiting == 0;
}

const char *spool_folder(const struct spool *spool)
{
    return spool->options.folder;
}

bool spool_has_lost(struct spool *spool, struct error *error)
{
    const struct spool_counts counts = spool_counts(spool).spool;
    const uint64_t dropped = counts.outcome[OUTCOME_DROPPED];

    error_set(error,
              "the spool \"%s\" has lost spans: %" PRIu64 " because it was full, %" PRIu64
              " too old, %" PRIu64 " in damaged records; %" PRIu64 " pieces are unreadable",
              spool->options.folder, dropped, counts.expired, counts.corrupt, counts.unreadable);
    return dropped + counts.expired + counts.corrupt + counts.unreadable > 0;
}

/* ---- age and room ---------------------------------------------------------------------------- */

static int64_t spool_now_ms(const struct spool *spool)
{
    return boot_time_ms() + spool->time_offset_ms;
}

static bool spool_is_too_old(const struct spool *spool, int64_t written_ms)
{
    return spool_now_ms(spool) - written_ms > spool->options.age_ms;
}

/* The collector does not answer, or records cannot be read: no record is sent for pause_ms. Also
 * keeps spool_wait() from an endless wait. The caller holds the lock. */
static void spool_set_away(struct spool *spool, int64_t pause_ms)
{
    const int64_t now_ms = clock_ms();

    if (!spool->away_since_ms)
        spool->away_since_ms = now_ms;
    if (pause_ms && now_ms + pause_ms > spool->pause_until_ms)
        spool->pause_until_ms = now_ms + pause_ms;
    spool_set_route(spool);
}

void spool_note_away(struct spool *spool, int64_t retry_after_ms)
{
    LOCK_GUARD(&spool->lock);
    spool_set_away(spool, retry_after_ms);
}

/* Removes segments whose records are all too old, because senders may read none for a long time. A
 * sender keeps the record that it has. */
static void spool_expire_old(struct spool *spool)
{
    struct segment *segment, *next;

    for (segment = spool_next(spool, NULL);
         segment && segment != spool->writing && spool_is_too_old(spool, segment->newest_ms);
         segment = next) {
        next = spool_next(spool, segment);
        if (segment->spans) {
            spool_leave_rest(spool, segment, &spool->counts.expired);
            spool_remove_segment(spool, segment);
        }
    }
}

static bool spool_make_room(struct spool *spool, uint64_t size, bool may_drop, struct error *error)
{
    const uint64_t most = (uint64_t)spool->options.bytes;
    struct segment *oldest;

    spool_expire_old(spool);
    while (may_drop && size <= most && spool->bytes + size > most &&
           (oldest = spool_next(spool, NULL))) {
        spool_leave_rest(spool, oldest, &spool->counts.outcome[OUTCOME_DROPPED]);
        spool_remove_segment(spool, oldest);
    }
    return spool->bytes + size <= most ||
           error_set(error, "the spool \"%s\" is full: spool-bytes allows %lld bytes",
                     spool->options.folder, (long long)most);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void spool_set_write_error(const struct spool *spool, int cause, struct error *error)
{
    error_set(error, "the spool \"%s\" cannot be written: %s", spool->options.folder,
              strerror(cause));
}

/* Returns the file to append to, for spool_release_segment(). NULL with error set. */
static struct segment *spool_begin_write(struct spool *spool, uint64_t size, bool may_drop,
                                         struct error *error)
{
    struct segment *segment = NULL;
    char name[SEGMENT_NAME_SIZE];

    pthread_mutex_lock(&spool->lock);
    if (spool_make_room(spool, size, may_drop, error)) {
        segment = spool->writing;
        (void)snprintf(name, sizeof(name), "%0*" PRIx64 SEGMENT_SUFFIX, SEGMENT_DIGITS,
                       spool->next_number);
        if (!segment && (segment = spool_add_segment(spool, name)) &&
            !segment_open(spool, segment, O_CREAT | O_EXCL)) {
            cds_list_del(&segment->in_list);
            free(segment);
            segment = NULL;
        }
        if (!segment) {
            spool->counts.errors++;
            spool_set_write_error(spool, errno, error);
        } else if (!spool->writing) {
            spool->writing = segment;
            spool->next_number++;
            segment->is_own = true;
        }
    }
    if (segment)
        segment->users++;
    spool_unlock(spool);
    return segment;
}

static bool spool_write_record(const struct spool *spool, struct segment *segment,
                               const struct record_bytes *bytes)
{
    segment->is_named = segment->is_named || spool->options.fsync == SPOOL_FSYNC_NEVER ||
                        fsync(spool->folder_fd) == 0;
    return segment->is_named &&
           write_all_at(segment->fd, bytes->data, bytes->length, segment->size) &&
           (spool->options.fsync != SPOOL_FSYNC_BATCH || fdatasync(segment->fd) == 0);
}

/* Makes the record visible to senders. */
static void spool_take_in(struct spool *spool, struct segment *segment, uint64_t size,
                          uint32_t spans)
{
    segment->size += size;
    segment->spans += spans;
    segment->newest_ms = spool_now_ms(spool);
    spool->bytes += size;
    spool->counts.spans += spans;
    spool->counts.waiting += spans;
    if (!spool->reading)
        spool->reading = segment;
    segment->is_dirty = spool->options.fsync == SPOOL_FSYNC_SECOND;
    if (spool->sync_due_ms == CLOCK_NEVER && segment->is_dirty) {
        spool->sync_due_ms = clock_ms() + SYNC_MS;
        queue_call_spooler(spool->queue);
    }
    if (segment->size >= spool->segment_bytes)
        spool->writing = NULL;
}

bool spool_put(struct spool *spool, const struct record_body *body, struct batch *batch,
               bool may_drop, struct error *error)
{
    const struct record_bytes bytes = record_make(body, spool_now_ms(spool));
    struct segment *segment;
    bool is_written, can_append = true;

    if (!bytes.data)
        return error_set(error, "the spool \"%s\": out of memory", spool->options.folder);
    LOCK_GUARD(&spool->append_lock);
    segment = spool_begin_write(spool, bytes.length, may_drop, error);
    is_written = segment && spool_write_record(spool, segment, &bytes);
    free(bytes.data);
    if (!segment)
        return false;
    if (!is_written) {
        spool_set_write_error(spool, errno, error);
        /* a full disk may have taken a part of the record */
        can_append = ftruncate(segment->fd, (off_t)segment->size) == 0;
    }
    pthread_mutex_lock(&spool->lock);
    if (is_written) {
        spool_take_in(spool, segment, bytes.length, body->spans);
        queue_settle(spool->queue, batch, OUTCOME_SPOOLED, body->spans);
        spool_set_route(spool);
        pthread_cond_broadcast(&spool->changed);
    } else {
        spool->counts.errors++;
        if (!can_append)
            spool->writing = NULL;
    }
    spool_release_segment(spool, segment);
    spool_unlock(spool);
    return is_written;
}

/* ---- storing on disk ------------------------------------------------------------------------- */

int64_t spool_sync_due_ms(struct spool *spool)
{
    LOCK_GUARD(&spool->lock);
    return spool->sync_due_ms;
}

/* Returns a file to store. The spool does not remove the file before spool_release_segment(). */
static struct segment *spool_next_dirty(struct spool *spool)
{
    struct segment *segment = NULL;

    LOCK_GUARD(&spool->lock);
    while ((segment = spool_next(spool, segment)) && !segment->is_dirty)
        ;
    if (segment) {
        segment->is_dirty = false;
        segment->users++;
    } else {
        spool->sync_due_ms = CLOCK_NEVER;
    }
    return segment;
}

bool spool_sync(struct spool *spool, struct error *error)
{
    struct segment *segment;
    bool has_worked = true;

    while ((segment = spool_next_dirty(spool))) {
        const bool is_synced = fdatasync(segment->fd) == 0;

        if (!is_synced) {
            has_worked = false;
            error_set(error, "the spool \"%s\" cannot be stored: %s", spool->options.folder,
                      strerror(errno));
        }
        pthread_mutex_lock(&spool->lock);
        spool->counts.errors += !is_synced;
        /* the kernel reports a failure once, and drops the data */
        segment->is_unsure |= !is_synced;
        spool_release_segment(spool, segment);
        spool_unlock(spool);
    }
    return has_worked;
}

bool spool_is_stored(struct spool *spool, struct error *error)
{
    const struct segment *segment = NULL;

    LOCK_GUARD(&spool->lock);
    while ((segment = spool_next(spool, segment)) && !segment->is_unsure)
        ;
    return !segment || error_set(error,
                                 "some of the %" PRIu64
                                 " spans in the spool \"%s\" may not be on disk: fsync failed",
                                 spool->counts.waiting, spool->options.folder);
}

/* ---- the next record ------------------------------------------------------------------------- */

/* Moves on to the next segment. */
static void spool_read_on(struct spool *spool)
{
    struct segment *segment = spool->reading;

    if (segment->spans) /* the scan at the start has found more records than there are now */
        spool_leave_rest(spool, segment, &spool->counts.corrupt);
    spool->reading = spool_next(spool, segment);
    if (spool_is_used_up(spool, segment))
        spool_remove_segment(spool, segment);
}

/* A sender gets `spans` spans. */
static void spool_count_out(struct spool *spool, struct segment *segment, uint32_t spans)
{
    if (spans > segment->spans) { /* the scan at the start has not seen this record */
        const uint64_t more = spans - segment->spans;

        spool->counts.found += more;
        spool->counts.spans += more;
        spool->counts.waiting += more;
        segment->spans = spans;
    }
    segment->spans -= spans;
}

/* Reads the head at the reading position. Returns whether the record must be sent. */
static bool spool_read_next(struct spool *spool, struct spool_record *record)
{
    struct segment *segment = spool->reading;
    struct record_head *head = &record->head;
    const enum record_found found =
        record_next(segment->fd, &segment->read_at, segment->size, head, &record->where);

    spool->counts.unreadable += found == RECORD_UNREADABLE;
    if (found == RECORD_UNREADABLE || found == RECORD_END || head->state == RECORD_DONE)
        return false;
    spool_count_out(spool, segment, head->spans);
    if (found == RECORD_COMPLETE && !spool_is_too_old(spool, head->written_ms))
        return true;
    spool_leave(spool, segment,
                found == RECORD_TORN ? &spool->counts.corrupt : &spool->counts.expired,
                head->spans);
    return false;
}

/* Takes the oldest record that no sender has. */
static bool spool_claim(struct spool *spool, struct spool_record *record)
{
    struct segment *segment;

    while ((segment = spool->reading)) {
        if (segment->read_at >= segment->size) {
            if (segment == spool->writing)
                return false;
            spool_read_on(spool);
            continue;
        }
        if (!segment_open(spool, segment, 0)) {
            /* the process, the host or the kernel has no room to open the file */
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
                spool_set_away(spool, SHORTAGE_MS);
                return false;
            }
            segment->read_at = segment->size; /* spool_read_on() counts its spans */
            continue;
        }
        if (!spool_read_next(spool, record))
            continue;
        record->segment = segment;
        record->left = record->head.spans;
        segment->users++;
        spool->in_flight++;
        return true;
    }
    return false;
}

/* ---- taking a record, and giving it back ----------------------------------------------------- */

static bool spool_wait_for_record(struct spool *spool, struct spool_record *record, bool is_main)
{
    bool has_record = false;

    pthread_mutex_lock(&spool->lock);
    while (!spool->is_stopped && !(has_record = clock_ms() >= spool->pause_until_ms &&
                                                (!spool->away_since_ms || !spool->in_flight) &&
                                                spool_claim(spool, record))) {
        if (is_main && spool->counts.waiting == 0)
            break;
        if (spool_reap(spool))
            continue;
        condition_wait(&spool->changed, &spool->lock,
                       clock_ms() < spool->pause_until_ms ? spool->pause_until_ms : CLOCK_NEVER);
    }
    spool_unlock(spool);
    return has_record;
}

static void spool_settle_lost(struct spool *spool, struct spool_record *record)
{
    LOCK_GUARD(&spool->lock);
    spool_leave(spool, record->segment, &spool->counts.corrupt, record->left);
    record->left = 0;
}

bool spool_take(struct spool *spool, struct spool_record *record, const struct encoder *encoder,
                struct body *body, bool is_main)
{
    while (spool_wait_for_record(spool, record, is_main)) {
        enum record_loaded loaded;

        while ((loaded = record_load(record->segment->fd, record->where, &record->head, encoder,
                                     body)) == RECORD_NO_MEMORY) {
            spool_note_away(spool, 0); /* ends a wait in spool_wait() */
            if (!spool_pause(spool, record, clock_ms() + SHORTAGE_MS, true))
                break;
        }
        if (loaded == RECORD_LOADED)
            return true;
        if (loaded == RECORD_CORRUPT)
            spool_settle_lost(spool, record);
        spool_finish(spool, record);
    }
    return false;
}

void spool_settle(struct spool *spool, struct spool_record *record, enum outcome outcome,
                  uint32_t spans)
{
    LOCK_GUARD(&spool->lock);
    record->left -= spans;
    spool->answers++;
    spool->retried = NULL;
    if (spool->away_since_ms) {
        spool->away_since_ms = 0;
        pthread_cond_broadcast(&spool->changed);
    }
    spool_leave(spool, record->segment, &spool->counts.outcome[outcome], spans);
}

void spool_finish(struct spool *spool, struct spool_record *record)
{
    if (record->left == 0)
        record_mark_done(record->segment->fd, record->where);
    pthread_mutex_lock(&spool->lock);
    if (record->left && record->segment->is_removed)
        spool_leave(spool, record->segment, &spool->counts.outcome[OUTCOME_DROPPED], record->left);
    else if (record->left)
        record->segment->is_left = true;
    spool->in_flight--;
    if (spool->retried == record)
        spool->retried = NULL;
    spool_release_segment(spool, record->segment);
    pthread_cond_broadcast(&spool->changed);
    spool_unlock(spool);
}

/* ---- waiting --------------------------------------------------------------------------------- */

bool spool_is_away(struct spool *spool)
{
    LOCK_GUARD(&spool->lock);
    return spool->away_since_ms != 0;
}

bool spool_pause(struct spool *spool, const struct spool_record *record, int64_t until_ms,
                 bool is_asked)
{
    const int64_t now_ms = clock_ms();
    /* the collector may answer other senders only */
    const int64_t least_ms = now_ms + ANSWERS_MS;

    LOCK_GUARD(&spool->lock);
    const uint64_t answers = spool->answers;

    if (!is_asked && !spool->retried)
        spool->retried = record;
    else if (!is_asked && spool->retried != record)
        until_ms = now_ms + OTHERS_MS;
    while (!spool->is_stopped && clock_ms() < until_ms &&
           (is_asked || spool->answers == answers || clock_ms() < least_ms))
        condition_wait(&spool->changed, &spool->lock,
                       is_asked || spool->answers == answers || until_ms < least_ms ? until_ms
                                                                                    : least_ms);
    return !spool->is_stopped;
}

void spool_stop(struct spool *spool)
{
    LOCK_GUARD(&spool->lock);
    spool->is_stopped = true;
    pthread_cond_broadcast(&spool->changed);
}

bool spool_is_stopped(struct spool *spool)
{
    LOCK_GUARD(&spool->lock);
    return spool->is_stopped;
}

static bool spool_is_flushed(const struct spool *spool)
{
    return spool->counts.waiting == 0 || spool->is_stopped ||
           (spool->away_since_ms && clock_ms() >= spool->away_since_ms + AWAY_FLUSH_MS);
}

bool spool_wait(struct spool *spool, int64_t until_ms)
{
    bool done;

    LOCK_GUARD(&spool->lock);
    while (!(done = spool_is_flushed(spool)) && clock_ms() < until_ms)
        condition_wait(&spool->changed, &spool->lock, until_ms);
    return done;
}
