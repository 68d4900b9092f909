/*
 * The spool: makes room, writes batches, and stores them on disk.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "spool_parts.h"

#include "babeltrace-plugin/base/lock.h"
#include "babeltrace-plugin/base/write_all.h"
#include "spool_time.h"

#include <inttypes.h>
#include <unistd.h>

#define SYNC_MS 1000

/* ---- room ------------------------------------------------------------------------------------ */

static void spool_drop_oldest(struct spool *spool)
{
    struct segment *segment = spool->segments.first;

    spool->counts.outcome[OUTCOME_DROPPED] += segment->spans;
    spool_leave(spool, segment, segment->spans, true);
    segment->spans = 0;
    spool_remove_segment(spool, segment);
}

/* While senders get no records, old ones must go, too. A sender keeps the record that it has. */
static void spool_expire_old(struct spool *spool)
{
    struct segment *segment = spool->segments.first;

    while (segment && segment != spool->writing && spool_is_too_old(spool, segment->newest_ms)) {
        struct segment *next = segment->next;

        if (segment->spans) {
            spool->counts.expired += segment->spans;
            spool_leave(spool, segment, segment->spans, true);
            segment->spans = 0;
            spool_remove_segment(spool, segment);
        }
        segment = next;
    }
}

static bool spool_make_room(struct spool *spool, uint64_t size, bool may_drop, struct error *error)
{
    const uint64_t most = (uint64_t)spool->options.bytes;

    spool_expire_old(spool);
    while (may_drop && size <= most && spool->segments.bytes + size > most && spool->segments.first)
        spool_drop_oldest(spool);
    if (spool->segments.bytes + size <= most)
        return true;
    return error_set(error, "the spool \"%s\" is full: spool-bytes allows %lld bytes",
                     spool->options.folder, (long long)most);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void spool_set_write_error(const struct spool *spool, int cause, struct error *error)
{
    error_set(error, "the spool \"%s\" cannot be written: %s", spool->options.folder,
              strerror(cause));
}

/* Returns the file to append to, and marks it as busy. NULL with error set. */
static struct segment *spool_begin_write(struct spool *spool, uint64_t size, bool may_drop,
                                         struct error *error)
{
    struct segment *segment = NULL;

    pthread_mutex_lock(&spool->lock);
    if (spool_make_room(spool, size, may_drop, error)) {
        segment = spool->writing;
        if (!segment)
            segment = spool->writing = segments_add(&spool->segments);
        if (!segment) {
            spool->counts.errors++;
            spool_set_write_error(spool, errno, error);
        }
    }
    if (segment)
        segment->is_busy = true;
    spool_reap_and_unlock(spool);
    return segment;
}

static bool spool_write_record(const struct spool *spool, struct segment *segment,
                               const struct record_bytes *bytes)
{
    return (spool->options.fsync == SPOOL_FSYNC_NEVER || segment_name(&spool->segments, segment)) &&
           write_all_at(segment->fd, bytes->data, bytes->length, segment->size) &&
           (spool->options.fsync != SPOOL_FSYNC_BATCH || fdatasync(segment->fd) == 0);
}

/* From now on senders see the record. */
static void spool_take_in(struct spool *spool, struct segment *segment, uint64_t size,
                          struct batch *batch, uint32_t spans)
{
    LOCK_GUARD(&spool->lock);
    segment->is_busy = false;
    segment->size += size;
    segment->spans += spans;
    segment->newest_ms = boot_time_ms() + spool->time_offset_ms;
    spool->segments.bytes += size;
    spool->counts.spans += spans;
    spool->counts.waiting += spans;
    if (!spool->reading)
        spool->reading = segment;
    segment->is_dirty = spool->options.fsync == SPOOL_FSYNC_SECOND;
    if (spool->sync_due_ms == CLOCK_NEVER && segment->is_dirty)
        spool->sync_due_ms = clock_ms() + SYNC_MS;
    if (segment->size >= spool->segment_bytes) {
        spool->writing = NULL;
        spool_close_idle(spool, segment);
    }
    outbox_settle(spool->outbox, batch, OUTCOME_SPOOLED, spans);
    spool_set_way(spool);
    pthread_cond_broadcast(&spool->changed);
}

/* Cuts off the part of a record that a full disk took. If that fails, the next record begins a new
 * file. */
static void spool_give_up_write(struct spool *spool, struct segment *segment)
{
    const bool is_cut = ftruncate(segment->fd, (off_t)segment->size) == 0;

    pthread_mutex_lock(&spool->lock);
    spool->counts.errors++;
    segment->is_busy = false;
    if (!is_cut)
        spool->writing = NULL;
    if (spool_is_used_up(spool, segment))
        spool_remove_segment(spool, segment);
    spool_reap_and_unlock(spool);
}

bool spool_put(struct spool *spool, const struct record_body *body, struct batch *batch,
               bool may_drop, struct error *error)
{
    const struct record_bytes bytes = record_make(body, boot_time_ms() + spool->time_offset_ms);
    struct segment *segment;
    bool is_written;

    if (!bytes.data)
        return error_set(error, "the spool \"%s\": out of memory", spool->options.folder);
    LOCK_GUARD(&spool->append_lock);
    segment = spool_begin_write(spool, bytes.length, may_drop, error);
    is_written = segment && spool_write_record(spool, segment, &bytes);
    if (is_written) {
        spool_take_in(spool, segment, bytes.length, batch, body->spans);
    } else if (segment) {
        spool_set_write_error(spool, errno, error);
        spool_give_up_write(spool, segment);
    }
    free(bytes.data);
    return is_written;
}

/* ---- storing on disk ------------------------------------------------------------------------- */

int64_t spool_sync_due_ms(struct spool *spool)
{
    LOCK_GUARD(&spool->lock);
    return spool->sync_due_ms;
}

/* Returns a file to store; the spool does not remove it before spool_release_segment(). */
static struct segment *spool_next_dirty(struct spool *spool)
{
    struct segment *segment;

    LOCK_GUARD(&spool->lock);
    segment = spool->segments.first;
    while (segment && !segment->is_dirty)
        segment = segment->next;
    if (segment) {
        segment->is_dirty = false;
        segment->in_flight++;
    } else {
        spool->sync_due_ms = CLOCK_NEVER;
    }
    return segment;
}

bool spool_sync(struct spool *spool, struct error *error)
{
    struct segment *segment;
    bool is_well = true;

    while ((segment = spool_next_dirty(spool))) {
        const bool is_synced = fdatasync(segment->fd) == 0;

        if (!is_synced) {
            is_well = false;
            error_set(error, "the spool \"%s\" cannot be stored: %s", spool->options.folder,
                      strerror(errno));
        }
        pthread_mutex_lock(&spool->lock);
        spool->counts.errors += !is_synced;
        segment->is_unsure |=
            !is_synced; /* the kernel reports a failure once, and drops the data */
        spool_release_segment(spool, segment);
        spool_reap_and_unlock(spool);
    }
    return is_well;
}

bool spool_is_stored(struct spool *spool, struct error *error)
{
    const struct segment *segment;

    LOCK_GUARD(&spool->lock);
    segment = spool->segments.first;
    while (segment && !segment->is_unsure)
        segment = segment->next;
    return !segment || error_set(error,
                                 "some of the %" PRIu64
                                 " spans in the spool \"%s\" may not be on disk: fsync failed",
                                 spool->counts.waiting, spool->options.folder);
}
