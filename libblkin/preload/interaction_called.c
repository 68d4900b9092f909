/*
 * Interactions where the connection was made.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "cause.h"
#include "interaction_parts.h"

static void count_cause(enum preload_cause how)
{
    static const enum preload_count counts[] = {
        [PRELOAD_NO_CAUSE] = PRELOAD_CAUSELESS,   [PRELOAD_BY_PROGRAM] = PRELOAD_OWNED,
        [PRELOAD_BY_OWNER] = PRELOAD_OWNED,       [PRELOAD_BY_BEING_ONLY] = PRELOAD_ONLY,
        [PRELOAD_BY_PREFIX] = PRELOAD_BY_CONTENT, [PRELOAD_BY_GUESS] = PRELOAD_GUESSED,
    };

    preload_count(counts[how]);
}

/* A certain cause waits for the answer from now on. */
static void set_cause(struct interaction *interaction, struct cause cause)
{
    interaction->cause = (uint8_t)cause.how;
    count_cause(cause.how);
    if (!cause.interaction)
        return;
    cause.interaction->has_called = true;
    interaction_hold(cause.interaction);
    if (cause.how == PRELOAD_BY_GUESS) {
        interaction->likely = cause.interaction;
        return;
    }
    interaction->owner = cause.interaction;
    (void)__atomic_add_fetch(&cause.interaction->calls, 1, __ATOMIC_ACQ_REL);
    if (preload_thread.thread)
        cause_closes(preload_thread.thread, cause.interaction);
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
static bool request_goes_on(struct connection *connection)
{
    struct interaction *interaction = interaction_at_hand(connection);
    bool goes_on;

    if (!interaction)
        return false;
    if (interaction_phase(interaction) == PHASE_ANSWERED)
        interaction_finish(interaction);
    if (interaction_phase(interaction) == PHASE_NEW)
        interaction->thread = thread_get(); /* a first write that has failed is tried again */
    goes_on = interaction_phase(interaction) < PHASE_ANSWERED;
    interaction_let_go(interaction);
    return goes_on;
}

void called_before_write(struct connection *connection, int fd)
{
    struct interaction *interaction;
    uint64_t now_ns;

    if (request_goes_on(connection) ||
        /* the middle of a message that began while nobody looked */
        __atomic_load_n(&connection->direction, __ATOMIC_RELAXED) == DIRECTION_OUT)
        return;
    now_ns = preload_now_ns();
    preload_config_refresh(now_ns);
    if (!connection_is_traced(connection, fd) || connection->role != ROLE_CLIENT)
        return;
    interaction = interaction_make(connection, thread_get(),
                                   __atomic_load_n(&connection->sent, __ATOMIC_RELAXED), now_ns);
    if (!interaction)
        return;
    (void)interaction_put_at_hand(interaction);
    interaction_let_go(interaction);
}

/* The first bytes are sent: its span, and what has caused it. */
static void begin_called(struct interaction *interaction, struct bytes head)
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
    set_cause(interaction, cause);
    if (elsewhere)
        interaction_let_go(elsewhere);
    called_forget_opener(connection);
    connection->is_fresh = false;
    if (__atomic_compare_exchange_n(&interaction->phase, &new, PHASE_REQUEST, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        if (__atomic_load_n(&interaction->answered, __ATOMIC_RELAXED))
            interaction_add_answer(interaction, 0); /* by another thread, meanwhile */
    } else {
        interaction_stop_waiting(interaction);
        blkin_span_drop(&interaction->span); /* closed by another thread, meanwhile */
    }
}

void called_has_written(struct connection *connection, struct bytes head, size_t count)
{
    struct interaction *interaction;

    if (!count)
        return;
    (void)turn(connection, DIRECTION_OUT);
    add_bytes(&connection->sent, count);
    interaction = interaction_at_hand(connection);
    if (!interaction)
        return;
    if (interaction_phase(interaction) == PHASE_NEW && interaction->thread == preload_thread.thread)
        begin_called(interaction, head);
    interaction_add_head(interaction, head);
    add_bytes(&interaction->requested, count);
    interaction_let_go(interaction);
}

/*
 * Has the thread read for the request that has caused the call, and goes on with it? Not if it has
 * one of its own to answer and another thread has taken that one: of threads that share a
 * connection to the next server, one reads what all of them wait for.
 */
static bool has_read_for(const struct interaction *owner)
{
    const struct interaction *work = preload_thread.work;

    return !work || interaction_phase(work) != PHASE_REQUEST ||
           work->thread != preload_thread.thread || owner->thread == preload_thread.thread;
}

void called_has_read(struct connection *connection, int fd, size_t count)
{
    struct interaction *interaction = interaction_at_hand(connection);

    (void)turn(connection, DIRECTION_IN);
    add_bytes(&connection->received, count);
    if (!interaction) {
        preload_count(connection->sent ? PRELOAD_LATE : PRELOAD_UNASKED);
        return;
    }
    interaction_add_answer(interaction, count);
    (void)connection_key(connection, fd);
    if (interaction->owner && has_read_for(interaction->owner)) {
        interaction_work_for(interaction->owner);
        if (preload_thread.thread && !__atomic_load_n(&interaction->owner->calls, __ATOMIC_RELAXED))
            cause_opens(preload_thread.thread, interaction->owner);
    }
    interaction_let_go(interaction);
}

void interaction_connects(struct connection *connection)
{
    struct interaction *cause = cause_of_connect();

    if (!cause)
        return;
    interaction_hold(cause);
    (void)__atomic_add_fetch(&cause->calls, 1, __ATOMIC_ACQ_REL);
    cause_closes(preload_thread.thread, cause);
    connection->opener = cause;
}
