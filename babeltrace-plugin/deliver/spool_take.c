/*
 * The spool: senders take records, the oldest first, and give them back.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "spool_parts.h"

#include "babeltrace-plugin/base/lock.h"

#include <errno.h>

#define SHORTAGE_MS 1000 /* the wait for memory, or for a descriptor */

/* ---- the next record ------------------------------------------------------------------------- */

/* Moves on to the next segment. */
static void spool_read_on(struct spool *spool)
{
    struct segment *segment = spool->reading;

    if (segment->spans) {
        /* the scan at the start has found more records than there are now */
        spool->counts.corrupt += segment->spans;
        spool_leave(spool, segment, segment->spans, true);
        segment->spans = 0;
    }
    spool->reading = segment->next;
    if (spool_is_used_up(spool, segment))
        spool_remove_segment(spool, segment);
}

/* A sender gets so many spans. */
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

/* Reads the head at the reading position. Returns whether the record has to be sent. */
static bool spool_read_next(struct spool *spool, struct spool_record *record)
{
    struct segment *segment = spool->reading;
    struct record_head *head = &record->head;

    switch (record_next(segment->fd, &segment->read_at, segment->size, head, &record->where)) {
    case RECORD_WHOLE:
        if (head->state == RECORD_DONE)
            return false;
        spool_count_out(spool, segment, head->spans);
        if (!spool_is_too_old(spool, head->written_ms))
            return true;
        spool->counts.expired += head->spans;
        break;
    case RECORD_TORN:
        if (head->state == RECORD_DONE)
            return false;
        spool_count_out(spool, segment, head->spans);
        spool->counts.corrupt += head->spans;
        break;
    case RECORD_UNREADABLE:
        spool->counts.unreadable++;
        return false;
    case RECORD_END:
        return false;
    }
    spool_leave(spool, segment, head->spans, true);
    return false;
}

/* The file is there, but the process, the host or the kernel has no room to open it. */
static bool spool_is_short(void)
{
    return errno == EMFILE || errno == ENFILE || errno == ENOMEM;
}

/* Takes the oldest record that no sender has. */
static bool spool_claim(struct spool *spool, struct spool_record *record)
{
    while (spool->reading) {
        struct segment *segment = spool->reading;

        if (segment->read_at >= segment->size) {
            if (segment == spool->writing)
                return false;
            spool_read_on(spool);
            continue;
        }
        if (!segment_open(&spool->segments, segment)) {
            if (spool_is_short()) {
                spool_set_away(spool, SHORTAGE_MS);
                return false;
            }
            segment->read_at = segment->size; /* spool_read_on() counts them */
            continue;
        }
        if (!spool_read_next(spool, record))
            continue;
        record->segment = segment;
        record->left = record->head.spans;
        segment->in_flight++;
        spool->in_flight++;
        return true;
    }
    return false;
}

/* ---- taking one, and giving it back ---------------------------------------------------------- */

static bool spool_may_claim(const struct spool *spool)
{
    return clock_ms() >= spool->hold_until_ms && (!spool->away_since_ms || !spool->in_flight);
}

static bool spool_wait_for_record(struct spool *spool, struct spool_record *record, bool is_main)
{
    bool has_it = false;

    pthread_mutex_lock(&spool->lock);
    while (!spool->is_stopped && !(has_it = spool_may_claim(spool) && spool_claim(spool, record))) {
        if (is_main && spool->counts.waiting == 0)
            break;
        if (spool_reap(spool))
            continue;
        condition_wait(&spool->changed, &spool->lock,
                       clock_ms() < spool->hold_until_ms ? spool->hold_until_ms : CLOCK_NEVER);
    }
    spool_reap_and_unlock(spool);
    return has_it;
}

static void spool_settle_lost(struct spool *spool, struct spool_record *record)
{
    LOCK_GUARD(&spool->lock);
    spool->counts.corrupt += record->left;
    spool_leave(spool, record->segment, record->left, true);
    record->left = 0;
}

bool spool_take(struct spool *spool, struct spool_record *record, const struct encoder *encoder,
                struct body *body, bool is_main)
{
    while (spool_wait_for_record(spool, record, is_main)) {
        enum record_loaded loaded;

        while ((loaded = record_load(record->segment->fd, record->where, &record->head, encoder,
                                     body)) == RECORD_NO_MEMORY) {
            spool_note_away(spool, 0); /* so that spool_wait() does not wait for ever */
            if (!spool_pause(spool, clock_ms() + SHORTAGE_MS, true))
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
    spool->counts.outcome[outcome] += spans;
    record->left -= spans;
    spool->answers++;
    if (spool->away_since_ms) {
        spool->away_since_ms = 0;
        pthread_cond_broadcast(&spool->changed);
    }
    spool_leave(spool, record->segment, spans, outcome != OUTCOME_ACCEPTED);
}

void spool_finish(struct spool *spool, struct spool_record *record)
{
    if (record->left == 0)
        record_mark_done(record->segment->fd, record->where);
    pthread_mutex_lock(&spool->lock);
    if (record->left && record->segment->is_removed) {
        spool->counts.outcome[OUTCOME_DROPPED] += record->left;
        spool_leave(spool, record->segment, record->left, true);
    } else if (record->left) {
        record->segment->is_left = true;
    }
    spool->in_flight--;
    spool_release_segment(spool, record->segment);
    pthread_cond_broadcast(&spool->changed);
    spool_reap_and_unlock(spool);
}
