/*
 * The table of endpoints, and the checks that make one fit for any encoder.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "endpoint.h"

#include "hash.h"

#include <arpa/inet.h>
#include <glib.h>
#include <stdlib.h>

/* The values as the trace gave them, and what was made of them. */
struct entry {
    struct text service; /* these two point to the bytes after the struct */
    struct text ip;
    int64_t port;
    struct endpoint endpoint;
};

struct endpoint_table {
    GHashTable *entries;
    const struct entry *last; /* events of one service come in bursts */
    struct endpoint overflow;
};

static guint hash_entry(gconstpointer data)
{
    const struct entry *entry = data;

    return (guint)hash_text(hash_text((uint64_t)entry->port, entry->service), entry->ip);
}

static gboolean equal_entries(gconstpointer left, gconstpointer right)
{
    const struct entry *a = left;
    const struct entry *b = right;

    return a->port == b->port && text_equal(a->service, b->service) && text_equal(a->ip, b->ip);
}

struct endpoint_table *endpoint_table_new(void)
{
    struct endpoint_table *table = calloc(1, sizeof(*table));

    if (!table)
        return NULL;
    table->overflow.service = text_of(ENDPOINT_OVERFLOW);
    table->entries = g_hash_table_new_full(hash_entry, equal_entries, free, NULL);
    return table;
}

void endpoint_table_free(struct endpoint_table *table)
{
    if (!table)
        return;
    g_hash_table_destroy(table->entries);
    free(table);
}

static void set_address(struct endpoint *endpoint, struct text ip)
{
    char string[INET6_ADDRSTRLEN];
    const char *zone = ip.length ? memchr(ip.data, '%', ip.length) : NULL;
    size_t length = zone ? (size_t)(zone - ip.data) : ip.length;
    struct in_addr v4;
    struct in6_addr v6;

    if (length == 0 || length >= sizeof(string))
        return;
    memcpy(string, ip.data, length);
    string[length] = '\0';

    if (inet_pton(AF_INET, string, &v4) == 1) {
        inet_ntop(AF_INET, &v4, endpoint->ipv4, sizeof(endpoint->ipv4));
    } else if (inet_pton(AF_INET6, string, &v6) == 1) {
        if (IN6_IS_ADDR_V4MAPPED(&v6))
            inet_ntop(AF_INET, &v6.s6_addr[12], endpoint->ipv4, sizeof(endpoint->ipv4));
        else
            inet_ntop(AF_INET6, &v6, endpoint->ipv6, sizeof(endpoint->ipv6));
    }
}

static uint16_t checked_port(int64_t port)
{
    if (port < 0 && port >= INT16_MIN)
        port += 1 << 16;
    return port > 0 && port <= UINT16_MAX ? (uint16_t)port : 0;
}

static struct entry *entry_new(const struct entry *key)
{
    struct entry *entry = calloc(1, sizeof(*entry) + key->service.length + key->ip.length);
    char *bytes = (char *)(entry + 1);

    if (!entry)
        return NULL;
    if (key->service.length)
        memcpy(bytes, key->service.data, key->service.length);
    if (key->ip.length)
        memcpy(bytes + key->service.length, key->ip.data, key->ip.length);
    entry->service = (struct text){bytes, key->service.length};
    entry->ip = (struct text){bytes + key->service.length, key->ip.length};
    entry->port = key->port;
    entry->endpoint.service = entry->service;
    entry->endpoint.port = checked_port(key->port);
    set_address(&entry->endpoint, entry->ip);
    return entry;
}

const struct endpoint *endpoint_get(struct endpoint_table *table, struct text service,
                                    struct text ip, int64_t port)
{
    const struct entry key = {.service = service, .ip = ip, .port = port};
    struct entry *entry;

    if (table->last && equal_entries(table->last, &key))
        return &table->last->endpoint;
    entry = g_hash_table_lookup(table->entries, &key);
    if (!entry && g_hash_table_size(table->entries) >= ENDPOINTS_MAX)
        return &table->overflow;
    if (!entry) {
        entry = entry_new(&key);
        if (!entry)
            return NULL;
        g_hash_table_add(table->entries, entry);
    }
    table->last = entry;
    return &entry->endpoint;
}

bool endpoint_is_overflow(const struct endpoint_table *table, const struct endpoint *endpoint)
{
    return endpoint == &table->overflow;
}
