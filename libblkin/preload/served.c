/*
 * Interactions where the connection was accepted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "message.h"
#include "preload.h"
#include "thread.h"
#include "tracepoints/format/join.h"

static bool has_served;

/* An answer that the calling thread sends just now; cancelled in it, the thread never says so. */
static __thread struct {
    pool_name name;
    const void *at; /* the frame of that */
} served_writing __attribute__((tls_model("initial-exec")));

bool served_any(void)
{
    return __atomic_load_n(&has_served, __ATOMIC_RELAXED);
}

/* Who may find its client's half says so by the trace's id: see join.h. */
static void served_begin_trace(struct interaction *interaction, bool has_key)
{
    const struct connection *connection = interaction->connection;
    struct blkin_context root = {.trace_id_high = JOIN_TRACE_HIGH};

    if (has_key)
        root.trace_id = thread_random();
    blkin_begin_remote_(&interaction->span, sizeof(interaction->span), connection->name,
                        connection->name_length, BLKIN_SERVER, has_key ? &root : NULL);
}

static struct interaction *served_begin(struct connection *connection, int fd, uint64_t offset)
{
    const uint64_t now_ns = preload_now_ns();
    struct worker *worker = interaction_worker();
    struct interaction *interaction;

    preload_config_refresh(now_ns);
    if (!connection_is_traced(connection, fd) || connection->role != ROLE_SERVER)
        return NULL;
    interaction = interaction_make(connection, worker, offset, now_ns);
    if (!interaction)
        return NULL;
    served_begin_trace(interaction, connection_key(connection, fd) != 0);
    blkin_span_set_start(&interaction->span, now_ns);
    if (!interaction_is_plain(&interaction->span))
        interaction_set_endpoints(interaction);
    file_sums_begin(&interaction->files);
    if (!served_any())
        __atomic_store_n(&has_served, true, __ATOMIC_RELAXED);
    __atomic_store_n(&interaction->phase, PHASE_REQUEST, __ATOMIC_RELEASE);
    (void)interaction_put_at_hand(interaction);
    return interaction;
}

/* Is a part of the answer still to come? */
static bool served_is_being_sent(const struct connection *connection,
                                 const struct interaction *answered)
{
    if (__atomic_load_n(&answered->writers, __ATOMIC_SEQ_CST))
        return true;
    return (interaction_phase(answered) == PHASE_REQUEST || interaction_is_partial(answered)) &&
           __atomic_load_n(&connection->slots, __ATOMIC_ACQUIRE);
}

/* Records it if its answer was being sent while the next request came, and is. The caller has a
 * reference. */
static void served_passed(struct connection *connection, struct interaction *answered)
{
    if (served_is_being_sent(connection, answered))
        return;
    for (unsigned i = 0; i < PASSING_MAX; i++) {
        if (__atomic_load_n(&connection->passing[i], __ATOMIC_SEQ_CST) != answered)
            continue;
        if (interaction_phase(answered) == PHASE_REQUEST)
            interaction_give_up(answered); /* it could not be sent */
        else
            interaction_finish(answered);
        interaction_clear(&connection->passing[i], answered);
    }
}

/* False: there is no room. */
static bool served_put_passing(struct connection *connection, struct interaction *answered)
{
    interaction_hold(answered);
    for (unsigned i = 0; i < PASSING_MAX; i++) {
        struct interaction *none = NULL;

        if (__atomic_compare_exchange_n(&connection->passing[i], &none, answered, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            return true;
    }
    interaction_let_go(answered);
    return false;
}

void served_pass(struct connection *connection, struct interaction *answered)
{
    (void)served_put_passing(connection, answered);
    served_passed(connection, answered); /* meanwhile */
    interaction_detach(answered);
}

/*
 * The next request is here, so that what another thread has answered is over. To record it takes
 * time, which is the next one's until that is answered: then served_end_passing() does it. (Not the
 * thread that comes to read from the connection: it runs beside the request, on the CPU that the
 * client needs for the answer.)
 */
static void served_is_over(struct connection *connection, struct interaction *answered)
{
    if (!interaction_thread.round && answered->worker != interaction_thread.worker &&
        served_put_passing(connection, answered))
        interaction_detach(answered);
    else
        interaction_finish(answered);
}

void served_end_passing(struct connection *connection)
{
    for (unsigned i = 0; i < PASSING_MAX; i++) {
        struct interaction *answered = interaction_in(&connection->passing[i]);

        if (!answered)
            continue;
        served_passed(connection, answered);
        interaction_let_go(answered);
    }
}

void served_drop_passing(struct connection *connection)
{
    for (unsigned i = 0; i < PASSING_MAX; i++) {
        struct interaction *answered = interaction_in(&connection->passing[i]);

        if (!answered)
            continue;
        if (!served_is_being_sent(connection, answered)) {
            interaction_give_up(answered);
            interaction_clear(&connection->passing[i], answered);
        }
        interaction_let_go(answered);
    }
}

/* Is another thread in the middle of its answer? */
static bool served_is_answered_now(const struct interaction *own)
{
    if (interaction_phase(own) == PHASE_OVER)
        return false;
    if (__atomic_load_n(&own->writers, __ATOMIC_ACQUIRE))
        return true;
    return interaction_phase(own) == PHASE_ANSWERED && interaction_is_partial(own) &&
           own != interaction_thread.work && __atomic_load_n(&own->is_worked_for, __ATOMIC_ACQUIRE);
}

/*
 * What this read goes on with, with a reference, or NULL. A request that another thread has read
 * and works for is not that: this one is read beside it, and certainly a new one, as after an
 * answer.
 */
static struct interaction *served_goes_on_with(struct connection *connection, bool *is_new)
{
    struct interaction *own = interaction_own(connection);

    *is_new = false;
    if (!own)
        return NULL;
    if (served_is_answered_now(own)) {
        served_pass(connection, own);
        *is_new = true;
    } else if (interaction_phase(own) == PHASE_REQUEST) {
        if (own->worker == interaction_thread.worker || own == interaction_thread.work ||
            !__atomic_load_n(&own->is_worked_for, __ATOMIC_ACQUIRE))
            return own;
        *is_new = true;
    } else {
        if (interaction_phase(own) == PHASE_ANSWERED)
            served_is_over(connection, own);
        *is_new = true;
    }
    interaction_let_go(own);
    return NULL;
}

/* The descriptor has turned out to be another connection's, which nobody has told us of. */
static void served_received_by_another(const struct connection *connection, int fd,
                                       struct bytes head, size_t count)
{
    struct connection *another = connection_of(preload_slot(fd), 0);

    if (!another)
        return;
    if (another != connection)
        served_has_read(another, fd, head, count);
    connection_let_go(another);
}

void served_has_read(struct connection *connection, int fd, struct bytes head, size_t count)
{
    const enum direction before = connection_turn(connection, DIRECTION_IN);
    const uint64_t offset = connection_add_bytes(&connection->received, count);
    bool is_new;
    struct interaction *interaction = served_goes_on_with(connection, &is_new);

    if (!interaction && (is_new || before != DIRECTION_UNSEEN)) {
        interaction = served_begin(connection, fd, offset);
        if (!interaction)
            served_received_by_another(connection, fd, head, count);
    }
    if (!interaction) {
        (void)connection_turn(connection, DIRECTION_UNSEEN);
        return;
    }
    interaction_add_head(interaction, head);
    connection_add_bytes(&interaction->requested, count);
    interaction_work_for(interaction);
    if (interaction_thread.worker)
        interaction_opens(interaction_thread.worker, interaction);
    interaction_thread.heard = pool_name_of(&interaction->item);
    interaction_let_go(interaction);
}

/*
 * What this thread has used for it is settled once it has answered: another thread may be who
 * records it, and cannot read this one's meters. What is sent after that counts, too.
 */
static void served_settle_usage(const struct interaction *interaction)
{
    if (blkin_current() == &interaction->span)
        (void)blkin_set_current(NULL);
}

static void served_resume_usage(struct interaction *interaction)
{
    if (interaction_thread.work == interaction && !blkin_current())
        (void)blkin_set_current(&interaction->span);
}

/* What this thread has read was taken for answered, and what it sends now is no answer to what
 * another thread has read since. */
static bool served_is_late(const struct interaction *interaction)
{
    const struct interaction *work = interaction_thread.work;

    return interaction != work && work && work->connection == interaction->connection &&
           work->worker == interaction_thread.worker &&
           interaction->worker != interaction_thread.worker &&
           __atomic_load_n(&interaction->is_worked_for, __ATOMIC_ACQUIRE);
}

pool_name served_before_write(struct interaction *interaction)
{
    pool_name name;

    if (!interaction_worker() || served_is_late(interaction))
        return 0;
    name = pool_name_of(&interaction->item);
    if (served_writing.name && preload_was_left(served_writing.at, __builtin_frame_address(0)))
        served_end_abandoned();
    if (!served_writing.name) { /* else this is a signal handler */
        served_writing.at = __builtin_frame_address(0);
        served_writing.name = name;
    }
    (void)__atomic_add_fetch(&interaction->writers, 1, __ATOMIC_ACQ_REL);
    served_resume_usage(interaction);
    return name;
}

static void served_sends(struct connection *connection, size_t count)
{
    interaction_hears_else();
    (void)connection_turn(connection, DIRECTION_OUT);
    connection_add_bytes(&connection->sent, count);
}

void served_has_written_late(struct connection *connection, size_t count)
{
    if (!count)
        return;
    served_sends(connection, count);
    preload_count(connection->received ? PRELOAD_LATE : PRELOAD_UNASKED);
}

bool served_has_written(struct interaction *interaction, size_t count, size_t wanted)
{
    struct connection *connection = interaction->connection;
    const bool is_all = count && count == wanted;

    if (interaction_phase(interaction) == PHASE_OVER) {
        served_has_written_late(connection, count);
    } else {
        if (count)
            served_sends(connection, count);
        interaction_work_for(interaction);
        __atomic_store_n(&interaction->is_partial, count < wanted, __ATOMIC_RELAXED);
        if (count)
            interaction_add_answer(interaction, count);
        if (is_all)
            served_settle_usage(interaction);
    }
    if (served_writing.name == pool_name_of(&interaction->item))
        served_writing.name = 0;
    /* answered before that, for who reads the next request */
    (void)__atomic_sub_fetch(&interaction->writers, 1, __ATOMIC_SEQ_CST);
    if (is_all)
        served_end_passing(connection);
    else
        served_passed(connection, interaction);
    return is_all;
}

void served_end_abandoned(void)
{
    struct interaction *writing =
        served_writing.name ? interaction_find(served_writing.name) : NULL;

    served_writing.name = 0;
    if (!writing)
        return;
    (void)served_has_written(writing, 0, 1);
    interaction_let_go(writing);
}

void served_forget_all(void)
{
    served_writing.name = 0;
}
