/*
 * Interactions: what the wrappers tell.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "interaction_parts.h"

void interaction_before_read(struct connection *connection)
{
    struct thread *thread = preload_thread.thread;
    struct interaction *interaction;

    if (!thread)
        return;
    file_record_later(thread->later);
    if (connection->role != ROLE_SERVER)
        return;
    if (preload_thread.round == 0)
        interaction_finish_held(thread, UINT64_MAX);
    interaction = interaction_own(connection);
    if (!interaction)
        return;
    if (interaction_is_whole(interaction))
        interaction_finish(interaction);
    interaction_let_go(interaction);
}

void interaction_has_read(struct connection *connection, int fd, struct bytes head, size_t count)
{
    if (connection->role == ROLE_CLIENT)
        called_has_read(connection, fd, count);
    else
        served_has_read(connection, fd, head, count);
}

void interaction_has_read_end(struct connection *connection)
{
    struct interaction *interaction = interaction_own(connection);

    if (!interaction)
        return;
    if (interaction_is_whole(interaction))
        interaction_finish(interaction);
    interaction_let_go(interaction);
}

void interaction_stops_sending(struct connection *connection)
{
    struct interaction *interaction = interaction_own(connection);

    if (!interaction)
        return;
    if (connection->role == ROLE_SERVER && interaction_phase(interaction) == PHASE_ANSWERED)
        interaction_finish(interaction);
    interaction_let_go(interaction);
}

pool_name interaction_before_write(struct connection *connection, int fd)
{
    if (connection->role != ROLE_CLIENT)
        return served_before_write(connection);
    called_before_write(connection, fd);
    return 0;
}

void interaction_has_written(struct connection *connection, pool_name written, struct bytes head,
                             size_t count, size_t wanted)
{
    if (connection->role == ROLE_CLIENT)
        called_has_written(connection, head, count);
    else
        served_has_written(connection, written, count, wanted);
}

void interaction_has_written_last(pool_name written, size_t count, size_t wanted)
{
    struct interaction *interaction = interaction_find(written);

    if (!interaction)
        return;
    served_has_written(interaction->connection, written, count, wanted);
    interaction_let_go(interaction);
}

/* Whose answer is being sent is recorded by who sends it: the peer may have closed at its last
 * byte. */
void interaction_connection_ends(struct connection *connection)
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

void interaction_abandon(struct connection *connection)
{
    struct interaction *interaction = interaction_at_hand(connection);

    if (preload_thread.thread)
        file_drop_later(preload_thread.thread->later);
    served_drop_passing(connection);
    if (!interaction)
        return;
    interaction_give_up(interaction);
    interaction_let_go(interaction);
}
