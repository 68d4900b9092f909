/* SPDX-License-Identifier: BSD-2-Clause */
#include "cause.h"

#include "config.h"
#include "key.h"
#include "preload.h"

#include <string.h>

#define PREFIX_MIN    8   /* bytes */
#define ELSEWHERE_MAX 512 /* interactions to compare with; each costs some ns */

static size_t cause_common_length(const struct interaction *interaction, struct bytes head)
{
    const size_t kept = __atomic_load_n(&interaction->head_length, __ATOMIC_ACQUIRE);
    size_t most = kept < PREFIX_MAX ? kept : PREFIX_MAX;
    size_t length = 0;

    if (head.length < most)
        most = head.length;
    while (length < most && interaction->head[length] == head.first[length])
        length++;
    return length;
}

/* A summary of the thread's open requests. */
struct survey {
    unsigned count;    /* requests that may make a call now; the next three members are of them: */
    unsigned in_round; /* those for which the thread has read since it last waited */
    unsigned uncalled; /* those that have made no call so far */
    struct interaction *last;   /* the last one in the list */
    struct interaction *oldest; /* of all open requests */
    struct interaction *alike;  /* the open request with the longest common prefix */
    size_t length;              /* of that prefix */
    bool is_tied;               /* another open request has a common prefix of that length */
    bool has_unseen; /* some requests were read while tracing was off: no cause is certain */
};

static struct survey cause_survey(const struct interaction_worker *worker, struct bytes head)
{
    struct survey survey = {.has_unseen = connection_any_unseen()};
    const uint64_t stale_ns = worker->open_count > 1 ? blkin_now() - PRELOAD_STALE_NS : 0;

    for (unsigned i = 0; i < worker->open_count; i++) {
        struct interaction *interaction = worker->open[i];
        const size_t length = head.first ? cause_common_length(interaction, head) : 0;

        if (interaction->round == interaction_thread.round || interaction->start_ns > stale_ns) {
            survey.in_round += interaction->round == interaction_thread.round;
            survey.uncalled += !interaction->is_past_call;
            survey.count++;
            survey.last = interaction;
        }
        if (!survey.oldest || interaction->start_ns < survey.oldest->start_ns)
            survey.oldest = interaction;
        if (length > survey.length) {
            survey.alike = interaction;
            survey.length = length;
            survey.is_tied = false;
        } else if (length && length == survey.length) {
            survey.is_tied = true;
        }
    }
    return survey;
}

static bool cause_is_waiting_for_answer(const struct interaction *interaction)
{
    return __atomic_load_n(&interaction->calls, __ATOMIC_RELAXED) != 0;
}

/* Returns the request that the thread works for, if it is not answered yet. */
static struct interaction *cause_unanswered_work(void)
{
    struct interaction *work = interaction_thread.work;

    return work && interaction_phase(work) == PHASE_REQUEST ? work : NULL;
}

/* Another thread may have read the answer to the call that the thread's work was waiting for. Then
 * makes the work an open request again. */
static void cause_reopen_work(struct interaction_worker *worker)
{
    struct interaction *work = cause_unanswered_work();

    if (work && !work->open_at && !cause_is_waiting_for_answer(work))
        interaction_add_open(worker, work);
}

/* Returns the request that the thread has just read, or NULL if the thread has called or done other
 * work since. */
static struct interaction *cause_just_read(const struct interaction_worker *worker)
{
    struct interaction *work = cause_unanswered_work();

    return work && work->worker == worker && work->open_at && !work->is_past_call &&
                   pool_name_of(&work->item) == interaction_thread.heard
               ? work
               : NULL;
}

/*
 * Returns the request just read if the thread is an event loop that finishes an event before the
 * next one. The order is certain in a round with one event. The order also counts as certain if the
 * library has seen the thread work in order, and never in another order. Returns NULL if another
 * request has not called yet: that request may have waited for something unseen, such as a timer.
 */
static struct interaction *cause_by_order(const struct interaction_worker *worker,
                                          const struct survey *survey)
{
    struct interaction *heard = cause_just_read(worker);
    const bool is_in_order =
        interaction_thread.is_in_order ||
        (interaction_thread.called && interaction_thread.called != interaction_thread.heard);

    if (!heard || heard->is_ambiguous || survey->uncalled > 1)
        return NULL;
    return interaction_thread.has_one_event || (is_in_order && !interaction_thread.is_out_of_order)
               ? heard
               : NULL;
}

/* Called when a call or a connection begins. Learns the order in which the thread works. */
static void cause_learn_order(const struct interaction_worker *worker,
                              const struct interaction *certain)
{
    struct interaction *heard = cause_just_read(worker);

    if (heard) {
        if (interaction_thread.called && interaction_thread.called != interaction_thread.heard)
            interaction_thread.is_in_order = true;
        interaction_thread.called = interaction_thread.heard;
        heard->is_past_call = true;
    } else if (certain && !certain->is_past_call && certain->round == interaction_thread.round) {
        interaction_thread.is_out_of_order = true;
    }
}

/* Returns the only request that can be the cause, or NULL. is_decided_here: cause_by_order() may be
 * used. */
static struct interaction *cause_only_one(const struct interaction_worker *worker,
                                          const struct survey *survey, bool is_decided_here)
{
    struct interaction *work = cause_unanswered_work();
    struct interaction *one;

    if (worker->has_overflowed || survey->has_unseen)
        return NULL;
    one = is_decided_here ? cause_by_order(worker, survey) : NULL;
    if (one)
        return one;
    if (survey->count == 0) {
        /* a further call of the work, before it is answered */
        return work && !work->is_ambiguous ? work : NULL;
    }
    if (survey->count > 1 || survey->in_round == 0)
        return NULL;
    one = survey->last;
    /* if the work is another request, the call may also be a further call of the work */
    return one->is_ambiguous || (work && work != one) ? NULL : one;
}

static struct interaction *cause_best_guess(const struct interaction_worker *worker,
                                            const struct survey *survey)
{
    struct interaction *work = cause_unanswered_work(), *heard = cause_just_read(worker);

    if (heard && (survey->is_tied || survey->length < PREFIX_MIN))
        return heard;
    if (survey->alike)
        return survey->alike;
    if (work && (work->open_at || !survey->oldest))
        return work;
    return survey->oldest;
}

static struct cause cause_found(enum preload_cause how, struct interaction *interaction)
{
    return (struct cause){interaction ? how : PRELOAD_NO_CAUSE, interaction};
}

static bool cause_is_span_of_program(void)
{
    const struct blkin_span *current = blkin_current();
    const struct interaction *work = interaction_thread.work;
    const struct interaction *shadowed = interaction_thread.shadowed;

    return current && !(work && current == &work->span) &&
           !(shadowed && current == &shadowed->span);
}

struct cause cause_of_call(const struct connection *connection, struct bytes head)
{
    struct interaction_worker *worker = interaction_thread.worker;
    struct interaction *opener = connection->opener, *only, *alike = NULL;
    struct survey survey;
    bool is_decided_here;

    if (cause_is_span_of_program())
        return (struct cause){PRELOAD_BY_PROGRAM, NULL};
    if (opener && interaction_phase(opener) == PHASE_REQUEST)
        return cause_found(PRELOAD_BY_OWNER, opener);
    if (!worker)
        return cause_found(PRELOAD_NO_CAUSE, NULL);
    interaction_prune_open(worker);
    cause_reopen_work(worker);
    survey = cause_survey(worker, head);
    /* if not, called_connect() or called_await_write() has already looked for the cause */
    is_decided_here = !connection->is_fresh && !connection->is_awaited;
    only = cause_only_one(worker, &survey, is_decided_here);
    if (!only && survey.length >= PREFIX_MIN && !survey.is_tied && !survey.has_unseen &&
        !worker->has_overflowed)
        alike = survey.alike;
    if (is_decided_here)
        cause_learn_order(worker, only ? only : alike);
    if (only)
        return cause_found(PRELOAD_BY_BEING_ONLY, only);
    if (alike)
        return cause_found(PRELOAD_BY_PREFIX, alike);
    for (unsigned i = 0; i < worker->open_count; i++)
        worker->open[i]->is_ambiguous = true;
    return cause_found(PRELOAD_BY_GUESS, cause_best_guess(worker, &survey));
}

static bool cause_may_be_handed_over(const struct interaction *interaction)
{
    return interaction->connection->role == ROLE_SERVER &&
           !cause_is_waiting_for_answer(interaction) &&
           interaction->worker != interaction_thread.worker;
}

/* Returns NULL if more than ELSEWHERE_MAX interactions ever existed at once. */
struct interaction *cause_elsewhere(struct bytes head)
{
    struct interaction *alike = NULL;
    size_t longest = PREFIX_MIN - 1;
    bool is_tied = false, has_index = head.first != NULL;

    for (uint32_t i = 0; has_index && i <= ELSEWHERE_MAX; i++) {
        struct interaction *one = interaction_request_at(i, &has_index);
        const size_t length =
            one && cause_may_be_handed_over(one) ? cause_common_length(one, head) : 0;

        is_tied = length > longest ? false : is_tied || (length && length == longest);
        if (length > longest) {
            struct interaction *shorter = alike;

            longest = length;
            alike = one;
            one = shorter;
        }
        if (one)
            interaction_release(one);
    }
    if (alike && (is_tied || has_index)) {
        interaction_release(alike);
        alike = NULL;
    }
    return alike;
}

struct interaction *cause_of_connect(void)
{
    struct interaction_worker *worker = interaction_thread.worker;
    struct interaction *only;
    struct survey survey;

    if (!worker || cause_is_span_of_program())
        return NULL;
    interaction_prune_open(worker);
    cause_reopen_work(worker);
    survey = cause_survey(worker, (struct bytes){NULL, 0});
    only = cause_only_one(worker, &survey, true);
    cause_learn_order(worker, only);
    return only;
}

/* Several requests of one round may share the call, as in a group commit. Then the cause is a
 * guess. */
struct cause cause_of_file_call(void)
{
    if (cause_is_span_of_program())
        return (struct cause){PRELOAD_BY_PROGRAM, NULL};
    return cause_found(cause_sharers() > 1 ? PRELOAD_BY_GUESS : PRELOAD_BY_BEING_ONLY,
                       cause_unanswered_work());
}

unsigned cause_sharers(void)
{
    struct interaction_worker *worker = interaction_thread.worker;
    struct survey survey;

    if (!worker || !interaction_thread.work)
        return 0;
    interaction_prune_open(worker);
    cause_reopen_work(worker);
    survey = cause_survey(worker, (struct bytes){NULL, 0});
    return survey.in_round + survey.has_unseen;
}

/* ---- the span ---- */

static const char *const cause_texts[] = {
    [PRELOAD_BY_PROGRAM] = "program", [PRELOAD_BY_OWNER] = "owner",
    [PRELOAD_BY_BEING_ONLY] = "only", [PRELOAD_BY_PREFIX] = "prefix",
    [PRELOAD_BY_GUESS] = "guess",
};

/* Adds the tag "blkin.guess": the request's trace id and span id in Zipkin's form. */
static void cause_tag_guess(struct blkin_span *span, const struct interaction *guess)
{
    const struct blkin_context *context = blkin_span_context(&guess->span);
    char text[16 + 16 + 1 + 16];

    key_digits(text, context->trace_id_high);
    key_digits(text + 16, context->trace_id);
    text[32] = '/';
    key_digits(text + 33, context->span_id);
    blkin_span_tag_string_n(span, "blkin.guess", text, sizeof(text));
}

static bool cause_is_linked(struct cause cause)
{
    return cause.how != PRELOAD_BY_GUESS || preload_config()->guesses_are_linked;
}

static void cause_begin_span(struct blkin_span *span, const char *name, size_t length,
                             enum blkin_kind kind, struct cause cause)
{
    const struct blkin_span *parent = NULL;

    if (cause.how == PRELOAD_BY_PROGRAM)
        parent = blkin_current();
    else if (cause.interaction && cause_is_linked(cause))
        parent = &cause.interaction->span;
    blkin_begin_(span, sizeof(*span), name, length, kind, parent);
}

static void cause_tag(struct blkin_span *span, struct cause cause)
{
    if (cause.how == PRELOAD_NO_CAUSE || !blkin_span_is_recorded(span))
        return;
    blkin_span_tag_string(span, "blkin.cause", cause_texts[cause.how]);
    if (!cause_is_linked(cause))
        cause_tag_guess(span, cause.interaction);
}

void cause_begin(struct blkin_span *span, const char *name, size_t length, enum blkin_kind kind,
                 struct cause cause)
{
    cause_begin_span(span, name, length, kind, cause);
    cause_tag(span, cause);
}

void cause_begin_at(struct blkin_span *span, const char *name, struct cause cause,
                    uint64_t start_ns)
{
    cause_begin_span(span, name, strlen(name), BLKIN_INTERNAL, cause);
    blkin_span_set_start(span, start_ns);
    cause_tag(span, cause);
}

enum preload_cause cause_begin_child(struct blkin_span *span, const char *name, size_t length,
                                     enum blkin_kind kind)
{
    const struct cause cause = cause_of_file_call();

    if (cause.how != PRELOAD_NO_CAUSE) {
        if (cause.interaction)
            cause.interaction->has_called = true;
        cause_begin(span, name, length, kind, cause);
    }
    return cause.how;
}
