/*
 * The hosts of the cluster: their presence, and their shares of wants.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "cluster_parts.h"
#include "tools/base/json.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"

#include <stdlib.h>
#include <string.h>

#define HOSTS_MAX 4096
#define TWIN_MS   60000 /* how long the status shows another agent of the same name */
#define SHARE_S   10    /* the seconds whose share of wants a host may save up */

struct cluster_host {
    struct table_link in_table;
    char name[CLUSTER_HOST];
    bool is_known; /* has published its state; if not, the entry only has the share of wants */
    bool is_here;
    int64_t state_ms;   /* the time of the last state */
    int64_t allowance;  /* the remaining share, in thousandths of wants */
    int64_t allowed_ms; /* the time of `allowance` */
};

static uint64_t hosts_hash(const struct cluster *cluster, const char *name)
{
    return hash_text(cluster->hosts.seed, text_of(name));
}

static struct cluster_host *hosts_find(const struct cluster *cluster, const char *name)
{
    struct cluster_host *host;

    table_find(host, &cluster->hosts, hosts_hash(cluster, name), in_table,
               strcmp(host->name, name) == 0);
    return host;
}

static struct cluster_host *hosts_get(struct cluster *cluster, const char *name)
{
    struct cluster_host *host = hosts_find(cluster, name);

    if (host || cluster->hosts.count >= HOSTS_MAX)
        return host;
    host = calloc(1, sizeof(*host));
    if (!host)
        return NULL;
    (void)snprintf(host->name, sizeof(host->name), "%s", name);
    host->state_ms = host->allowed_ms = clock_ms();
    host->allowance = cluster->wants_per_s * 1000 * SHARE_S;
    table_add(&cluster->hosts, &host->in_table, hosts_hash(cluster, name));
    return host;
}

static json_t *hosts_list(const struct cluster *cluster, json_t *list, bool all)
{
    const struct cluster_host *host;

    table_for_each(host, &cluster->hosts, in_table)
    {
        if (host->is_known && (all || !host->is_here))
            (void)json_array_append_new(list, json_string(host->name));
    }
    return list;
}

json_t *hosts_away(const struct cluster *cluster)
{
    return hosts_list(cluster, json_array(), false);
}

json_t *cluster_away(const struct cluster *cluster)
{
    json_t *list = hosts_away(cluster);

    (void)json_array_append_new(list, json_string(cluster->url));
    return list;
}

json_t *cluster_hosts(const struct cluster *cluster)
{
    json_t *list = json_pack("[s]", cluster->host);

    if (!cluster->knows_hosts)
        (void)json_array_append_new(list, json_string(cluster->url));
    return hosts_list(cluster, list, true);
}

/* ---- the file of hosts ----------------------------------------------------------------------- */

bool hosts_open(struct cluster *cluster)
{
    json_t *list = json_load_file(cluster->hosts_file, 0, NULL);
    const json_t *name;
    size_t i;

    if (!table_init(&cluster->hosts)) {
        json_decref(list);
        return false;
    }
    json_array_foreach(list, i, name)
    {
        const char *text = json_string_value(name);

        struct cluster_host *host =
            text && message_is_host(text) && strcmp(text, cluster->host) != 0
                ? hosts_get(cluster, text)
                : NULL;

        if (host)
            host->is_known = true;
    }
    cluster->knows_hosts = json_is_array(list);
    json_decref(list);
    return true;
}

static void hosts_save(const struct cluster *cluster)
{
    json_t *list = hosts_list(cluster, json_array(), true);
    char *text = json_dumps(list, JSON_COMPACT);

    saver_write(cluster->hosts_file, text, text ? strlen(text) : 0);
    json_decref(list);
}

static void hosts_free(struct table_link *link)
{
    free(caa_container_of(link, struct cluster_host, in_table));
}

void hosts_close(struct cluster *cluster)
{
    if (cluster->hosts.buckets)
        table_destroy(&cluster->hosts, hosts_free);
}

/* ---- presence -------------------------------------------------------------------------------- */

static void hosts_remove(struct cluster *cluster, struct cluster_host *host)
{
    const bool was_known = host->is_known;

    if (was_known)
        say(BK4066, "host %s is forgotten: traces are complete without it", host->name);
    table_remove(&cluster->hosts, &host->in_table);
    hosts_free(&host->in_table);
    if (was_known) /* the file has only known hosts */
        hosts_save(cluster);
}

/* Handles this host's own state. The broker sends this state after the retained states of all other
 * hosts, and after any state of an earlier process of this host. */
static void hosts_take_own(struct cluster *cluster, bool is_here, const char *instance)
{
    if (!is_here) { /* the last will of an earlier connection */
        cluster_say_here(cluster);
    } else if (strcmp(instance, cluster->instance) != 0) {
        if (cluster->is_known) {
            /* two agents of one name would end each other's connections for ever */
            if (cluster->twin_until_ms < clock_ms())
                say(BK4068,
                    "%s: another agent connects as \"%s\": each host needs a name of its own",
                    cluster->url, cluster->host);
            cluster->twin_until_ms = clock_ms() + TWIN_MS;
            broker_pause_long(cluster->broker);
        }
    } else {
        cluster->is_known = true;
        if (!cluster->knows_hosts) {
            cluster->knows_hosts = true;
            hosts_save(cluster);
        }
    }
}

/* Returns true if the host may have missed messages, because the broker has no session of the host.
 * A killed broker has lost all sessions: then this host has connected again, too. */
static bool hosts_may_miss(const struct cluster *cluster, const struct cluster_host *host)
{
    const int64_t now_ms = clock_ms();

    return !host->is_known || now_ms - cluster->connected_ms < CLUSTER_REPEAT_MS ||
           (!host->is_here && now_ms - host->state_ms > BROKER_SESSION_S * 1000 / 2);
}

void hosts_take(struct cluster *cluster, const char *name, const struct broker_event *event)
{
    json_t *state = json_loadb(event->text, event->length, 0, NULL);
    const bool is_here = strcmp(text_in(state, "state"), "here") == 0;
    struct cluster_host *host;
    bool was_known;

    if (strcmp(name, cluster->host) == 0)
        hosts_take_own(cluster, is_here, text_in(state, "instance"));
    json_decref(state);
    if (strcmp(name, cluster->host) == 0)
        return;
    if (event->length == 0) {
        host = hosts_find(cluster, name);
        if (host)
            hosts_remove(cluster, host);
        return;
    }
    host = hosts_get(cluster, name);
    if (!host)
        return;
    if (is_here && hosts_may_miss(cluster, host))
        cluster_repeat_soon(cluster);
    was_known = host->is_known;
    host->is_known = true;
    host->is_here = is_here;
    host->state_ms = clock_ms();
    if (!was_known && cluster->knows_hosts)
        hosts_save(cluster);
}

void hosts_forget(struct cluster *cluster)
{
    const int64_t before_ms = clock_ms() - cluster->forget_ms;
    struct cluster_host *host;

    table_for_each(host, &cluster->hosts, in_table)
    {
        if (!host->is_here && host->state_ms < before_ms)
            hosts_remove(cluster, host);
    }
}

/* ---- shares ---------------------------------------------------------------------------------- */

/* A host may save up the share of SHARE_S seconds, because one request has the wants of some
 * seconds. One request may exceed the remaining share. */
bool hosts_may_want(struct cluster *cluster, const char *name, size_t count)
{
    struct cluster_host *host = hosts_get(cluster, name);
    const int64_t now_ms = clock_ms();
    bool may_want;

    if (!host)
        return false;
    host->allowance += (now_ms - host->allowed_ms) * cluster->wants_per_s;
    if (host->allowance > cluster->wants_per_s * 1000 * SHARE_S)
        host->allowance = cluster->wants_per_s * 1000 * SHARE_S;
    host->allowed_ms = now_ms;
    may_want = host->allowance > 0;
    if (may_want)
        host->allowance -= (int64_t)(count ? count : 1) * 1000;
    return may_want;
}
