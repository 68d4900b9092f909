/*
 * The spool.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "spool.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "retry.h"
#include "spool_segment.h"
#include "spool_time.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Room is given back a file at a time; so the spool holds between 15/16 and all of its bytes. */
#define SEGMENTS      16
#define SEGMENT_MIN   (UINT64_C(64) << 10)
#define SEGMENT_MAX   (UINT64_C(16) << 20)
#define SYNC_MS       1000
#define NO_MEMORY_MS  1000
#define AWAY_FLUSH_MS 1000

struct spool {
    struct spool_options options; /* folder is a copy */
    uint64_t segment_bytes;
    struct outbox *outbox;
    int lock_fd;
    int64_t time_offset_ms;      /* from the time since boot to the spool's: see spool_time.h */
    pthread_mutex_t append_lock; /* before lock */
    pthread_mutex_t lock;        /* of what follows; before the outbox's */
    pthread_cond_t changed;
    struct segments segments;
    struct segment *reading; /* the first of which not all was given out; NULL: none */
    struct segment *writing; /* the last one, if it is appended to */
    struct spool_counts counts;
    unsigned in_flight;    /* records */
    int64_t away_since_ms; /* 0: the collector answers, or was not asked */
    int64_t hold_until_ms; /* it has asked for this pause */
    uint64_t answers;
    int64_t sync_due_ms;
    uint64_t foreign;  /* spans that were found, and are written otherwise */
    int64_t newest_ms; /* of what was found; 0: nothing */
    bool is_stopped;
};

/*
 * Unlinks and closes files that are used up. The lock is held before and after, but not meanwhile:
 * a disk may take its time. Returns whether there were any.
 */
static bool reap(struct spool *spool)
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

static void reap_and_unlock(struct spool *spool)
{
    (void)reap(spool);
    pthread_mutex_unlock(&spool->lock);
}

/* ---- the account ----------------------------------------------------------------------------- */

/* The outbox is told what is to be done with what comes. */
static void set_way(struct spool *spool)
{
    enum outbox_way way = OUTBOX_DIRECT;

    if (spool->counts.waiting)
        way = spool->away_since_ms ? OUTBOX_AWAY : OUTBOX_BEHIND;
    outbox_set_way(spool->outbox, way);
}

static void leave(struct spool *spool, const struct segment *segment, uint64_t spans, bool is_lost)
{
    spool->counts.waiting -= spans;
    if (is_lost && segment->is_own)
        spool->counts.lost_own += spans;
    set_way(spool);
    if (spool->counts.waiting == 0)
        pthread_cond_broadcast(&spool->changed);
}

struct exporter_counts spool_counts(struct spool *spool)
{
    struct exporter_counts counts;

    pthread_mutex_lock(&spool->lock);
    counts = outbox_counts(spool->outbox);
    counts.spool = spool->counts;
    counts.spool.bytes = spool->segments.bytes;
    pthread_mutex_unlock(&spool->lock);
    return counts;
}

bool spool_is_empty(struct spool *spool)
{
    bool is_empty;

    pthread_mutex_lock(&spool->lock);
    is_empty = spool->counts.waiting == 0;
    pthread_mutex_unlock(&spool->lock);
    return is_empty;
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
              "the spool \"%s\" has lost spans: %" PRIu64 " as it was full, %" PRIu64
              " too old, %" PRIu64 " in corrupt records, and %" PRIu64 " pieces are unreadable",
              spool->options.folder, dropped, counts.expired, counts.corrupt, counts.unreadable);
    return dropped + counts.expired + counts.corrupt + counts.unreadable > 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* All of its records were given out and are done. */
static bool is_used_up(const struct spool *spool, const struct segment *segment)
{
    return segment->read_at >= segment->size && segment->in_flight == 0 && !segment->is_left &&
           !segment->is_busy && segment != spool->reading;
}

static void remove_segment(struct spool *spool, struct segment *segment)
{
    if (spool->writing == segment)
        spool->writing = NULL;
    if (spool->reading == segment)
        spool->reading = segment->next;
    segments_remove(&spool->segments, segment);
}

/* To the next one that has something, if there is one. */
static void read_on(struct spool *spool)
{
    struct segment *segment = spool->reading;

    if (segment->spans) {
        /* the scan at the start has found more heads than there are now */
        spool->counts.corrupt += segment->spans;
        leave(spool, segment, segment->spans, true);
        segment->spans = 0;
    }
    spool->reading = segment->next;
    if (is_used_up(spool, segment))
        remove_segment(spool, segment);
}

static void drop_oldest(struct spool *spool)
{
    struct segment *segment = spool->segments.first;

    spool->counts.outcome[OUTCOME_DROPPED] += segment->spans;
    leave(spool, segment, segment->spans, true);
    segment->spans = 0;
    remove_segment(spool, segment);
}

static bool is_too_old(const struct spool *spool, int64_t written_ms)
{
    return boot_time_ms() + spool->time_offset_ms - written_ms > spool->options.age_ms;
}

/* Also while nothing is sent. What somebody has is tried on. */
static void expire_old(struct spool *spool)
{
    struct segment *segment = spool->segments.first;

    while (segment && segment != spool->writing && is_too_old(spool, segment->newest_ms)) {
        struct segment *next = segment->next;

        if (segment->spans) {
            spool->counts.expired += segment->spans;
            leave(spool, segment, segment->spans, true);
            segment->spans = 0;
            remove_segment(spool, segment);
        }
        segment = next;
    }
}

static bool make_room(struct spool *spool, uint64_t size, bool may_drop, struct error *error)
{
    const uint64_t most = (uint64_t)spool->options.bytes;

    expire_old(spool);
    while (may_drop && size <= most && spool->segments.bytes + size > most && spool->segments.first)
        drop_oldest(spool);
    if (spool->segments.bytes + size <= most)
        return true;
    error_set(error, "the spool \"%s\" is full: it has the %lld bytes of spool-bytes",
              spool->options.folder, (long long)most);
    return false;
}

static void set_write_error(const struct spool *spool, int cause, struct error *error)
{
    error_set(error, "the spool \"%s\" cannot be written: %s", spool->options.folder,
              strerror(cause));
}

/* ---- putting in ------------------------------------------------------------------------------ */

/* The file to append to, busy from now on. */
static struct segment *begin_write(struct spool *spool, uint64_t size, bool may_drop,
                                   struct error *error)
{
    struct segment *segment = NULL;

    pthread_mutex_lock(&spool->lock);
    if (make_room(spool, size, may_drop, error)) {
        segment = spool->writing;
        if (!segment)
            segment = spool->writing = segments_add(&spool->segments);
        if (!segment) {
            spool->counts.errors++;
            set_write_error(spool, errno, error);
        }
    }
    if (segment)
        segment->is_busy = true;
    reap_and_unlock(spool);
    return segment;
}

static bool write_all(int fd, struct iovec *pieces, int count, uint64_t at)
{
    while (count) {
        ssize_t written = pwritev(fd, pieces, count, (off_t)at);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            if (written == 0)
                errno = EIO;
            return false;
        }
        at += (uint64_t)written;
        while (count && (size_t)written >= pieces->iov_len) {
            written -= (ssize_t)pieces->iov_len;
            pieces++;
            count--;
        }
        if (count) {
            pieces->iov_base = (char *)pieces->iov_base + written;
            pieces->iov_len -= (size_t)written;
        }
    }
    return true;
}

static bool write_record(const struct spool *spool, struct segment *segment,
                         struct record_writing *writing, uint32_t spans)
{
    struct iovec pieces[] = {
        {&writing->head, sizeof(writing->head)},
        {writing->starts, spans * sizeof(*writing->starts)},
        {(char *)(uintptr_t)writing->text.data, writing->text.length},
    };

    return (spool->options.fsync == SPOOL_FSYNC_NEVER || segment_name(&spool->segments, segment)) &&
           write_all(segment->fd, pieces, 3, segment->size) &&
           (spool->options.fsync != SPOOL_FSYNC_BATCH || fdatasync(segment->fd) == 0);
}

/* Files that nobody reads or writes now are not kept open: there may be many. */
static void close_idle(const struct spool *spool, struct segment *segment)
{
    if (segment == spool->reading || segment == spool->writing || segment->is_busy ||
        segment->in_flight || segment->is_dirty || segment->fd < 0)
        return;
    close(segment->fd);
    segment->fd = -1;
}

static void let_go(struct spool *spool, struct segment *segment)
{
    segment->in_flight--;
    if (segment->is_removed) {
        if (segment->in_flight == 0)
            segments_forget(&spool->segments, segment);
        return;
    }
    if (spool->counts.waiting == 0 && segment == spool->writing && segment == spool->reading &&
        segment->read_at >= segment->size)
        spool->reading = NULL; /* it is empty: no file is to be left */
    if (is_used_up(spool, segment))
        remove_segment(spool, segment);
    else
        close_idle(spool, segment);
}

/* From now on senders see it. */
static void take_in(struct spool *spool, struct segment *segment, uint64_t size,
                    struct batch *batch, uint32_t spans)
{
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
        close_idle(spool, segment);
    }
    outbox_settle(spool->outbox, batch, OUTCOME_SPOOLED, spans);
    set_way(spool);
    pthread_cond_broadcast(&spool->changed);
}

/* What is torn by a full disk is cut off; where that fails too, a next file is begun. */
static void give_up_write(struct spool *spool, struct segment *segment)
{
    const bool is_cut = ftruncate(segment->fd, (off_t)segment->size) == 0;

    pthread_mutex_lock(&spool->lock);
    spool->counts.errors++;
    segment->is_busy = false;
    if (!is_cut)
        spool->writing = NULL;
    if (is_used_up(spool, segment))
        remove_segment(spool, segment);
    reap_and_unlock(spool);
}

static bool append(struct spool *spool, struct record_writing *writing,
                   const struct record_body *body, struct batch *batch, bool may_drop,
                   struct error *error)
{
    const uint64_t size =
        sizeof(writing->head) + body->spans * sizeof(uint32_t) + writing->text.length;
    struct segment *segment = begin_write(spool, size, may_drop, error);

    if (!segment)
        return false;
    if (!write_record(spool, segment, writing, body->spans)) {
        set_write_error(spool, errno, error);
        give_up_write(spool, segment);
        return false;
    }
    pthread_mutex_lock(&spool->lock);
    segment->is_busy = false;
    take_in(spool, segment, size, batch, body->spans);
    pthread_mutex_unlock(&spool->lock);
    return true;
}

bool spool_put(struct spool *spool, const struct record_body *body, struct batch *batch,
               bool may_drop, struct error *error)
{
    struct record_writing writing;
    bool done;

    if (!record_prepare(&writing, body, boot_time_ms() + spool->time_offset_ms)) {
        error_set(error, "the spool \"%s\": out of memory", spool->options.folder);
        return false;
    }
    pthread_mutex_lock(&spool->append_lock);
    done = append(spool, &writing, body, batch, may_drop, error);
    pthread_mutex_unlock(&spool->append_lock);
    record_release(&writing);
    return done;
}

int64_t spool_sync_due_ms(struct spool *spool)
{
    int64_t due_ms;

    pthread_mutex_lock(&spool->lock);
    due_ms = spool->sync_due_ms;
    pthread_mutex_unlock(&spool->lock);
    return due_ms;
}

/* A file that is dirty and not to be removed meanwhile. */
static struct segment *next_dirty(struct spool *spool)
{
    struct segment *segment;

    pthread_mutex_lock(&spool->lock);
    segment = spool->segments.first;
    while (segment && !segment->is_dirty)
        segment = segment->next;
    if (segment) {
        segment->is_dirty = false;
        segment->in_flight++;
    } else {
        spool->sync_due_ms = CLOCK_NEVER;
    }
    pthread_mutex_unlock(&spool->lock);
    return segment;
}

bool spool_sync(struct spool *spool, struct error *error)
{
    struct segment *segment;
    bool is_well = true;

    while ((segment = next_dirty(spool))) {
        const bool is_synced = fdatasync(segment->fd) == 0;

        if (!is_synced) {
            is_well = false;
            error_set(error, "the spool \"%s\" cannot be stored: %s", spool->options.folder,
                      strerror(errno));
        }
        pthread_mutex_lock(&spool->lock);
        spool->counts.errors += !is_synced;
        segment->is_unsure |= !is_synced; /* the kernel tells once, and forgets what it had */
        let_go(spool, segment);
        reap_and_unlock(spool);
    }
    return is_well;
}

bool spool_is_stored(struct spool *spool, struct error *error)
{
    const struct segment *segment;

    pthread_mutex_lock(&spool->lock);
    segment = spool->segments.first;
    while (segment && !segment->is_unsure)
        segment = segment->next;
    if (segment)
        error_set(error,
                  "of the %" PRIu64 " spans in the spool \"%s\" some may not be on disk: it could "
                  "not be stored (fsync)",
                  spool->counts.waiting, spool->options.folder);
    pthread_mutex_unlock(&spool->lock);
    return !segment;
}

void spool_note_away(struct spool *spool, int64_t retry_after_ms)
{
    const int64_t now_ms = clock_ms();

    pthread_mutex_lock(&spool->lock);
    if (!spool->away_since_ms)
        spool->away_since_ms = now_ms;
    if (retry_after_ms && now_ms + retry_after_ms > spool->hold_until_ms)
        spool->hold_until_ms = now_ms + retry_after_ms;
    set_way(spool);
    pthread_mutex_unlock(&spool->lock);
}

bool spool_is_away(struct spool *spool)
{
    bool is_away;

    pthread_mutex_lock(&spool->lock);
    is_away = spool->away_since_ms != 0;
    pthread_mutex_unlock(&spool->lock);
    return is_away;
}

/* ---- taking out ------------------------------------------------------------------------------ */

static void wait_until(struct spool *spool, int64_t until_ms)
{
    const struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};

    if (until_ms == CLOCK_NEVER)
        pthread_cond_wait(&spool->changed, &spool->lock);
    else
        (void)pthread_cond_timedwait(&spool->changed, &spool->lock, &until);
}

/* The spans of this head are given out. */
static void count_out(struct spool *spool, struct segment *segment, uint32_t spans)
{
    if (spans > segment->spans) { /* the scan at the start has not seen it */
        const uint64_t more = spans - segment->spans;

        spool->counts.found += more;
        spool->counts.spans += more;
        spool->counts.waiting += more;
        segment->spans = spans;
    }
    segment->spans -= spans;
}

/* What is at the reading position: returns whether it is to be sent. */
static bool read_next(struct spool *spool, struct spool_record *record)
{
    struct segment *segment = spool->reading;
    struct record_head *head = &record->head;

    switch (record_next(segment->fd, &segment->read_at, segment->size, head, &record->where)) {
    case RECORD_WHOLE:
        if (head->state == RECORD_DONE)
            return false;
        count_out(spool, segment, head->spans);
        if (!is_too_old(spool, head->written_ms))
            return true;
        spool->counts.expired += head->spans;
        break;
    case RECORD_TORN:
        if (head->state == RECORD_DONE)
            return false;
        count_out(spool, segment, head->spans);
        spool->counts.corrupt += head->spans;
        break;
    case RECORD_UNREADABLE:
        spool->counts.unreadable++;
        return false;
    case RECORD_END:
        return false;
    }
    leave(spool, segment, head->spans, true);
    return false;
}

/* The oldest record that nobody has. */
static bool claim(struct spool *spool, struct spool_record *record)
{
    while (spool->reading) {
        struct segment *segment = spool->reading;

        if (segment->read_at >= segment->size) {
            if (segment == spool->writing)
                return false;
            read_on(spool);
            continue;
        }
        if (!segment_open(&spool->segments, segment)) {
            segment->read_at = segment->size; /* read_on() counts them */
            continue;
        }
        if (!read_next(spool, record))
            continue;
        record->segment = segment;
        record->left = record->head.spans;
        segment->in_flight++;
        spool->in_flight++;
        return true;
    }
    return false;
}

static bool may_claim(const struct spool *spool)
{
    return clock_ms() >= spool->hold_until_ms && (!spool->away_since_ms || !spool->in_flight);
}

static bool wait_for_record(struct spool *spool, struct spool_record *record, bool is_main)
{
    bool has_it = false;

    pthread_mutex_lock(&spool->lock);
    while (!spool->is_stopped && !(has_it = may_claim(spool) && claim(spool, record))) {
        if (is_main && spool->counts.waiting == 0)
            break;
        if (reap(spool))
            continue;
        wait_until(spool, clock_ms() < spool->hold_until_ms ? spool->hold_until_ms : CLOCK_NEVER);
    }
    reap_and_unlock(spool);
    return has_it;
}

static void settle_lost(struct spool *spool, struct spool_record *record)
{
    pthread_mutex_lock(&spool->lock);
    spool->counts.corrupt += record->left;
    leave(spool, record->segment, record->left, true);
    record->left = 0;
    pthread_mutex_unlock(&spool->lock);
}

bool spool_take(struct spool *spool, struct spool_record *record, const struct encoder *encoder,
                struct body *body, bool is_main)
{
    while (wait_for_record(spool, record, is_main)) {
        enum record_loaded loaded;

        while ((loaded = record_load(record->segment->fd, record->where, &record->head, encoder,
                                     body)) == RECORD_NO_MEMORY) {
            spool_note_away(spool, 0); /* who waits for progress is not to wait for ever */
            if (!spool_pause(spool, clock_ms() + NO_MEMORY_MS, true))
                break;
        }
        if (loaded == RECORD_LOADED)
            return true;
        if (loaded == RECORD_CORRUPT)
            settle_lost(spool, record);
        spool_finish(spool, record);
    }
    return false;
}

void spool_settle(struct spool *spool, struct spool_record *record, enum outcome outcome,
                  uint32_t spans)
{
    pthread_mutex_lock(&spool->lock);
    spool->counts.outcome[outcome] += spans;
    record->left -= spans;
    spool->answers++;
    if (spool->away_since_ms) {
        spool->away_since_ms = 0;
        pthread_cond_broadcast(&spool->changed);
    }
    leave(spool, record->segment, spans, outcome != OUTCOME_ACCEPTED);
    pthread_mutex_unlock(&spool->lock);
}

void spool_finish(struct spool *spool, struct spool_record *record)
{
    if (record->left == 0)
        record_mark_done(record->segment->fd, record->where);
    pthread_mutex_lock(&spool->lock);
    if (record->left && record->segment->is_removed) {
        spool->counts.outcome[OUTCOME_DROPPED] += record->left;
        leave(spool, record->segment, record->left, true);
    } else if (record->left) {
        record->segment->is_left = true;
    }
    spool->in_flight--;
    let_go(spool, record->segment);
    pthread_cond_broadcast(&spool->changed);
    reap_and_unlock(spool);
}

bool spool_pause(struct spool *spool, int64_t until_ms, bool is_asked)
{
    const int64_t least_ms = clock_ms() + RETRY_FIRST_MS; /* if it answers some, and others not */
    uint64_t answers;
    bool goes_on;

    pthread_mutex_lock(&spool->lock);
    answers = spool->answers;
    while (!spool->is_stopped && clock_ms() < until_ms &&
           (is_asked || spool->answers == answers || clock_ms() < least_ms))
        wait_until(spool, spool->answers == answers || until_ms < least_ms ? until_ms : least_ms);
    goes_on = !spool->is_stopped;
    pthread_mutex_unlock(&spool->lock);
    return goes_on;
}

void spool_stop(struct spool *spool)
{
    pthread_mutex_lock(&spool->lock);
    spool->is_stopped = true;
    pthread_cond_broadcast(&spool->changed);
    pthread_mutex_unlock(&spool->lock);
}

bool spool_is_stopped(struct spool *spool)
{
    bool is_stopped;

    pthread_mutex_lock(&spool->lock);
    is_stopped = spool->is_stopped;
    pthread_mutex_unlock(&spool->lock);
    return is_stopped;
}

static bool is_flushed(const struct spool *spool)
{
    return spool->counts.waiting == 0 || spool->is_stopped ||
           (spool->away_since_ms && clock_ms() >= spool->away_since_ms + AWAY_FLUSH_MS);
}

bool spool_wait(struct spool *spool, int64_t until_ms)
{
    bool done;

    pthread_mutex_lock(&spool->lock);
    while (!(done = is_flushed(spool)) && clock_ms() < until_ms)
        wait_until(spool, until_ms);
    pthread_mutex_unlock(&spool->lock);
    return done;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void scan(struct spool *spool, struct segment *segment)
{
    uint64_t at = 0, where;
    struct record_head head;
    enum record_found found;

    if (!segment_open(&spool->segments, segment))
        return; /* claim() tries again, and then counts what it cannot read */
    while ((found = record_next(segment->fd, &at, segment->size, &head, &where)) != RECORD_END) {
        if (found == RECORD_UNREADABLE || head.state == RECORD_DONE)
            continue;
        if (head.format != record_format(spool->options.format))
            spool->foreign += head.spans;
        segment->spans += head.spans;
        segment->newest_ms = head.written_ms;
        if (head.written_ms > spool->newest_ms)
            spool->newest_ms = head.written_ms;
    }
    spool->counts.found += segment->spans;
    close(segment->fd);
    segment->fd = -1;
}

static void scan_all(struct spool *spool)
{
    for (struct segment *segment = spool->segments.first; segment; segment = segment->next)
        scan(spool, segment);
    spool->reading = spool->segments.first;
    spool->counts.spans = spool->counts.waiting = spool->counts.found;
    set_way(spool);
}

static bool fail_with(const struct spool *spool, struct error *error, const char *what)
{
    error_set(error, "spool \"%s\": %s: %s", spool->options.folder, what, strerror(errno));
    return false;
}

static bool lock_folder(struct spool *spool, struct error *error)
{
    spool->lock_fd =
        openat(spool->segments.folder_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (spool->lock_fd < 0)
        return fail_with(spool, error, "cannot be written");
    if (flock(spool->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    if (errno != EWOULDBLOCK)
        return fail_with(spool, error, "cannot be locked");
    error_set(error, "spool \"%s\": another sink uses it: give each sink a folder of its own",
              spool->options.folder);
    return false;
}

/* Whoever can write there could have other spans sent than ours. */
static bool is_own_folder(struct spool *spool, struct error *error)
{
    struct stat status;

    if (fstat(spool->segments.folder_fd, &status) != 0)
        return fail_with(spool, error, "cannot be read");
    if (status.st_uid == geteuid() && !(status.st_mode & 022))
        return true;
    error_set(error,
              "spool \"%s\": expected a folder of our own that nobody else can write, but it is "
              "of user %u, mode %o",
              spool->options.folder, (unsigned)status.st_uid, (unsigned)status.st_mode & 07777);
    return false;
}

/* That the folder is there. */
static bool sync_parent(const struct spool *spool)
{
    const int fd = openat(spool->segments.folder_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool is_synced = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0)
        close(fd);
    return is_synced;
}

static bool open_folder(struct spool *spool, struct error *error)
{
    const char *folder = spool->options.folder;
    bool is_new;

    if (folder[0] == '\0') {
        error_set(error, "spool: expected the path of a folder, got an empty text");
        return false;
    }
    is_new = mkdir(folder, 0700) == 0;
    if (!is_new && errno != EEXIST)
        return fail_with(spool, error, "cannot be made");
    spool->segments.folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (spool->segments.folder_fd < 0)
        return fail_with(spool, error, "expected a folder");
    if (is_new && spool->options.fsync != SPOOL_FSYNC_NEVER && !sync_parent(spool))
        return fail_with(spool, error, "cannot be stored");
    if (!is_own_folder(spool, error) || !lock_folder(spool, error))
        return false;
    if (!segments_find(&spool->segments))
        return fail_with(spool, error, "cannot be read");
    return true;
}

static uint64_t segment_bytes(int64_t bytes)
{
    const uint64_t part = (uint64_t)bytes / SEGMENTS;

    if (part < SEGMENT_MIN)
        return SEGMENT_MIN;
    return part < SEGMENT_MAX ? part : SEGMENT_MAX;
}

static void init_locks(struct spool *spool)
{
    pthread_condattr_t attributes;

    pthread_mutex_init(&spool->append_lock, NULL);
    pthread_mutex_init(&spool->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&spool->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct spool *spool_open(const struct spool_options *options, struct outbox *outbox,
                         struct error *error)
{
    struct spool *spool = calloc(1, sizeof(*spool));
    char *folder = spool ? strdup(options->folder) : NULL;

    if (!folder) {
        error_set(error, "spool: out of memory");
        free(spool);
        return NULL;
    }
    *spool = (struct spool){
        .options = *options,
        .outbox = outbox,
        .segment_bytes = segment_bytes(options->bytes),
        .lock_fd = -1,
        .segments = {.folder_fd = -1},
        .counts = {.in_use = 1},
        .sync_due_ms = CLOCK_NEVER,
    };
    spool->options.folder = folder;
    init_locks(spool);
    if (!open_folder(spool, error)) {
        spool_free(spool);
        return NULL;
    }
    scan_all(spool);
    spool->time_offset_ms = spool_time_offset_ms(spool->lock_fd, spool->newest_ms);
    if (spool->foreign) {
        error_set(error,
                  "spool \"%s\": it holds %" PRIu64
                  " spans that were written with another format than "
                  "\"%s\": send them with that one first, or use another folder",
                  options->folder, spool->foreign, protocol_of(options->format, NULL)->name);
        spool_free(spool);
        return NULL;
    }
    return spool;
}

void spool_free(struct spool *spool)
{
    if (!spool)
        return;
    pthread_mutex_lock(&spool->lock);
    reap_and_unlock(spool);
    segments_free(&spool->segments);
    if (spool->lock_fd >= 0)
        close(spool->lock_fd); /* which unlocks it */
    if (spool->segments.folder_fd >= 0)
        close(spool->segments.folder_fd);
    pthread_cond_destroy(&spool->changed);
    pthread_mutex_destroy(&spool->lock);
    pthread_mutex_destroy(&spool->append_lock);
    free((char *)(uintptr_t)spool->options.folder);
    free(spool);
}
