/*
 * Finds the resource of a span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "resource.h"

#include "babeltrace-plugin/base/hash.h"
#include "encoder.h"

#define LENGTH_OF(literal) (sizeof(literal) - 1)

static bool is_of_host(const struct endpoint *endpoint)
{
    if (endpoint->ipv4[0])
        return strncmp(endpoint->ipv4, "127.", 4) != 0 && strcmp(endpoint->ipv4, "0.0.0.0") != 0;
    return strcmp(endpoint->ipv6, "::1") != 0 && strcmp(endpoint->ipv6, "::") != 0;
}

/* Notes the first tag of each key, which the assembler has set. */
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
