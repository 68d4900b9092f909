/* SPDX-License-Identifier: BSD-2-Clause */
#include "askers.h"

#include <string.h>

#define ASKERS_MAX 1024

void askers_begin(struct payers *askers)
{
    *askers = (struct payers){.most = ASKERS_MAX, .size = sizeof(struct asker)};
    payers_begin(askers);
}

struct asker *askers_get(struct payers *askers, const char *name)
{
    struct payer *payer = payers_get(askers, name);

    return payer ? caa_container_of(payer, struct asker, payer) : NULL;
}

struct asker *asker_hold(struct asker *asker)
{
    if (asker)
        asker->payer.held++;
    return asker;
}

void asker_release(struct asker *asker)
{
    if (asker)
        asker->payer.held--;
}

json_t *askers_json(const struct payers *askers)
{
    json_t *list = json_array();
    const struct asker *asker;

    cds_list_for_each_entry(asker, &askers->list, payer.in_list)
    {
        (void)json_array_append_new(
            list, json_pack("{ss, sI, sI, sI, sI, sI, ss%}", "of", asker->payer.name, "alarms",
                            (json_int_t)asker->alarms, "held_back", (json_int_t)asker->held_back,
                            "double", (json_int_t)asker->doubles, "dropped",
                            (json_int_t)asker->dropped, "unwatched", (json_int_t)asker->unwatched,
                            "why", asker->why, strlen(asker->why)));
    }
    return list;
}
