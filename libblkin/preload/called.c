/*
 * Interactions where the connection was made.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "called.h"

#include "cause.h"
#include "preload.h"
#include "served.h"
#include "thread.h"

static void called_count_cause(enum preload_cause how)
{
    static const enum preload_count counts[] = {
        [PRELOAD_NO_CAUSE] = PRELOAD_CAUSELESS,   [PRELOAD_BY_PROGRAM] = PRELOAD_OWNED,
        [PRELOAD_BY_OWNER] = PRELOAD_OWNED,       [PRELOAD_BY_BEING_ONLY] = PRELOAD_ONLY,
        [PRELOAD_BY_PREFIX] = PRELOAD_BY_CONTENT, [PRELOAD_BY_GUESS] = PRELOAD_GUESSED,
    };

    preload_count(counts[how]);
}

/* A certain cause waits for the answer from now on. */
static void called_set_cause(struct interaction *interaction, struct cause cause)
{
    interaction->cause = (uint8_t)cause.how;
    called_count_cause(cause.how);
    if (!cause.interaction)
        return;
    cause.interaction->has_called = true;
    interaction_hold(cause.interaction);
    if (cause.how == PRELOAD_BY_GUESS) {
        interaction->likely = cause.interaction;
        return;
    }
    cause.interaction->is_past_call = true;
    interaction->owner = cause.interaction;
    (void)__atomic_add_fetch(&cause.interaction->calls, 1, __ATOMIC_ACQ_REL);
    (void)__atomic_add_fetch(&cause.interaction->calls_held, 1, __ATOMIC_ACQ_REL);
    if (interaction_thread.worker)
        interaction_closes(interaction_thread.worker, cause.interaction);
}

void called_forget_opener(struct connection *connection)
{
    struct interaction *opener = __atomic_exchange_n(&connection->opener, NULL, __ATOMIC_ACQ_REL);

    if (!opener)
        return;
    (void)__atomic_sub_fetch(&opener->calls, 1, __ATOMIC_ACQ_REL);
    interaction_let_go(opener);
}

/* What is answered is over; true if there is a request that is not. */
static bool called_goes_on(struct connection *connection)
{
    struct interaction *interaction = interaction_at_hand(connection);
    bool goes_on;

    if (!interaction)
        return false;
    if (interaction_phase(interaction) == PHASE_ANSWERED)
        interaction_finish(interaction);
    if (interaction_phase(interaction) == PHASE_NEW)
        interaction->worker =
            interaction_worker(); /* a first write that has failed is tried again */
    goes_on = interaction_phase(interaction) < PHASE_ANSWERED;
    interaction_let_go(interaction);
    return goes_on;
}

void called_before_write(struct connection *connection, int fd)
{
    struct interaction *interaction;
    uint64_t now_ns;

    if (called_goes_on(connection) ||
        /* the middle of a message that began while nobody looked */
        __atomic_load_n(&connection->direction, __ATOMIC_RELAXED) == DIRECTION_OUT)
        return;
    now_ns = preload_now_ns();
    preload_config_refresh(now_ns);
    if (!connection_is_traced(connection, fd) || connection->role != ROLE_CLIENT)
        return;
    interaction = interaction_make(connection, interaction_worker(),
                                   __atomic_load_n(&connection->sent, __ATOMIC_RELAXED), now_ns);
    if (!interaction)
        return;
    (void)interaction_put_at_hand(interaction);
    interaction_let_go(interaction);
}

/* The first bytes are sent: its span, and what has caused it. */
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
        interaction_let_go(elsewhere);
    called_forget_opener(connection);
    connection->is_fresh = connection->is_awaited = false;
    if (__atomic_compare_exchange_n(&interaction->phase, &new, PHASE_REQUEST, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        if (__atomic_load_n(&interaction->answered, __ATOMIC_RELAXED))
            interaction_add_answer(interaction, 0); /* by another thread, meanwhile */
    } else {
        interaction_stop_waiting(interaction);
        interaction_is_not_held(interaction);
        blkin_span_drop(&interaction->span); /* closed by another thread, meanwhile */
    }
}

void called_has_written(struct connection *connection, struct bytes head, size_t count)
{
    struct interaction *interaction;

    if (!count)
        return;
    (void)connection_turn(connection, DIRECTION_OUT);
    connection_add_bytes(&connection->sent, count);
    interaction = interaction_at_hand(connection);
    if (!interaction)
        return;
    if (interaction_phase(interaction) == PHASE_NEW &&
        interaction->worker == interaction_thread.worker)
        called_begin(interaction, head);
    interaction_hears_else();
    interaction_add_head(interaction, head);
    connection_add_bytes(&interaction->requested, count);
    interaction_let_go(interaction);
}

/*
 * Has the thread read for the request that has caused the call, and goes on with it? Not if it has
 * one of its own to answer and another thread has taken that one: of threads that share a
 * connection to the next server, one reads what all of them wait for.
 */
static bool called_has_read_for(const struct interaction *owner)
{
    const struct interaction *work = interaction_thread.work;

    return !work || interaction_phase(work) != PHASE_REQUEST ||
           work->worker != interaction_thread.worker || owner->worker == interaction_thread.worker;
}

void called_has_read(struct connection *connection, int fd, size_t count)
{
    struct interaction *interaction = interaction_at_hand(connection);

    interaction_hears_else();
    (void)connection_turn(connection, DIRECTION_IN);
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
            interaction_opens(interaction_thread.worker, interaction->owner);
    }
    interaction_let_go(interaction);
}

static void called_set_opener(struct connection *connection)
{
    struct interaction *cause = cause_of_connect();

    if (!cause)
        return;
    cause->has_called = cause->is_past_call = true;
    interaction_hold(cause);
    (void)__atomic_add_fetch(&cause->calls, 1, __ATOMIC_ACQ_REL);
    interaction_closes(interaction_thread.worker, cause);
    connection->opener = cause;
}

void called_will_write(struct connection *connection)
{
    struct interaction *before = interaction_at_hand(connection);
    const bool is_busy = before && interaction_phase(before) < PHASE_ANSWERED;

    if (before)
        interaction_let_go(before);
    if (is_busy || connection->is_fresh || connection->is_awaited)
        return;
    connection->is_awaited = true;
    called_set_opener(connection);
}

void called_connects(int fd, const struct sockaddr *address, socklen_t length, bool is_on)
{
    struct connection *connection;

    if (!connection_connecting(fd, address, length) || !is_on ||
        !(connection = connection_of(preload_slot(fd), 0)))
        return;
    called_set_opener(connection);
    connection_let_go(connection);
}
