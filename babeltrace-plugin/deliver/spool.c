/*
 * The spool: its account, the removal of files, and waiting.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "spool_parts.h"

#include "babeltrace-plugin/base/lock.h"
#include "retry.h"
#include "spool_time.h"

#include <inttypes.h>
#include <unistd.h>

#define AWAY_FLUSH_MS 1000

bool spool_reap(struct spool *spool)
{
    struct segment *segment;
    bool has_reaped = false;

    while ((segment = segments_begin_reap(&spool->segments))) {
        bool is_free;

        has_reaped = true;
        pthread_mutex_unlock(&spool->lock);
        segment_unlink(&spool->segments, segment);
        pthread_mutex_lock(&spool->lock);
        is_free = segments_end_reap(segment);
        if (!is_free)
            continue;
        pthread_mutex_unlock(&spool->lock);
        segment_free(segment);
        pthread_mutex_lock(&spool->lock);
    }
    return has_reaped;
}

void spool_reap_and_unlock(struct spool *spool)
{
    (void)spool_reap(spool);
    pthread_mutex_unlock(&spool->lock);
}

/* ---- the account ----------------------------------------------------------------------------- */

void spool_set_way(struct spool *spool)
{
    enum outbox_way way = OUTBOX_DIRECT;

    if (spool->counts.waiting)
        way = spool->away_since_ms ? OUTBOX_AWAY : OUTBOX_BEHIND;
    outbox_set_way(spool->outbox, way);
}

void spool_leave(struct spool *spool, const struct segment *segment, uint64_t spans, bool is_lost)
{
    spool->counts.waiting -= spans;
    if (is_lost && segment->is_own)
        spool->counts.lost_own += spans;
    spool_set_way(spool);
    if (spool->counts.waiting == 0)
        pthread_cond_broadcast(&spool->changed);
}

struct exporter_counts spool_counts(struct spool *spool)
{
    struct exporter_counts counts;

    LOCK_GUARD(&spool->lock);
    counts = outbox_counts(spool->outbox);
    counts.spool = spool->counts;
    counts.spool.bytes = spool->segments.bytes;
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

/* ---- files ----------------------------------------------------------------------------------- */

bool spool_is_used_up(const struct spool *spool, const struct segment *segment)
{
    return segment->read_at >= segment->size && segment->in_flight == 0 && !segment->is_left &&
           !segment->is_busy && segment != spool->reading;
}

void spool_remove_segment(struct spool *spool, struct segment *segment)
{
    if (spool->writing == segment)
        spool->writing = NULL;
    if (spool->reading == segment)
        spool->reading = segment->next;
    segments_remove(&spool->segments, segment);
}

void spool_close_idle(const struct spool *spool, struct segment *segment)
{
    if (segment == spool->reading || segment == spool->writing || segment->is_busy ||
        segment->in_flight || segment->is_dirty || segment->fd < 0)
        return;
    close(segment->fd);
    segment->fd = -1;
}

void spool_release_segment(struct spool *spool, struct segment *segment)
{
    segment->in_flight--;
    if (segment->is_removed) {
        if (segment->in_flight == 0)
            segments_forget(&spool->segments, segment);
        return;
    }
    if (spool->counts.waiting == 0 && segment == spool->writing && segment == spool->reading &&
        segment->read_at >= segment->size)
        spool->reading = NULL; /* an empty spool leaves no file */
    if (spool_is_used_up(spool, segment))
        spool_remove_segment(spool, segment);
    else
        spool_close_idle(spool, segment);
}

bool spool_is_too_old(const struct spool *spool, int64_t written_ms)
{
    return boot_time_ms() + spool->time_offset_ms - written_ms > spool->options.age_ms;
}

/* ---- while the collector is away, and until there is something to do ------------------------- */

void spool_set_away(struct spool *spool, int64_t pause_ms)
{
    const int64_t now_ms = clock_ms();

    if (!spool->away_since_ms)
        spool->away_since_ms = now_ms;
    if (pause_ms && now_ms + pause_ms > spool->hold_until_ms)
        spool->hold_until_ms = now_ms + pause_ms;
    spool_set_way(spool);
}

void spool_note_away(struct spool *spool, int64_t retry_after_ms)
{
    LOCK_GUARD(&spool->lock);
    spool_set_away(spool, retry_after_ms);
}

bool spool_is_away(struct spool *spool)
{
    LOCK_GUARD(&spool->lock);
    return spool->away_since_ms != 0;
}

bool spool_pause(struct spool *spool, int64_t until_ms, bool is_asked)
{
    /* for a collector that answers some senders, but not this one */
    const int64_t least_ms = clock_ms() + RETRY_FIRST_MS;

    LOCK_GUARD(&spool->lock);
    const uint64_t answers = spool->answers;

    while (!spool->is_stopped && clock_ms() < until_ms &&
           (is_asked || spool->answers == answers || clock_ms() < least_ms))
        condition_wait(&spool->changed, &spool->lock,
                       spool->answers == answers || until_ms < least_ms ? until_ms : least_ms);
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
