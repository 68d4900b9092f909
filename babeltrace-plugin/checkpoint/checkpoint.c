/*
 * What is read from the file, and when it is written.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "checkpoint.h"

#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/lock.h"
#include "checkpoint_file.h"

#include <inttypes.h>
#include <stdlib.h>

/*
 * The digests of spans that are on their way. The n-th one's is of the ids of all up to the n-th;
 * only the sender knows which of them will be written.
 */
struct digests {
    uint64_t *ring;
    size_t capacity; /* a power of two, or 0 */
    uint64_t first;  /* number of the span of the oldest one */
    uint64_t end;
};

struct checkpoint {
    struct checkpoint_file file;
    struct checkpoint_callbacks callbacks;
    struct assembler *assembler;
    struct chain *chain;
    struct hold *hold; /* NULL: a live session */
    bool is_done;
    bool is_last;
    uint64_t spans_taken_over;
    int64_t period_ms;
    int64_t next_ms;
    uint64_t spans; /* given out in this run */
    uint64_t digest;
    uint64_t to_skip;        /* so many of them, */
    uint64_t skipped_digest; /* if this is their digest */
    bool is_other;           /* it is not */

    pthread_mutex_t lock; /* of what follows */
    struct progress progress;
    struct digests digests;
    bool is_frozen; /* spans were lost, or are not those of before: nothing more is noted */
    uint64_t errors;
};

/* ---- digests --------------------------------------------------------------------------------- */

static bool digests_grow(struct digests *digests)
{
    const size_t capacity = digests->capacity ? 2 * digests->capacity : 1024;
    uint64_t *ring = malloc(capacity * sizeof(*ring));

    if (!ring)
        return false;
    for (uint64_t i = digests->first; i < digests->end; i++)
        ring[i & (capacity - 1)] = digests->ring[i & (digests->capacity - 1)];
    free(digests->ring);
    digests->ring = ring;
    digests->capacity = capacity;
    return true;
}

static bool digests_push(struct digests *digests, uint64_t digest)
{
    if (digests->end - digests->first == digests->capacity && !digests_grow(digests))
        return false;
    digests->ring[digests->end++ & (digests->capacity - 1)] = digest;
    return true;
}

/* The digest of the first so many spans, one of those that are there. The ones before it go. */
static uint64_t digests_pull(struct digests *digests, uint64_t spans)
{
    digests->first = spans;
    return digests->ring[(spans - 1) & (digests->capacity - 1)];
}

/* ---- writing --------------------------------------------------------------------------------- */

static void checkpoint_save(void *context, struct state *state)
{
    struct checkpoint *checkpoint = context;

    assembler_save(checkpoint->assembler, !checkpoint->hold, state);
    if (checkpoint->hold) {
        hold_save(checkpoint->hold, state);
        chain_save(checkpoint->chain, checkpoint->assembler, state);
    }
}

/* With the lock held. */
static void count_error(struct checkpoint *checkpoint, const char *message)
{
    if (checkpoint->errors++ == 0)
        checkpoint->callbacks.warn(checkpoint->callbacks.context, message);
}

/* With the lock held. */
static void checkpoint_note(struct checkpoint *checkpoint, uint64_t settled)
{
    checkpoint->progress.settled = settled;
    checkpoint->progress.digest = digests_pull(&checkpoint->digests, settled);
    if (!checkpoint_file_note(&checkpoint->file, &checkpoint->progress, false))
        count_error(checkpoint, "the checkpoint's progress cannot be written: if this run is "
                                "killed, more than one batch will be sent twice");
}

void checkpoint_settle(struct checkpoint *checkpoint, const struct exporter_counts *counts,
                       uint64_t settled)
{
    /* what was not delivered is to be sent again, and so is all that came after it */
    const uint64_t lost = counts->outcome[OUTCOME_UNDELIVERED] + counts->outcome[OUTCOME_DROPPED] +
                          counts->outcome[OUTCOME_NO_MEMORY];

    LOCK_GUARD(&checkpoint->lock);
    settled += checkpoint->to_skip; /* all of these come first */
    checkpoint->is_frozen |= lost > 0;
    if (!checkpoint->is_frozen && settled > checkpoint->progress.settled)
        checkpoint_note(checkpoint, settled);
}

/* Twice is better than never. */
void checkpoint_begin_anew(struct checkpoint *checkpoint)
{
    LOCK_GUARD(&checkpoint->lock);
    checkpoint->is_frozen = true;
    checkpoint->progress.settled = checkpoint->progress.digest = 0;
    if (!checkpoint_file_note(&checkpoint->file, &checkpoint->progress, true))
        count_error(checkpoint, "the checkpoint's progress cannot be written");
}

static void find_other(struct checkpoint *checkpoint)
{
    checkpoint->is_other = true;
    checkpoint_begin_anew(checkpoint);
}

/* ---- spans ----------------------------------------------------------------------------------- */

bool checkpoint_skips(void *context, struct span *span)
{
    struct checkpoint *checkpoint = context;

    if (checkpoint->is_other)
        return false;
    checkpoint->digest =
        hash_mix(checkpoint->digest ^ hash_mix(span->trace_id ^ hash_mix(span->id + span->kind)));
    if (++checkpoint->spans <= checkpoint->to_skip) {
        if (checkpoint->spans == checkpoint->to_skip &&
            checkpoint->digest != checkpoint->skipped_digest)
            find_other(checkpoint);
        return true;
    }
    LOCK_GUARD(&checkpoint->lock);
    if (!checkpoint->is_frozen && !digests_push(&checkpoint->digests, checkpoint->digest)) {
        checkpoint->is_frozen = true;
        count_error(checkpoint, "no memory for the checkpoint's progress: if this run is killed, "
                                "more than one batch will be sent twice");
    }
    return false;
}

bool checkpoint_has_failed(const struct checkpoint *checkpoint, struct error *error)
{
    if (checkpoint->is_other)
        error_set(error,
                  "checkpoint \"%s\": the first %" PRIu64
                  " spans of trace \"%s\" are not those that an earlier run sent: run this again, "
                  "and all spans of the trace are sent",
                  checkpoint->file.path, checkpoint->to_skip, checkpoint->progress.trace);
    return checkpoint->is_other;
}

/* What an earlier run has sent is of no use: it has put it together with what is gone. */
static void give_up_trace(struct checkpoint *checkpoint)
{
    LOCK_GUARD(&checkpoint->lock);
    checkpoint->to_skip = 0;
    checkpoint->progress.settled = checkpoint->progress.digest = 0;
    checkpoint->digests.first = checkpoint->digests.end = 0;
}

void checkpoint_end_trace(struct checkpoint *checkpoint, int64_t end_ns, bool is_gone)
{
    if (is_gone)
        give_up_trace(checkpoint);
    if (checkpoint->is_last || is_gone)
        hold_flush(checkpoint->hold);
    hold_end_trace(checkpoint->hold, end_ns);
}

bool checkpoint_finish(struct checkpoint *checkpoint, struct error *error)
{
    struct progress progress = checkpoint->progress;

    if (checkpoint->spans < checkpoint->to_skip)
        find_other(checkpoint);
    if (checkpoint_has_failed(checkpoint, error))
        return false;
    progress.phase = PROGRESS_DONE;
    progress.settled = progress.digest = 0;
    return checkpoint_file_write(&checkpoint->file, &progress, checkpoint_save, checkpoint, error);
}

/* ---- a live session -------------------------------------------------------------------------- */

bool checkpoint_is_due(const struct checkpoint *checkpoint)
{
    return !checkpoint->hold && clock_ms() >= checkpoint->next_ms;
}

void checkpoint_keep(struct checkpoint *checkpoint, bool at_once)
{
    const int64_t now_ms = clock_ms();
    struct error error;

    if (checkpoint->hold || (now_ms < checkpoint->next_ms && !at_once))
        return;
    checkpoint->next_ms = now_ms + checkpoint->period_ms;
    if (!checkpoint_file_write(&checkpoint->file, &checkpoint->progress, checkpoint_save,
                               checkpoint, &error)) {
        LOCK_GUARD(&checkpoint->lock);
        count_error(checkpoint, error.text);
    }
}

static void say_how_long(const struct checkpoint *checkpoint)
{
    const double seconds = ((double)wall_clock_ns() - (double)checkpoint->file.written_ns) / 1e9;
    char message[160];

    (void)snprintf(message, sizeof(message),
                   "nobody has read for %.1f s: the events of that time are lost; they are counted "
                   "as missing once their threads record again",
                   seconds > 0 ? seconds : 0);
    checkpoint->callbacks.warn(checkpoint->callbacks.context, message);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static bool put_aside(struct checkpoint *checkpoint, const struct error *why, struct error *error)
{
    char *aside = checkpoint_file_put_aside(&checkpoint->file, error);
    char message[2048];

    if (!aside)
        return false;
    (void)snprintf(message, sizeof(message),
                   "%s; it is now \"%s\". Open spans of earlier traces are lost, and the delivered "
                   "spans of the last trace are sent again",
                   why->text, aside);
    free(aside);
    checkpoint->errors++;
    checkpoint->callbacks.warn(checkpoint->callbacks.context, message);
    return true;
}

/*
 * What makes no sense though its checksum is right is a fault of ours. It is put aside, so that the
 * next run does not fail, too.
 */
static bool checkpoint_restore(struct checkpoint *checkpoint, struct error *error)
{
    struct checkpoint_file *file = &checkpoint->file;
    struct state state = {.left = {file->state, file->state_length}};
    struct error why = {""};

    assembler_restore(checkpoint->assembler, &state);
    if (checkpoint->hold) {
        hold_restore(checkpoint->hold, &state);
        chain_restore(checkpoint->chain, checkpoint->assembler, &state);
    }
    if (state_is_good(&state) && state.left.length)
        state_set_damaged(&state);
    state_free(&state);
    checkpoint_file_forget(file);
    checkpoint->spans_taken_over = assembler_counts(checkpoint->assembler)->spans_open;
    if (state.has_no_memory) {
        error_set(error, "checkpoint \"%s\": cannot be restored: out of memory", file->path);
    } else if (state.is_damaged) {
        error_set(&why, "checkpoint \"%s\" has impossible contents", file->path);
        *error = why;
        (void)put_aside(checkpoint, &why, error);
    }
    return state_is_good(&state);
}

static bool check_trace(const struct checkpoint *checkpoint, const char *trace, struct error *error)
{
    const struct progress *progress = &checkpoint->file.progress;

    if (progress->phase != PROGRESS_READING || strcmp(progress->trace, trace) == 0)
        return true;
    return error_set(error,
                     "checkpoint \"%s\": trace \"%s\" is not delivered to its end: read that trace "
                     "before \"%s\"",
                     checkpoint->file.path, progress->trace, trace);
}

static bool check_name(const char *trace, struct error *error)
{
    if (trace[0] && strlen(trace) <= CHECKPOINT_NAME_MAX)
        return true;
    return error_set(error, "checkpoint-trace: expected a name of 1 to %d bytes, got one of %zu",
                     CHECKPOINT_NAME_MAX, strlen(trace));
}

/* What was delivered of this trace, and that it is the one that is read. */
static bool begin_trace(struct checkpoint *checkpoint, const char *trace, struct error *error)
{
    const struct progress *before = &checkpoint->file.progress;
    struct progress *progress = &checkpoint->progress;
    const bool is_same = strcmp(before->trace, trace) == 0;

    if (before->phase == PROGRESS_DONE && is_same) {
        checkpoint->is_done = true;
        return true;
    }
    progress->phase = PROGRESS_READING;
    (void)snprintf(progress->trace, sizeof(progress->trace), "%s", trace);
    if (is_same) {
        progress->settled = checkpoint->to_skip = before->settled;
        progress->digest = checkpoint->skipped_digest = before->digest;
    }
    checkpoint->digests.first = checkpoint->digests.end = checkpoint->to_skip;
    if (checkpoint->file.fd < 0)
        return checkpoint_file_write(&checkpoint->file, progress, checkpoint_save, checkpoint,
                                     error);
    if (checkpoint_file_note(&checkpoint->file, progress, true))
        return true;
    return error_set(error, "checkpoint \"%s\": cannot be written", checkpoint->file.path);
}

static bool set_up(struct checkpoint *checkpoint, const struct checkpoint_options *options,
                   struct error *error)
{
    const enum checkpoint_kind kind = options->trace ? CHECKPOINT_TRACES : CHECKPOINT_LIVE;
    struct error why;

    if (options->trace && !check_name(options->trace, error))
        return false;
    if (options->trace)
        checkpoint->hold = hold_new(checkpoint->assembler);
    if (options->trace && !checkpoint->hold)
        return error_set(error, "out of memory");
    switch (checkpoint_file_open(&checkpoint->file, options->path, kind, &why)) {
    case CHECKPOINT_ERROR:
        *error = why;
        return false;
    case CHECKPOINT_DAMAGED:
        if (!put_aside(checkpoint, &why, error))
            return false;
        break;
    case CHECKPOINT_FOUND:
        if (options->trace && !check_trace(checkpoint, options->trace, error))
            return false;
        if (!checkpoint_restore(checkpoint, error))
            return false;
        if (!options->trace && !options->is_again)
            say_how_long(checkpoint);
        break;
    case CHECKPOINT_NONE:
        break;
    }
    return options->trace ? begin_trace(checkpoint, options->trace, error)
                          : checkpoint_file_write(&checkpoint->file, &checkpoint->progress,
                                                  checkpoint_save, checkpoint, error);
}

struct checkpoint *checkpoint_open(const struct checkpoint_options *options,
                                   const struct checkpoint_callbacks *callbacks,
                                   struct assembler *assembler, struct chain *chain,
                                   struct error *error)
{
    struct checkpoint *checkpoint = calloc(1, sizeof(*checkpoint));

    if (!checkpoint)
        return error_null(error, "out of memory");
    pthread_mutex_init(&checkpoint->lock, NULL);
    checkpoint->file.fd = -1;
    checkpoint->callbacks = *callbacks;
    checkpoint->assembler = assembler;
    checkpoint->chain = chain;
    checkpoint->is_last = options->flush;
    checkpoint->period_ms = options->period_ms;
    if (set_up(checkpoint, options, error))
        return checkpoint;
    checkpoint_free(checkpoint);
    return NULL;
}

void checkpoint_free(struct checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    checkpoint_file_close(&checkpoint->file);
    hold_free(checkpoint->hold);
    free(checkpoint->digests.ring);
    pthread_mutex_destroy(&checkpoint->lock);
    free(checkpoint);
}

/* ---- what is told of it ---------------------------------------------------------------------- */

bool checkpoint_is_done(const struct checkpoint *checkpoint)
{
    return checkpoint->is_done;
}

struct hold *checkpoint_hold(struct checkpoint *checkpoint)
{
    return checkpoint->hold;
}

struct checkpoint_counts checkpoint_counts(const struct checkpoint *checkpoint)
{
    return (struct checkpoint_counts){
        .spans_taken_over = checkpoint->spans_taken_over,
        .events_held = checkpoint->hold ? hold_events(checkpoint->hold) : 0,
        .errors = checkpoint->errors,
    };
}
