/*
 * Payers: the users of a host, and addresses on the network. Each payer has a share of each limit.
 * A request beyond the share is refused, and counts as the payer's. The kernel tells the user of a
 * program. The payer of a subordinate user is its owner in /etc/subuid.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_PAYER_H
#define BLKIN_TOOLS_PAYER_H

#include "babeltrace-plugin/base/listen.h"
#include "libblkin/policy/policy.h"

#include <jansson.h>

#define PAYER_NAME_MAX 64

/* The room that uses payers has its own struct for each payer. That struct begins with this one. */
struct payer {
    char name[PAYER_NAME_MAX];     /* "user 1000", "10.0.0.3", "2001:db8::/64", or "others" */
    struct listener_sender sender; /* the connections */
    unsigned held;                 /* pointers to this payer: see payers_get() */
    int64_t used_ms;               /* the time of the last payers_get() */
    uint64_t refused;              /* requests, which the room counts */
    struct blkin_rate alarms;
    struct cds_list_head in_list;
};

/* The room sets the members up to context. */
struct payers {
    unsigned most;
    size_t size; /* of the room's struct, which begins with zeros */
    /* NULL: nothing to do. begin() returns false when out of memory. */
    bool (*begin)(void *context, struct payer *payer);
    void (*end)(void *context, struct payer *payer);
    void *context;
    unsigned count;
    struct cds_list_head list;
};

void payers_begin(struct payers *payers);
void payers_end(struct payers *payers); /* also without payers_begin(), for a struct of zeros */

void payer_set_user(char name[PAYER_NAME_MAX], uint32_t user);

/*
 * Returns the payer of this name. At the limit, a new payer replaces the payer that has been unused
 * for longest, has no connections and is not held. If there is no such payer, returns the payer
 * "others". NULL: out of memory.
 */
struct payer *payers_get(struct payers *payers, const char *name);

/* Returns the number of other payers whose next alarm is not due yet by their rate. */
unsigned payers_crowd(const struct payers *payers, const struct payer *payer);
/* Divides one alarm in each period_ns among the payer and its crowd, and sets the payer's rate to
 * its share. */
void payers_set_rate(const struct payers *payers, struct payer *payer, uint64_t period_ns);
/* Counts an alarm of the payer now. Returns true if the alarm is within the payer's rate. The
 * alarms of burst_ns may be given at once. */
bool payer_count_alarm(struct payer *payer, uint64_t burst_ns);

/* [{"of": NAME, "connections", "hung_up", "refused"}] */
json_t *payers_json(const struct payers *payers);

#endif
