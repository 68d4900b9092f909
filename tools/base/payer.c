/* SPDX-License-Identifier: BSD-2-Clause */
#include "payer.h"

#include "babeltrace-plugin/base/monotonic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void payers_begin(struct payers *payers)
{
    payers->count = 0;
    CDS_INIT_LIST_HEAD(&payers->list);
}

static void payers_drop(struct payers *payers, struct payer *payer)
{
    cds_list_del(&payer->in_list);
    payers->count--;
    if (payers->end)
        payers->end(payers->context, payer);
    free(payer);
}

void payers_end(struct payers *payers)
{
    struct payer *payer, *next;

    if (!payers->list.next)
        return;
    cds_list_for_each_entry_safe(payer, next, &payers->list, in_list) payers_drop(payers, payer);
}

void payer_set_user(char name[PAYER_NAME_MAX], uint32_t user)
{
    (void)snprintf(name, PAYER_NAME_MAX, "user %u", (unsigned)user);
}

static struct payer *payers_find(const struct payers *payers, const char *name)
{
    struct payer *payer;

    cds_list_for_each_entry(payer, &payers->list, in_list)
    {
        if (strcmp(payer->name, name) == 0)
            return payer;
    }
    return NULL;
}

/* Returns false if all payers are in use. */
static bool payers_make_room(struct payers *payers)
{
    struct payer *payer, *oldest = NULL;

    cds_list_for_each_entry(payer, &payers->list, in_list)
    {
        if (payer->sender.connections + payer->sender.leaving + payer->held == 0 &&
            (!oldest || payer->used_ms < oldest->used_ms))
            oldest = payer;
    }
    if (oldest)
        payers_drop(payers, oldest);
    return oldest != NULL;
}

/* Returns NULL when out of memory. */
static struct payer *payers_add(struct payers *payers, const char *name)
{
    struct payer *payer = calloc(1, payers->size);

    if (!payer || (payers->begin && !payers->begin(payers->context, payer))) {
        free(payer);
        return NULL;
    }
    (void)snprintf(payer->name, sizeof(payer->name), "%s", name);
    cds_list_add_tail(&payer->in_list, &payers->list);
    payers->count++;
    return payer;
}

struct payer *payers_get(struct payers *payers, const char *name)
{
    struct payer *payer = payers_find(payers, name);

    if (!payer && payers->count >= payers->most && !payers_make_room(payers)) {
        name = "others";
        payer = payers_find(payers, name);
    }
    if (!payer)
        payer = payers_add(payers, name);
    if (payer)
        payer->used_ms = clock_ms();
    return payer;
}

unsigned payers_crowd(const struct payers *payers, const struct payer *payer)
{
    const uint64_t now_ns = (uint64_t)clock_ns();
    const struct payer *other;
    unsigned count = 0;

    cds_list_for_each_entry(other, &payers->list, in_list)
    {
        count += other != payer && other->alarms.next_ns > now_ns;
    }
    return count;
}

void payers_set_rate(const struct payers *payers, struct payer *payer, uint64_t period_ns)
{
    payer->alarms.period_ns = period_ns * (1 + payers_crowd(payers, payer));
}

bool payer_count_alarm(struct payer *payer, uint64_t burst_ns)
{
    return blkin_within_rate(&payer->alarms, burst_ns, (uint64_t)clock_ns());
}

json_t *payers_json(const struct payers *payers)
{
    json_t *list = json_array();
    const struct payer *payer;

    cds_list_for_each_entry(payer, &payers->list, in_list)
    {
        (void)json_array_append_new(list,
                                    json_pack("{ss, sI, sI, sI}", "of", payer->name, "connections",
                                              (json_int_t)payer->sender.connections, "hung_up",
                                              (json_int_t)payer->sender.hung_up, "refused",
                                              (json_int_t)payer->refused));
    }
    return list;
}
