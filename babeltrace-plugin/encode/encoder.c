/*
 * The parts that encoders share: the resource of a span, unique tag keys, the list of protocols.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "encoder.h"

#include "babeltrace-plugin/base/hash.h"
#include "json.h"

#include <string.h>
#include <strings.h>

/* ---- resources ------------------------------------------------------------------------------- */

#define LENGTH_OF(literal) (sizeof(literal) - 1)

static bool is_of_host(const struct endpoint *endpoint)
{
    if (endpoint->ipv4[0])
        return strncmp(endpoint->ipv4, "127.", 4) != 0 && strcmp(endpoint->ipv4, "0.0.0.0") != 0;
    return strcmp(endpoint->ipv6, "::1") != 0 && strcmp(endpoint->ipv6, "::") != 0;
}

/* Notes the first tag of each key: the assembler has set that one. */
static void note_tag(struct resource *resource, const struct span_entry *entry)
{
    const struct text key = span_entry_key(entry);

    switch (key.length) {
    case LENGTH_OF(RESOURCE_HOST_TAG):
        if (!resource->tags[0] && text_is(key, RESOURCE_HOST_TAG)) {
            resource->tags[0] = entry;
            resource->host = span_entry_value(entry);
        }
        break;
    case LENGTH_OF(RESOURCE_VERSION_TAG):
        if (!resource->tags[1] && text_is(key, RESOURCE_VERSION_TAG)) {
            resource->tags[1] = entry;
            resource->version = span_entry_value(entry);
        }
        break;
    case LENGTH_OF("server.address"):
        resource->has_logical_address |=
            text_is(key, "server.address") || text_is(key, "client.address");
        break;
    default:
        break;
    }
}

/* Finds the first SPAN_ORIGIN entry, and the SPAN_MESSAGE entry next to it. */
static bool resource_find_message(const struct span *span, struct resource *resource)
{
    const struct span_entry *origin = NULL, *message;

    if (!span->is_foreign)
        return false;
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        if (entry->type == SPAN_ORIGIN) {
            origin = entry;
            break;
        }
    }
    message = origin ? span_next_entry(origin) : NULL;
    if (!origin || message >= span_entries_end(span) || message->type != SPAN_MESSAGE ||
        message->value_length > LIMIT_SPAN)
        return false;
    *resource = (struct resource){
        .message = message, .whole = span_entry_key(origin), .scope = span_entry_value(origin)};
    return true;
}

struct resource resource_of(const struct span *span)
{
    const struct endpoint *endpoint = span->endpoint;
    struct resource resource = {
        .service = endpoint->service,
        .ip = is_of_host(endpoint) ? endpoint_address(endpoint) : text_of(""),
    };

    if (resource_find_message(span, &resource))
        return resource;
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        if (entry->type == SPAN_TAG_TEXT)
            note_tag(&resource, entry);
    }
    return resource;
}

bool resource_equal(const struct resource *a, const struct resource *b)
{
    return text_equal(a->service, b->service) && text_equal(a->host, b->host) &&
           text_equal(a->version, b->version) && text_equal(a->ip, b->ip) &&
           !a->message == !b->message && text_equal(a->whole, b->whole) &&
           text_equal(a->scope, b->scope);
}

uint64_t resource_hash(uint64_t seed, const struct resource *resource)
{
    uint64_t hash = hash_text(seed, resource->service);

    hash = hash_text(hash, resource->host);
    hash = hash_text(hash, resource->version);
    hash = hash_text(hash, resource->ip);
    return resource->message ? hash_text(hash_text(hash, resource->whole), resource->scope) : hash;
}

/* ---- tag keys: unique, in linear time for any keys ------------------------------------------- */

#define FEW_KEYS 8 /* up to this number of keys, comparing each key is faster than a table */

#define NO_KEY UINT16_MAX

static uint16_t *tag_keys_slot(struct tag_keys *keys, struct text key)
{
    size_t i = hash_text(keys->seed, key) & (TAG_KEYS_SLOTS - 1);

    while (keys->slots[i] && !text_equal(keys->keys[keys->slots[i] - 1], key))
        i = (i + 1) & (TAG_KEYS_SLOTS - 1);
    return &keys->slots[i];
}

static inline uint16_t tag_keys_find(struct tag_keys *keys, struct text key)
{
    if (keys->count > FEW_KEYS)
        return (uint16_t)(*tag_keys_slot(keys, key) - 1);
    for (unsigned i = 0; i < keys->count; i++) {
        const struct text other = keys->keys[i];

        if (other.length != key.length)
            continue;
        /* the first letter differs for most keys */
        if (key.length == 0 || (other.data[0] == key.data[0] && text_equal(other, key)))
            return (uint16_t)i;
    }
    return NO_KEY;
}

static void tag_keys_put_in_slot(struct tag_keys *keys, unsigned i)
{
    *tag_keys_slot(keys, keys->keys[i]) = (uint16_t)(i + 1);
}

static inline void tag_keys_insert(struct tag_keys *keys, struct text key)
{
    const unsigned i = keys->count++;

    keys->keys[i] = key;
    keys->repeated[i] = 1;
    if (keys->count == FEW_KEYS + 1) {
        memset(keys->slots, 0, sizeof(keys->slots));
        for (unsigned earlier = 0; earlier < i; earlier++)
            tag_keys_put_in_slot(keys, earlier);
    }
    if (keys->count > FEW_KEYS)
        tag_keys_put_in_slot(keys, i);
}

/* keys->repeated has the last number of each key, and no number is tried twice: there are at most
 * as many tries as keys. */
char *tag_keys_add(struct tag_keys *keys, char *start, char *at)
{
    const uint16_t first = tag_keys_find(keys, (struct text){start, (size_t)(at - start)});
    char *const end = at;

    for (uint16_t found = first; found != NO_KEY;) {
        at = end;
        *at++ = '#';
        at = json_put_integer(at, ++keys->repeated[first]);
        found = tag_keys_find(keys, (struct text){start, (size_t)(at - start)});
    }
    tag_keys_insert(keys, (struct text){start, (size_t)(at - start)});
    return at;
}

/* ---- protocols ------------------------------------------------------------------------------- */

char protocol_first_byte(struct text body)
{
    for (size_t i = 0; i < body.length; i++) {
        const char c = body.data[i];

        if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
            return c;
    }
    return 0;
}

bool protocol_is_page(struct text type)
{
    return type.length >= 5 && strncasecmp(type.data, "text/", 5) == 0;
}

/* Returns true if the URL's path ends with `path`. */
static bool has_path(const char *endpoint, const char *path)
{
    const size_t length = strcspn(endpoint, "?#"), size = strlen(path);
    const size_t end = length && endpoint[length - 1] == '/' ? length - 1 : length;

    return end >= size && memcmp(endpoint + end - size, path, size) == 0;
}

static const struct protocol *const protocols[] = {&zipkin_protocol, &otlp_protocol};
#define PROTOCOLS (sizeof(protocols) / sizeof(protocols[0]))

const struct protocol *protocol_of(enum protocol_format format, const char *endpoint)
{
    for (size_t i = 0; i < PROTOCOLS; i++) {
        if (format == FORMAT_AUTO ? endpoint && has_path(endpoint, protocols[i]->path)
                                  : protocols[i]->format == format)
            return protocols[i];
    }
    return &zipkin_protocol;
}

const struct protocol *protocol_named(const char *name)
{
    for (size_t i = 0; name && i < PROTOCOLS; i++) {
        if (strcmp(protocols[i]->name, name) == 0)
            return protocols[i];
    }
    return &zipkin_protocol;
}
