/*
 * Interactions: their end, while somebody still has them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "interaction_parts.h"

void interaction_detach(struct interaction *interaction)
{
    if (interaction_thread.work == interaction)
        interaction_stop_work();
    if (interaction_thread.worker)
        interaction_closes(interaction_thread.worker, interaction);
    interaction_clear(&interaction->connection->open, interaction);
}

void interaction_finish(struct interaction *interaction)
{
    bool is_ours;

    if (interaction_thread.work == interaction)
        interaction_stop_work();
    is_ours = interaction_end_once(interaction);
    interaction_detach(interaction); /* first, as recording takes its time */
    if (is_ours)
        interaction_record(interaction);
}

void interaction_give_up(struct interaction *interaction)
{
    interaction_discard(interaction);
    interaction_detach(interaction);
}
