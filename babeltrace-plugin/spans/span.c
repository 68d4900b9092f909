/*
 * The log of a span: its name, annotations and tags in one growing block. Endpoints.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "span.h"

#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/base/table.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <urcu/compiler.h>

/* ---- spans ----------------------------------------------------------------------------------- */

#define LOG_FIRST_BYTES 192

const struct span_entry *span_find_tag(const struct span *span, struct text key)
{
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        if ((entry->type == SPAN_TAG_TEXT || entry->type == SPAN_TAG_INTEGER) &&
            text_equal(span_entry_key(entry), key))
            return entry;
    }
    return NULL;
}

static size_t padded(size_t size)
{
    return (size + 7) & ~(size_t)7;
}

__attribute__((noinline)) static bool span_grow(struct span *span, size_t needed)
{
    size_t capacity = span->log_capacity ? span->log_capacity : LOG_FIRST_BYTES;
    char *log;

    if (needed > SPAN_LOG_MAX)
        return false;
    while (capacity < needed)
        capacity *= 2;
    if (capacity > SPAN_LOG_MAX)
        capacity = SPAN_LOG_MAX;
    log = realloc(span->log, capacity);
    if (!log)
        return false;
    span->log = log;
    span->log_capacity = (uint32_t)capacity;
    return true;
}

static inline bool span_make_room(struct span *span, size_t size)
{
    const size_t needed = span->log_length + size;

    return needed <= span->log_capacity || span_grow(span, needed);
}

bool span_set_name(struct span *span, struct text name)
{
    size_t size = padded(name.length);

    /* an empty name has room, too: log is not NULL then */
    if (!span_make_room(span, size ? size : 1))
        return false;
    (void)text_copy(span->log, name);
    span->name_length = (uint32_t)name.length;
    span->first_entry = (uint32_t)size;
    span->log_length = (uint32_t)size;
    return true;
}

bool span_add(struct span *span, enum span_entry_type type, struct text key, struct text value,
              int64_t integer)
{
    size_t size;
    struct span_entry *entry;

    if (key.length > SPAN_LOG_MAX || value.length > SPAN_LOG_MAX)
        return false;
    size = padded(sizeof(*entry) + key.length + value.length);
    if (!span_make_room(span, size))
        return false;

    entry = (struct span_entry *)(void *)(span->log + span->log_length);
    *entry = (struct span_entry){
        .type = type,
        .key_length = (uint32_t)key.length,
        .value_length = (uint32_t)value.length,
        .size = (uint32_t)size,
        .integer = integer,
    };
    (void)text_copy(text_copy((char *)(entry + 1), key), value);
    span->log_length += (uint32_t)size;
    return true;
}

bool span_change_name(struct span *span, struct text name)
{
    const size_t size = padded(name.length);
    const size_t entries = span->log_length - span->first_entry;

    if (size > SPAN_LOG_MAX ||
        (size > span->first_entry && !span_make_room(span, size - span->first_entry)))
        return false;
    memmove(span->log + size, span->log + span->first_entry, entries);
    (void)text_copy(span->log, name);
    span->name_length = (uint32_t)name.length;
    span->first_entry = (uint32_t)size;
    span->log_length = (uint32_t)(size + entries);
    return true;
}

bool span_add_link(struct span *span, const struct span_link *link)
{
    return span_add(span, SPAN_LINK, (struct text){NULL, 0},
                    (struct text){(const char *)link, sizeof(*link)}, 0);
}

struct span_copy *span_copy_new(const struct span *span, size_t spare)
{
    struct span_copy *kept = malloc(sizeof(*kept) + span->log_length + spare);

    if (!kept)
        return NULL;
    kept->next = NULL;
    kept->since_ns = 0;
    kept->span = *span;
    kept->span.log = kept->log;
    kept->span.log_capacity = span->log_length + (uint32_t)spare;
    if (span->log_length)
        memcpy(kept->log, span->log, span->log_length);
    return kept;
}

static void shift_annotations(struct span *span, int64_t by_ns)
{
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        /* unsigned: an annotation may have any time */
        if (entry->type == SPAN_ANNOTATION)
            ((struct span_entry *)(uintptr_t)entry)->integer =
                (int64_t)((uint64_t)entry->integer + (uint64_t)by_ns);
    }
}

bool span_shift(struct span *span, int64_t by_ns)
{
    int64_t start_ns, end_ns;

    if (__builtin_add_overflow(span->start_ns, by_ns, &start_ns) ||
        __builtin_add_overflow(span->end_ns, by_ns, &end_ns))
        return false;
    span->start_ns = start_ns;
    span->end_ns = end_ns;
    shift_annotations(span, by_ns);
    return true;
}

/* ---- the table of endpoints, and the checks that make an endpoint fit for every encoder ------ */

/* The values of an endpoint as the trace gave them; the service is endpoint.service. */
struct endpoint_entry {
    struct table_link in_table;
    struct endpoint endpoint;
    struct text ip; /* points to the bytes after the struct, as the service does */
    int64_t port;
};

struct endpoint_table {
    struct table entries;
    const struct endpoint_entry *last; /* events of one service come in bursts */
    struct endpoint_entry overflow;
    uint64_t merged;
};

static uint64_t endpoint_hash(uint64_t seed, struct text service, struct text ip, int64_t port)
{
    return hash_text(hash_text(seed ^ hash_mix((uint64_t)port), service), ip);
}

static bool endpoint_is_of(const struct endpoint_entry *entry, struct text service, struct text ip,
                           int64_t port)
{
    return entry->port == port && text_equal(entry->endpoint.service, service) &&
           text_equal(entry->ip, ip);
}

bool endpoint_is(const struct endpoint *endpoint, struct text service, struct text ip, int64_t port)
{
    return endpoint_is_of(caa_container_of(endpoint, struct endpoint_entry, endpoint),
                          text_cut(service, ENDPOINT_TEXT_MAX), text_cut(ip, ENDPOINT_TEXT_MAX),
                          port);
}

struct endpoint_table *endpoint_table_new(void)
{
    struct endpoint_table *table = calloc(1, sizeof(*table));

    if (!table || !table_init(&table->entries)) {
        free(table);
        return NULL;
    }
    table->overflow.endpoint.service = text_of(ENDPOINT_OVERFLOW);
    return table;
}

static void free_entry(struct table_link *link)
{
    free(caa_container_of(link, struct endpoint_entry, in_table));
}

void endpoint_table_free(struct endpoint_table *table)
{
    if (!table)
        return;
    table_destroy(&table->entries, free_entry);
    free(table);
}

static void endpoint_set_address(struct endpoint *endpoint, struct text ip)
{
    char string[INET6_ADDRSTRLEN];
    const struct text address =
        text_take(&ip, '%'); /* an IPv6 address's zone comes after the '%' */
    struct in_addr v4;
    struct in6_addr v6;

    if (address.length == 0 || address.length >= sizeof(string))
        return;
    *text_copy(string, address) = '\0';

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

static struct endpoint_entry *entry_new(struct text service, struct text ip, int64_t port)
{
    struct endpoint_entry *entry = calloc(1, sizeof(*entry) + service.length + ip.length);
    char *bytes;

    if (!entry)
        return NULL;
    bytes = (char *)(entry + 1);
    entry->endpoint.service = text_copy_to(&bytes, service);
    entry->ip = text_copy_to(&bytes, ip);
    entry->port = port;
    entry->endpoint.port = checked_port(port);
    entry->endpoint.hash = endpoint_hash(0, service, ip, port);
    endpoint_set_address(&entry->endpoint, entry->ip);
    return entry;
}

/* Finds the endpoint, or makes it. Each connection of a client has its own port: ports may use half
 * of the table, then addresses a quarter. So a new service finds room. NULL when out of memory. */
static const struct endpoint_entry *endpoint_find(struct endpoint_table *table, struct text service,
                                                  struct text ip, int64_t port)
{
    const uint64_t hash = endpoint_hash(table->entries.seed, service, ip, port);
    struct endpoint_entry *entry;

    table_find(entry, &table->entries, hash, in_table, endpoint_is_of(entry, service, ip, port));
    if (entry)
        return entry;
    if (port && table->entries.count >= ENDPOINTS_MAX / 2)
        return endpoint_find(table, service, ip, 0);
    if (ip.length && table->entries.count >= ENDPOINTS_MAX / 4 * 3)
        return endpoint_find(table, service, (struct text){NULL, 0}, 0);
    if (table->entries.count >= ENDPOINTS_MAX)
        return &table->overflow;
    entry = entry_new(service, ip, port);
    if (entry)
        table_add(&table->entries, &entry->in_table, hash);
    return entry;
}

const struct endpoint *endpoint_get(struct endpoint_table *table, struct text service,
                                    struct text ip, int64_t port)
{
    const struct endpoint_entry *entry = table->last;

    service = text_cut(service, ENDPOINT_TEXT_MAX);
    ip = text_cut(ip, ENDPOINT_TEXT_MAX);
    if (entry && endpoint_is_of(entry, service, ip, port))
        return &entry->endpoint;
    entry = endpoint_find(table, service, ip, port);
    if (!entry)
        return NULL;
    table->merged += !endpoint_is_of(entry, service, ip, port);
    table->last = entry;
    return &entry->endpoint;
}

uint64_t endpoint_take_merged(struct endpoint_table *table)
{
    const uint64_t merged = table->merged;

    table->merged = 0;
    return merged;
}
