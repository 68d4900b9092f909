/*
 * The rule of four steps.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "cause.h"

#include "key.h"
#include "libblkin/span/span.h"

#include <string.h>

#define PREFIX_LEAST   8
#define ELSEWHERE_MOST 512 /* interactions that are looked at: some ns each */

/* ---- the open requests of the thread ---- */

void cause_closes(struct thread *thread, struct interaction *interaction)
{
    struct interaction *last;
    uint32_t at;

    if (interaction->thread != thread || !(at = interaction->open_at) || at > thread->open_count)
        return;
    last = thread->open[--thread->open_count];
    thread->open[at - 1] = last;
    last->open_at = at;
    interaction->open_at = 0;
    if (!thread->open_count)
        thread->has_overflowed = false;
    interaction_let_go(interaction);
}

/* Those that another thread has answered, or that are over, are not open any more. */
static void tidy(struct thread *thread)
{
    for (unsigned i = thread->open_count; i > 0; i--) {
        if (interaction_phase(thread->open[i - 1]) != PHASE_REQUEST)
            cause_closes(thread, thread->open[i - 1]);
    }
}

void cause_opens(struct thread *thread, struct interaction *interaction)
{
    if (interaction->thread != thread)
        return;
    interaction->round = preload_thread.round;
    if (interaction->open_at || interaction_phase(interaction) != PHASE_REQUEST)
        return;
    if (thread->open_count == OPEN_MAX)
        tidy(thread);
    if (thread->open_count == OPEN_MAX) {
        thread->has_overflowed = true;
        return;
    }
    interaction_hold(interaction);
    thread->open[thread->open_count++] = interaction;
    interaction->open_at = thread->open_count;
}

void cause_after_jump(struct thread *thread)
{
    const unsigned before = thread->open_count;
    unsigned count = 0;

    /* one more: cause_closes() may have been about to move it */
    for (unsigned i = 0; i <= before && i < OPEN_MAX; i++) {
        struct interaction *interaction = thread->open[i];

        if (interaction && interaction->thread == thread && interaction->open_at == i + 1) {
            thread->open[count++] = interaction;
            interaction->open_at = count;
        }
    }
    thread->open_count = count;
    thread->has_overflowed = count > 0;
}

/* ---- looking at them ---- */

static size_t common_length(const struct interaction *interaction, struct bytes head)
{
    const size_t kept = __atomic_load_n(&interaction->head_length, __ATOMIC_ACQUIRE);
    size_t most = kept < PREFIX_KEPT ? kept : PREFIX_KEPT;
    size_t length = 0;

    if (head.length < most)
        most = head.length;
    while (length < most && interaction->head[length] == head.first[length])
        length++;
    return length;
}

struct survey {
    unsigned count;           /* of those that may make a call now */
    unsigned in_round;        /* of these, heard of since the thread last waited */
    struct interaction *last; /* of these */
    struct interaction *eldest;
    struct interaction *alike; /* has the longest prefix; NULL: no other two bytes are the same */
    size_t length;             /* of that */
    bool is_tied;
    bool has_unseen; /* there are others, taken while nobody looked: nothing is certain */
};

static struct survey survey_open(const struct thread *thread, struct bytes head)
{
    struct survey survey = {.has_unseen = connection_any_unseen()};
    const uint64_t stale_ns = thread->open_count > 1 ? preload_now_ns() - PRELOAD_STALE_NS : 0;

    for (unsigned i = 0; i < thread->open_count; i++) {
        struct interaction *interaction = thread->open[i];
        const size_t length = head.first ? common_length(interaction, head) : 0;

        if (interaction->round == preload_thread.round || interaction->start_ns > stale_ns) {
            survey.in_round += interaction->round == preload_thread.round;
            survey.count++;
            survey.last = interaction;
        }
        if (!survey.eldest || interaction->start_ns < survey.eldest->start_ns)
            survey.eldest = interaction;
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

static bool is_waiting_for_answer(const struct interaction *interaction)
{
    return __atomic_load_n(&interaction->calls, __ATOMIC_RELAXED) != 0;
}

/* What the thread works for, if that is not answered yet. */
static struct interaction *unanswered_work(void)
{
    struct interaction *work = preload_thread.work;

    return work && interaction_phase(work) == PHASE_REQUEST ? work : NULL;
}

/* Who works for a request that another thread has heard the answer for. */
static void reopen_work(struct thread *thread)
{
    struct interaction *work = unanswered_work();

    if (work && !work->open_at && !is_waiting_for_answer(work))
        cause_opens(thread, work);
}

/* The one request that it can be, or NULL. */
static struct interaction *only_one(const struct thread *thread, const struct survey *survey)
{
    struct interaction *work = unanswered_work();
    struct interaction *one;

    if (thread->has_overflowed || survey->has_unseen)
        return NULL;
    if (survey->count == 0) {
        /* a second call beside the first one; but what comes after the response may be anything */
        return work && !work->is_ambiguous ? work : NULL;
    }
    if (survey->count > 1 || survey->in_round == 0)
        return NULL;
    one = survey->last;
    /* or is it a second call of another one, heard of just now? */
    return one->is_ambiguous || (work && work != one) ? NULL : one;
}

static struct interaction *best_guess(const struct survey *survey)
{
    struct interaction *work = unanswered_work();

    if (survey->alike)
        return survey->alike;
    if (work && (work->open_at || !survey->eldest))
        return work;
    return survey->eldest;
}

static struct cause found(enum preload_cause how, struct interaction *interaction)
{
    return (struct cause){interaction ? how : PRELOAD_NO_CAUSE, interaction};
}

static bool is_of_program(void)
{
    const struct blkin_span *current = blkin_current();
    const struct interaction *work = preload_thread.work;
    const struct interaction *lent = preload_thread.thread ? preload_thread.thread->lent : NULL;

    return current && !(work && current == &work->span) && !(lent && current == &lent->span);
}

struct cause cause_of_call(const struct connection *connection, struct bytes head)
{
    struct thread *thread = preload_thread.thread;
    struct interaction *opener = connection->opener, *only;
    struct survey survey;

    if (is_of_program())
        return (struct cause){PRELOAD_BY_PROGRAM, NULL};
    if (opener && interaction_phase(opener) == PHASE_REQUEST)
        return found(PRELOAD_BY_OWNER, opener);
    if (!thread)
        return found(PRELOAD_NO_CAUSE, NULL);
    tidy(thread);
    reopen_work(thread);
    survey = survey_open(thread, head);
    only = only_one(thread, &survey);
    if (only)
        return found(PRELOAD_BY_BEING_ONLY, only);
    if (survey.length >= PREFIX_LEAST && !survey.is_tied && !survey.has_unseen &&
        !thread->has_overflowed)
        return found(PRELOAD_BY_PREFIX, survey.alike);
    for (unsigned i = 0; i < thread->open_count; i++)
        thread->open[i]->is_ambiguous = true;
    return found(PRELOAD_BY_GUESS, best_guess(&survey));
}

static bool may_have_handed_on(const struct interaction *interaction)
{
    return interaction->connection->role == ROLE_SERVER && !is_waiting_for_answer(interaction) &&
           interaction->thread != preload_thread.thread;
}

/* Where more than ELSEWHERE_MOST were ever under way at once, there is no guess. */
struct interaction *cause_elsewhere(struct bytes head)
{
    struct interaction *alike = NULL;
    size_t longest = PREFIX_LEAST - 1;
    bool is_tied = false, is_there = head.first != NULL;

    for (uint32_t i = 0; is_there && i <= ELSEWHERE_MOST; i++) {
        struct interaction *one = interaction_requested(i, &is_there);
        const size_t length = one && may_have_handed_on(one) ? common_length(one, head) : 0;

        is_tied = length > longest ? false : is_tied || (length && length == longest);
        if (length > longest) {
            struct interaction *shorter = alike;

            longest = length;
            alike = one;
            one = shorter;
        }
        if (one)
            interaction_let_go(one);
    }
    if (alike && (is_tied || is_there)) {
        interaction_let_go(alike);
        alike = NULL;
    }
    return alike;
}

struct interaction *cause_of_connect(void)
{
    struct thread *thread = preload_thread.thread;
    struct survey survey;

    if (!thread || is_of_program())
        return NULL;
    tidy(thread);
    reopen_work(thread);
    survey = survey_open(thread, (struct bytes){NULL, 0});
    return only_one(thread, &survey);
}

/* Requests that were heard of in this round may share it, as in a group commit. */
struct cause cause_of_file_call(void)
{
    if (is_of_program())
        return (struct cause){PRELOAD_BY_PROGRAM, NULL};
    return found(preload_sharers() > 1 ? PRELOAD_BY_GUESS : PRELOAD_BY_BEING_ONLY,
                 unanswered_work());
}

unsigned preload_sharers(void)
{
    struct thread *thread = preload_thread.thread;
    struct survey survey;

    if (!thread || !preload_thread.work)
        return 0;
    tidy(thread);
    reopen_work(thread);
    survey = survey_open(thread, (struct bytes){NULL, 0});
    return survey.in_round + survey.has_unseen;
}

/* ---- the span ---- */

static const char *cause_text(enum preload_cause how)
{
    switch (how) {
    case PRELOAD_BY_PROGRAM:
        return "program";
    case PRELOAD_BY_OWNER:
        return "owner";
    case PRELOAD_BY_BEING_ONLY:
        return "only";
    case PRELOAD_BY_PREFIX:
        return "prefix";
    case PRELOAD_BY_GUESS:
        return "guess";
    case PRELOAD_NO_CAUSE:
        break;
    }
    return NULL;
}

/* Trace and span of the guess, as Zipkin writes them. */
static void tag_guess(struct blkin_span *span, const struct interaction *guess)
{
    const struct blkin_context *context = blkin_span_context(&guess->span);
    char text[16 + 16 + 1 + 16];

    key_digits(text, context->trace_id_high);
    key_digits(text + 16, context->trace_id);
    text[32] = '/';
    key_digits(text + 33, context->span_id);
    blkin_span_tag_string_n(span, "blkin.guess", text, sizeof(text));
}

bool cause_is_plain(const struct blkin_span *span)
{
    return __atomic_load_n(&span->state_, __ATOMIC_RELAXED) == SPAN_RECORDED;
}

static bool is_linked(struct cause cause)
{
    return cause.how != PRELOAD_BY_GUESS || preload_config()->guesses_are_linked;
}

static void begin(struct blkin_span *span, const char *name, size_t length, enum blkin_kind kind,
                  struct cause cause)
{
    const struct blkin_span *parent = NULL;

    if (cause.how == PRELOAD_BY_PROGRAM)
        parent = blkin_current();
    else if (cause.interaction && is_linked(cause))
        parent = &cause.interaction->span;
    blkin_span_begin_n(span, name, length, kind, parent);
}

static void tag_cause(struct blkin_span *span, struct cause cause)
{
    if (cause.how == PRELOAD_NO_CAUSE || !blkin_span_is_recorded(span))
        return;
    blkin_span_tag_string(span, "blkin.cause", cause_text(cause.how));
    if (!is_linked(cause))
        tag_guess(span, cause.interaction);
}

void cause_begin(struct blkin_span *span, const char *name, size_t length, enum blkin_kind kind,
                 struct cause cause)
{
    begin(span, name, length, kind, cause);
    tag_cause(span, cause);
}

void cause_begin_at(struct blkin_span *span, const char *name, struct cause cause,
                    uint64_t start_ns)
{
    begin(span, name, strlen(name), BLKIN_INTERNAL, cause);
    blkin_span_set_start(span, start_ns);
    tag_cause(span, cause);
}

enum preload_cause preload_begin_child(struct blkin_span *span, const char *name, size_t length,
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
