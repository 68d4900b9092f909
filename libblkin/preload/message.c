/*
 * Messages: what the wrappers tell.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "message.h"

#include "called.h"
#include "served.h"

static void message_finish_whole(struct connection *connection)
{
    struct interaction *interaction = interaction_own(connection);

    if (!interaction)
        return;
    if (interaction_is_whole(interaction))
        interaction_finish(interaction);
    interaction_let_go(interaction);
}

void message_before_read(struct connection *connection)
{
    struct worker *worker = interaction_thread.worker;

    if (!worker || connection->role != ROLE_SERVER)
        return;
    if (interaction_thread.round == 0)
        interaction_finish_held(worker, UINT64_MAX);
    message_finish_whole(connection);
}

void message_has_read(struct connection *connection, int fd, struct bytes head, size_t count)
{
    if (connection->role == ROLE_CLIENT)
        called_has_read(connection, fd, count);
    else
        served_has_read(connection, fd, head, count);
}

void message_has_read_end(struct connection *connection)
{
    message_finish_whole(connection);
}

void message_stops_sending(struct connection *connection)
{
    struct interaction *interaction = interaction_own(connection);

    if (!interaction)
        return;
    if (connection->role == ROLE_SERVER && interaction_phase(interaction) == PHASE_ANSWERED)
        interaction_finish(interaction);
    interaction_let_go(interaction);
}

pool_name message_before_write(struct connection *connection, int fd)
{
    if (connection->role != ROLE_CLIENT)
        return served_before_write(connection);
    called_before_write(connection, fd);
    return 0;
}

bool message_has_written(struct connection *connection, pool_name written, struct bytes head,
                         size_t count, size_t wanted)
{
    if (connection->role != ROLE_CLIENT)
        return served_has_written(connection, written, count, wanted);
    called_has_written(connection, head, count);
    return false;
}

bool message_has_written_last(pool_name written, size_t count, size_t wanted)
{
    return served_has_written_last(written, count, wanted);
}

/* Whose answer is being sent is recorded by who sends it: the peer may have closed at its last
 * byte. */
void message_connection_ends(struct connection *connection)
{
    struct interaction *interaction = interaction_at_hand(connection);

    called_forget_opener(connection);
    served_end_passing(connection);
    if (!interaction)
        return;
    if (__atomic_load_n(&interaction->writers, __ATOMIC_SEQ_CST))
        served_pass(connection, interaction);
    else if (interaction_phase(interaction) == PHASE_ANSWERED)
        interaction_finish(interaction);
    else
        interaction_give_up(interaction);
    interaction_let_go(interaction);
}

void message_abandon(struct connection *connection)
{
    struct interaction *interaction = interaction_at_hand(connection);

    served_drop_passing(connection);
    if (!interaction)
        return;
    interaction_give_up(interaction);
    interaction_let_go(interaction);
}

void message_thread_ends(void)
{
    served_end_abandoned();
    interaction_thread_ends();
}

void message_forget_all(void)
{
    served_forget_all();
    interaction_forget_all();
}
