/*
 * Messages: the functions that the wrappers call, and interactions on a client's connections.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "message.h"

#include "cause.h"
#include "preload.h"
#include "thread.h"

/* ---- a client's connection ---- */

static void called_count_cause(enum preload_cause how)
{
    static const enum preload_count counts[] = {
        [PRELOAD_NO_CAUSE] = PRELOAD_CAUSELESS,   [PRELOAD_BY_PROGRAM] = PRELOAD_OWNED,
        [PRELOAD_BY_OWNER] = PRELOAD_OWNED,       [PRELOAD_BY_BEING_ONLY] = PRELOAD_ONLY,
        [PRELOAD_BY_PREFIX] = PRELOAD_BY_CONTENT, [PRELOAD_BY_GUESS] = PRELOAD_GUESSED,
    };

    preload_count(counts[how]);
}

/* Stores the cause. If the cause is not a guess, the request that is the cause waits for the answer
 * from now on. */
static void called_set_cause(struct interaction *interaction, struct cause cause)
{
    interaction->cause = (uint8_t)cause.how;
    called_count_cause(cause.how);
    if (!cause.interaction)
        return;
    cause.interaction->has_called = true;
    interaction_ref(cause.interaction);
    if (cause.how == PRELOAD_BY_GUESS) {
        interaction->likely = cause.interaction;
        return;
    }
    cause.interaction->is_past_call = true;
    interaction->owner = cause.interaction;
    (void)__atomic_add_fetch(&cause.interaction->calls, 1, __ATOMIC_ACQ_REL);
    (void)__atomic_add_fetch(&cause.interaction->calls_unended, 1, __ATOMIC_ACQ_REL);
    if (interaction_thread.worker)
        interaction_remove_open(interaction_thread.worker, cause.interaction);
}

void called_forget_opener(struct connection *connection)
{
    struct interaction *opener = __atomic_exchange_n(&connection->opener, NULL, __ATOMIC_ACQ_REL);

    if (!opener)
        return;
    (void)__atomic_sub_fetch(&opener->calls, 1, __ATOMIC_ACQ_REL);
    interaction_release(opener);
}

/* Ends the current interaction if it is answered. Returns true if the current interaction still
 * waits for its answer. If its first write failed, this thread becomes its worker. */
static bool called_end_answered(struct connection *connection)
{
    struct interaction *interaction = interaction_current(connection);
    bool is_unanswered;

    if (!interaction)
        return false;
    if (interaction_phase(interaction) == PHASE_ANSWERED)
        interaction_finish(interaction);
    /* the first write failed, and this thread tries again */
    if (interaction_phase(interaction) == PHASE_NEW)
        interaction->worker = interaction_worker();
    is_unanswered = interaction_phase(interaction) < PHASE_ANSWERED;
    interaction_release(interaction);
    return is_unanswered;
}

static void called_before_write(struct connection *connection, int fd)
{
    struct interaction *interaction;
    uint64_t now_ns;

    if (called_end_answered(connection) ||
        /* the middle of a message that began while tracing was off */
        __atomic_load_n(&connection->direction, __ATOMIC_RELAXED) == DIRECTION_OUT)
        return;
    now_ns = blkin_now();
    preload_config_refresh(now_ns);
    if (!connection_is_traced(connection, fd) || connection->role != ROLE_CLIENT)
        return;
    interaction = interaction_make(connection, interaction_worker(),
                                   __atomic_load_n(&connection->sent, __ATOMIC_RELAXED), now_ns);
    if (!interaction)
        return;
    interaction_set_current(interaction);
    interaction_release(interaction);
}

/* Called when the first bytes were sent. Begins the span and finds its cause. */
static void called_begin(struct interaction *interaction, struct bytes head)
{
    struct connection *connection = interaction->connection;
    struct cause cause = cause_of_call(connection, head);
    struct interaction *elsewhere = NULL;
    uint8_t new = PHASE_NEW;

    if (cause.how == PRELOAD_NO_CAUSE && served_any() && (elsewhere = cause_elsewhere(head)))
        cause = (struct cause){PRELOAD_BY_GUESS, elsewhere};

    cause_begin(&interaction->span, connection->name, connection->name_length, BLKIN_CLIENT, cause);
    blkin_span_set_start(&interaction->span, interaction->start_ns);
    interaction_set_endpoints(interaction);
    called_set_cause(interaction, cause);
    if (elsewhere)
        interaction_release(elsewhere);
    called_forget_opener(connection);
    connection->is_fresh = connection->is_awaited = false;
    if (__atomic_compare_exchange_n(&interaction->phase, &new, PHASE_REQUEST, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        /* another thread may have read the answer meanwhile */
        if (__atomic_load_n(&interaction->answered, __ATOMIC_RELAXED))
            interaction_add_answer(interaction, 0);
    } else { /* another thread has closed the connection meanwhile */
        interaction_tell_owner_answered(interaction);
        interaction_tell_owner_ended(interaction);
        blkin_span_drop(&interaction->span);
    }
}

static void called_after_write(struct connection *connection, struct bytes head, size_t count)
{
    struct interaction *interaction;

    if (!count)
        return;
    (void)connection_set_direction(connection, DIRECTION_OUT);
    connection_add_bytes(&connection->sent, count);
    interaction = interaction_current(connection);
    if (!interaction)
        return;
    if (interaction_phase(interaction) == PHASE_NEW &&
        interaction->worker == interaction_thread.worker)
        called_begin(interaction, head);
    interaction_clear_heard();
    interaction_add_head(interaction, head);
    connection_add_bytes(&interaction->requested, count);
    interaction_release(interaction);
}

/*
 * Called when the thread has read an answer. Returns true if the thread continues with the request
 * that caused the call. Returns false if the thread has its own request to answer: if threads share
 * a connection to the next server, one thread reads for all.
 */
static bool called_has_read_for(const struct interaction *owner)
{
    const struct interaction *work = interaction_thread.work;

    return !work || interaction_phase(work) != PHASE_REQUEST ||
           work->worker != interaction_thread.worker || owner->worker == interaction_thread.worker;
}

static void called_after_read(struct connection *connection, int fd, size_t count)
{
    struct interaction *interaction = interaction_current(connection);

    interaction_clear_heard();
    (void)connection_set_direction(connection, DIRECTION_IN);
    connection_add_bytes(&connection->received, count);
    if (!interaction) {
        preload_count(connection->sent ? PRELOAD_LATE : PRELOAD_UNASKED);
        return;
    }
    interaction_add_answer(interaction, count);
    (void)connection_key(connection, fd);
    if (interaction->owner && called_has_read_for(interaction->owner)) {
        interaction_work_for(interaction->owner);
        if (interaction_thread.worker &&
            !__atomic_load_n(&interaction->owner->calls, __ATOMIC_RELAXED))
            interaction_add_open(interaction_thread.worker, interaction->owner);
    }
    interaction_release(interaction);
}

static void called_set_opener(struct connection *connection)
{
    struct interaction *cause = cause_of_connect();

    if (!cause)
        return;
    cause->has_called = cause->is_past_call = true;
    interaction_ref(cause);
    (void)__atomic_add_fetch(&cause->calls, 1, __ATOMIC_ACQ_REL);
    interaction_remove_open(interaction_thread.worker, cause);
    connection->opener = cause;
}

void called_await_write(struct connection *connection)
{
    struct interaction *before = interaction_current(connection);
    const bool is_busy = before && interaction_phase(before) < PHASE_ANSWERED;

    if (before)
        interaction_release(before);
    if (is_busy || connection->is_fresh || connection->is_awaited)
        return;
    connection->is_awaited = true;
    called_set_opener(connection);
}

void called_connect(int fd, const struct sockaddr *address, socklen_t length, bool is_on)
{
    struct connection *connection;

    if (!connection_connecting(fd, address, length) || !is_on ||
        !(connection = connection_of(preload_slot(fd), 0)))
        return;
    called_set_opener(connection);
    connection_release(connection);
}

/* ---- the functions that the wrappers call ---- */

void message_after_read_end(struct connection *connection)
{
    struct interaction *interaction = interaction_own_or_current(connection);

    if (!interaction)
        return;
    if (interaction_is_complete(interaction))
        interaction_finish(interaction);
    interaction_release(interaction);
}

void message_before_read(struct connection *connection)
{
    struct interaction_worker *worker = interaction_thread.worker;

    if (!worker || connection->role != ROLE_SERVER)
        return;
    if (interaction_thread.round == 0)
        interaction_finish_held(worker, UINT64_MAX);
    message_after_read_end(connection);
}

void message_after_read(struct connection *connection, int fd, struct bytes head, size_t count)
{
    if (connection->role == ROLE_CLIENT)
        called_after_read(connection, fd, count);
    else
        served_after_read(connection, fd, head, count);
}

void message_end_sending(struct connection *connection)
{
    struct interaction *interaction = interaction_own_or_current(connection);

    if (!interaction)
        return;
    if (connection->role == ROLE_SERVER && interaction_phase(interaction) == PHASE_ANSWERED)
        interaction_finish(interaction);
    interaction_release(interaction);
}

pool_name message_before_write(const struct preload_slot *slot, int fd, uint32_t *generation)
{
    struct interaction *interaction = interaction_thread.work;
    struct connection *connection;
    pool_name written;

    /* the usual case: a thread answers its own request, to which it has a reference */
    if (interaction && preload_is_connection(slot, interaction->connection) &&
        interaction_phase(interaction) != PHASE_OVER) {
        *generation = pool_generation(&interaction->connection->item);
        return served_before_write(interaction);
    }
    if (!(connection = connection_of(slot, 0)))
        return 0;
    *generation = pool_generation(&connection->item);
    if (connection->role == ROLE_CLIENT)
        called_before_write(connection, fd);
    interaction = connection->role == ROLE_CLIENT ? NULL : interaction_own_or_current(connection);
    written = interaction ? served_before_write(interaction) : 0;
    if (interaction)
        interaction_release(interaction);
    connection_release(connection);
    return written;
}

void message_after_write(struct connection *connection, struct bytes head, size_t count)
{
    if (connection->role == ROLE_CLIENT)
        called_after_write(connection, head, count);
    else
        served_after_late_write(connection, count);
}

bool message_after_answer(pool_name written, size_t count, size_t wanted)
{
    struct interaction *interaction = interaction_find(written);
    bool is_all;

    if (!interaction)
        return false;
    is_all = served_after_write(interaction, count, wanted);
    interaction_release(interaction);
    return is_all;
}

/* If a thread is still sending the answer, that thread records the interaction: the peer may close
 * the connection right after the last byte. */
void message_end_connection(struct connection *connection)
{
    struct interaction *interaction = interaction_current(connection);

    called_forget_opener(connection);
    served_try_finish_all(connection);
    if (!interaction)
        return;
    if (__atomic_load_n(&interaction->writers, __ATOMIC_SEQ_CST))
        served_move_to_finishing(connection, interaction);
    else if (interaction_phase(interaction) == PHASE_ANSWERED)
        interaction_finish(interaction);
    else
        interaction_give_up(interaction);
    interaction_release(interaction);
}

void message_give_up_connection(struct connection *connection)
{
    struct interaction *interaction = interaction_current(connection);

    served_drop_finishing(connection);
    if (!interaction)
        return;
    interaction_give_up(interaction);
    interaction_release(interaction);
}

void message_end_thread(void)
{
    served_end_abandoned();
    interaction_end_thread();
}

void message_forget_all(void)
{
    served_forget_all();
    interaction_forget_all();
}
